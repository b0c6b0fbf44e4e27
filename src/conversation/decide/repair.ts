import { type Entry, SYSTEM_AUTHOR, wireCallId } from '../log/entry.ts';
import { evolve } from '../state/evolve.ts';
import { type ConversationState, EMPTY_STATE, isStopped, mustAbort, type Turn } from '../state/state.ts';
import type { AuditedCall, AuditedOutcome, RepairCount } from '../tools/tool-rules.ts';
import type { ClaimCommand, GivenUp } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { addLimit } from './records.ts';
import { endRunOfRemoved } from './runs.ts';
import { backfill, repairCalls } from './tools.ts';
import { advanceTurn, endTurn, endTurnsOfRemovedAgents, startTurns } from './turns.ts';

/**
 * The outstanding work of a log. A start after a crash and a normal start run the same code.
 *
 * REPAIR-1 Recovery only appends (L2), and a second recovery appends nothing new.
 * REPAIR-2 An unanswered model call is made again with the same request: nothing is delivered before its answer.
 * REPAIR-3 A started call without a result has an unknown outcome (L12), unless the audit log proves that it did not run.
 */

/** One item of outstanding work. */
export type OutstandingWork =
  /** A turn was running: it continues. */
  | { readonly type: 'resume-turn'; readonly agent: string; readonly turnId: string }
  /** A turn was to be aborted by a stop or an interrupting message: it ends. */
  | { readonly type: 'abort-turn'; readonly agent: string; readonly turnId: string }
  /** An agent has waiting entries and no turn: one starts. */
  | { readonly type: 'start-turn'; readonly agent: string };

/** The outstanding work of a log. Pure. */
export function planRepair(entries: readonly Entry[]): OutstandingWork[] {
  return outstandingWork(entries.reduce(evolve, EMPTY_STATE));
}

function outstandingWork(state: ConversationState): OutstandingWork[] {
  const found: OutstandingWork[] = [];
  if (state.isPartialCopy) return found;
  for (const [agent, { turn, waiting }] of Object.entries(state.agents)) {
    if (turn?.status === 'running') {
      found.push({
        type: mustAbort(state, agent) ? 'abort-turn' : 'resume-turn',
        agent,
        turnId: turn.turnId,
      });
    } else if (turn === null && waiting.length > 0 && !isStopped(state, agent)) {
      found.push({ type: 'start-turn', agent });
    }
  }
  return found;
}

/**
 * The outcomes that the audit log proves. A call runs after its `ToolCallStarted` is durable. Where no other process can
 * write to the audit log, its `ToolCallRequested` is durable before `tool-started`. So a call with a request and no
 * start did not run, if `isFinal`: all records are readable, and no more can follow.
 */
export function auditedOutcomes(records: readonly AuditedCall[], isFinal: boolean): AuditedOutcome[] {
  const placeOf = ({ call }: AuditedCall) => ({ index: call.entry, position: call.position });
  const completed = records.flatMap((record) =>
    record.type === 'ToolCallCompleted' && record.result !== undefined
      ? [{ ...placeOf(record), content: record.result, files: record.files }]
      : [],
  );
  if (!isFinal) return completed;
  const ofType = (isRequest: boolean) =>
    records.filter(({ type }) => (type === 'ToolCallRequested') === isRequest).map(placeOf);
  const ran = new Set(ofType(false).map(wireCallId));
  const neverRan = ofType(true).filter((place) => !ran.has(wireCallId(place)));
  return [...completed, ...neverRan.map((place) => ({ ...place, content: null }))];
}

/** Resumes the outstanding work. */
export function recover(builder: DecisionBuilder, audited: readonly AuditedOutcome[] = []): RepairCount {
  const count: RepairCount = { repaired: 0, retried: 0, unknown: 0 };
  if (builder.state.isPartialCopy) return count;
  endTurnsOfRemovedAgents(builder);
  endRunOfRemoved(builder);
  for (const item of outstandingWork(builder.state)) {
    const turn = builder.state.agents[item.agent]?.turn;
    if (item.type === 'start-turn' || turn?.turnId !== item.turnId) continue;
    if (item.type === 'abort-turn') {
      backfill(builder, turn, audited, count);
      endTurn(builder, item.agent, 'aborted');
    } else resumeTurn(builder, item.agent, audited, count);
  }
  startTurns(builder);
  return count;
}

