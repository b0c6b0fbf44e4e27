import { type CallPlace, type Entry, type EntryOf, SYSTEM_AUTHOR, wireCallId } from '../log/entry.ts';
import { evolve } from '../state/evolve.ts';
import {
  type ConversationState,
  EMPTY_STATE,
  isStopped,
  mustAbort,
  type OpenCall,
  type Turn,
} from '../state/state.ts';
import { isConversationTool } from '../tools/conversation-tools.ts';
import type { AuditedCall, AuditedOutcome, RepairCount } from '../tools/tool-rules.ts';
import type { ClaimCommand, GivenUp } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { endRunOfRemoved } from './runs.ts';
import { backfill, type Repair, repairCalls } from './tools.ts';
import { addLimit, addTurnResumed } from './turn-entries.ts';
import { advanceTurn, endTurn, endTurnsOfRemovedAgents, startTurns } from './turns.ts';

/**
 * The outstanding work of a log: recovery (REPAIR), claims of shared logs, which recover too (CLAIMS), and copies that continue in
 * place of their original (RESTORED). A start after a crash and a normal start run the same code.
 *
 * REPAIR-1 Recovery only appends (L2), and a second recovery appends nothing new.
 * REPAIR-2 An unanswered model call is made again with the same request: nothing is delivered before its answer.
 * REPAIR-3 A started call without a result has an unknown outcome (L12), unless the audit log proves that it did not run.
 */

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
  const interrupted = runningTurns(builder);
  endTurnsOfRemovedAgents(builder); // their askers continue, and other turns start
  endRunOfRemoved(builder);
  for (const item of outstandingWork(builder.state)) {
    const turn = builder.state.agents[item.agent]?.turn;
    if (item.type === 'start-turn' || turn?.turnId !== item.turnId || !interrupted.has(item.turnId)) continue;
    if (item.type === 'abort-turn') {
      backfill(builder, turn, { audited, count });
      endTurn(builder, item.agent, 'aborted');
    } else resumeTurn(builder, item.agent, { audited, count });
  }
  startTurns(builder);
  return count;
}

function runningTurns({ state }: DecisionBuilder): ReadonlySet<string> {
  const turns = Object.values(state.agents).flatMap(({ turn }) => turn ?? []);
  return new Set(turns.filter(({ status }) => status === 'running').map(({ turnId }) => turnId));
}

function resumeTurn(builder: DecisionBuilder, slug: string, repair: Repair): void {
  const turn = builder.state.agents[slug]?.turn;
  if (!turn) return;
  if (!builder.roster.agents.has(slug)) {
    // Its agent was removed from the configuration: the turn cannot continue.
    backfill(builder, turn, repair);
    endTurn(builder, slug, 'aborted');
    return;
  }
  const key = addTurnResumed(builder, turn, turn.trigger);
  if (turn.openCalls.length === 0) {
    builder.effect({ type: 'call-model', agent: slug, turnId: turn.turnId, key });
    return;
  }
  // No model call was out: once every call has its result, the turn continues as usual (V8, L15).
  repairCalls(builder, turn, repair);
  advanceTurn(builder, slug);
}

/** Attempts to resume a turn without progress before it is given up. */
const MOST_ATTEMPTS = 5;

/**
 * Ownership of a conversation where several daemons share logs.
 *
 * CLAIMS-1 A claim is an entry. The daemon that appended the newest one owns the conversation; the order of the log
 *          decides between two (L3), so no other state is needed.
 * CLAIMS-2 A claim resumes all outstanding work in the same batch.
 * CLAIMS-3 A turn that was resumed `MOST_ATTEMPTS` times without progress is given up, so that work that kills a daemon
 *          does not kill every daemon (L15). An attempt counts only if the claimant failed, not if it handed over.
 */
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

/**
 * A copy of a log that continues in place of the original, which went on after the copy was made.
 *
 * RESTORED-1 A risky call that needed no further decision of a person may have run since then. It counts as started, so that
 *            the recovery asks a person and runs nothing (TOOLS-3).
 * RESTORED-2 The audit log of the copy proves no call to be without effect: records of open calls without a result are left
 *            out, and so are those of calls whose start is not in the log yet.
 *
 * The starts to append before the log is recovered (RESTORED-1). Empty: none, also if they are there already.
 */
export function mayHaveRunSince(
  entries: readonly Entry[],
  at: { readonly newId: () => string; readonly createdAt: string },
): EntryOf<'tool-started'>[] {
  const { agents } = entries.reduce(evolve, EMPTY_STATE);
  const running = Object.values(agents).flatMap(({ turn }) => (turn?.status === 'running' ? [turn] : []));
  const found = running.flatMap((turn) => unstarted(turn).map((call) => ({ turn, call })));
  return found.map(({ turn, call }, position) => ({
    index: entries.length + position,
    id: at.newId(),
    createdAt: at.createdAt,
    type: 'tool-started',
    author: entries[call.place.index]?.author ?? { kind: 'agent', id: turn.agent, name: turn.agent },
    turnId: turn.turnId,
    call: call.place,
    toolName: call.name,
    risk: 'risky',
  }));
}

/** Those that could start without a decision: no call starts after one that waits for an approval (TOOLS-1). */
function unstarted({ openCalls }: Turn): OpenCall[] {
  const pending = openCalls.findIndex(({ approval }) => approval?.status === 'pending');
  const free = pending === -1 ? openCalls : openCalls.slice(0, pending);
  return free.filter(
    ({ name, started, risk, atCaller }) =>
      !started && risk === 'risky' && !isConversationTool(name) && !atCaller,
  );
}

function placeOf({ call }: AuditedCall): CallPlace {
  return { index: call.entry, position: call.position };
}

/** RESTORED-2. `records` were read after `entries`. */
export function recordsOfBackup<Found extends AuditedCall>(
  entries: readonly Entry[],
  records: readonly Found[],
): Found[] {
  const keyOf = (record: AuditedCall) => wireCallId(placeOf(record));
  const started = new Set(
    entries.flatMap((one) => (one.type === 'tool-started' ? wireCallId(one.call) : [])),
  );
  const settled = new Set([
    ...entries.flatMap((one) => (one.type === 'message' && one.call ? wireCallId(one.call) : [])),
    ...records.flatMap((one) => (one.type === 'ToolCallCompleted' ? keyOf(one) : [])),
  ]);
  return records.filter((one) => started.has(keyOf(one)) && settled.has(keyOf(one)));
}