function resumeTurn(
  builder: DecisionBuilder,
  slug: string,
  audited: readonly AuditedOutcome[],
  count: RepairCount,
): void {
  const turn = builder.state.agents[slug]?.turn;
  if (!turn) return;
  if (!builder.roster.agents.has(slug)) {
    // Its agent was removed from the configuration: the turn cannot continue.
    backfill(builder, turn, audited, count);
    endTurn(builder, slug, 'aborted');
    return;
  }
  const key = builder.add({
    type: 'turn-started',
    author: builder.agentAuthor(slug),
    turnId: turn.turnId,
    agent: slug,
    trigger: [...turn.trigger],
    resumed: true,
    hops: turn.hops,
    upTo: builder.nextIndex,
  });
  if (turn.openCalls.length > 0) resumeCalls(builder, turn, audited, count);
  else builder.effect({ type: 'call-model', agent: slug, turnId: turn.turnId, key });
}

/** No model call was out: once every call has its result, the turn continues as usual (V8, L15). */
function resumeCalls(
  builder: DecisionBuilder,
  turn: Turn,
  audited: readonly AuditedOutcome[],
  count: RepairCount,
): void {
  repairCalls(builder, turn, audited, count);
  advanceTurn(builder, turn.agent);
}

/**
 * Ownership of a conversation where several daemons share logs.
 *
 * CLAIMS-1 A claim is an entry. The daemon that appended the newest one owns the conversation; the order of the log
 *          decides between two (L3), so no other state is needed.
 * CLAIMS-2 A claim resumes all outstanding work in the same batch.
 * CLAIMS-3 A turn that was resumed `MOST_ATTEMPTS` times without progress is given up, so that work that kills a daemon
 *          does not kill every daemon (L15). An attempt counts only if the claimant failed, not if it handed over.
 */

/** Attempts to resume a turn without progress before it is given up. */
const MOST_ATTEMPTS = 5;

export function claim(
  builder: DecisionBuilder,
  { daemon, ingress, handedOver = false, audited }: ClaimCommand,
): { readonly count: RepairCount; readonly givenUp: readonly GivenUp[] } {
  const before = builder.state.claim;
  const isUnderWay = outstandingWork(builder.state).some(({ type }) => type === 'resume-turn');
  const failed = before !== null && !before.progressed ? before.attempt : 0;
  const attempt = handedOver ? Math.max(1, failed) : failed + 1;
  builder.add({
    type: 'claim',
    author: SYSTEM_AUTHOR,
    daemon,
    epoch: (before?.epoch ?? 0) + 1,
    attempt: isUnderWay ? attempt : undefined,
    ingress,
  });
  if (isUnderWay && attempt > MOST_ATTEMPTS) {
    return { count: { repaired: 0, retried: 0, unknown: 0 }, givenUp: giveUp(builder) };
  }
  return { count: recover(builder, audited), givenUp: [] };
}

/** Ends the turns that were resumed too often, and starts the next ones. */
function giveUp(builder: DecisionBuilder): GivenUp[] {
  const givenUp: GivenUp[] = [];
  for (const item of outstandingWork(builder.state)) {
    const turn = builder.state.agents[item.agent]?.turn;
    if (item.type === 'start-turn' || turn?.turnId !== item.turnId) continue; // it ended with an earlier item
    if (item.type === 'resume-turn') {
      const tried = `the turn of ${item.agent} was taken up ${MOST_ATTEMPTS} times, and each time its daemon ended before anything came of it`;
      addLimit(builder, turn, 'attempts', tried);
      givenUp.push({ agent: item.agent, turnId: turn.turnId, trigger: turn.trigger });
    }
    endTurn(builder, item.agent, item.type === 'resume-turn' ? 'failed' : 'aborted');
  }
  startTurns(builder);
  return givenUp;
}
