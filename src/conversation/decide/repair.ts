import type { AuditedCall } from '../laws/audit-laws.ts';
import type { Entry } from '../log/entry.ts';
import { evolve } from '../state/evolve.ts';
import { wireCallId } from '../state/knowledge.ts';
import { type ConversationState, EMPTY_STATE, isStopped, mustAbort, type Turn } from '../state/state.ts';
import type { AuditedOutcome, RepairCount } from '../tools/tool-rules.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { endRunOfRemoved } from './runs.ts';
import { backfill, repairCalls } from './tools.ts';
import { endTurn, endTurnsOfRemoved, settle, startTurns } from './turns.ts';

/**
 * What a log still owes, after a crash or an ordinary stop: the same path as a normal start, not a special one.
 *
 * REPAIR-1 Repair only appends (L2), and doing it twice changes nothing more.
 * REPAIR-2 A model call that was out is asked again from what was durable: nothing is delivered before it is answered.
 * REPAIR-3 What had started and has no result is said to be unknown (L12), unless the audit log proves that nothing ran.
 */

/** One thing owed. */
export type Owed =
  /** A turn that was running: it goes on. */
  | { readonly type: 'resume-turn'; readonly agent: string; readonly turnId: string }
  /** A turn that was to be aborted, by a stop or an interrupting message: it ends. */
  | { readonly type: 'abort-turn'; readonly agent: string; readonly turnId: string }
  /** An agent has something waiting and no turn: one begins. */
  | { readonly type: 'start-turn'; readonly agent: string };

/** What the log owes. Pure: the same entries owe the same, always. */
export function planRepair(entries: readonly Entry[]): Owed[] {
  return owed(entries.reduce(evolve, EMPTY_STATE));
}

export function owed(state: ConversationState): Owed[] {
  const found: Owed[] = [];
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
 * What the audit log says of calls. A call runs after its `ToolCallStarted` is durable. Where no other process can write
 * to the audit log, its `ToolCallRequested` is durable before the log has the start of the call. So a call that was
 * requested and not started did not run, if `isFinal`: every record can be read, and none can follow.
 */
export function auditedOutcomes(records: readonly AuditedCall[], isFinal: boolean): AuditedOutcome[] {
  const placeOf = ({ call }: AuditedCall) => ({ index: call.entry, position: call.position });
  const completed = records.flatMap((record) =>
    record.type === 'ToolCallCompleted' && record.result !== undefined
      ? [{ ...placeOf(record), content: record.result }]
      : [],
  );
  if (!isFinal) return completed;
  const ofType = (isRequest: boolean) =>
    records.filter(({ type }) => (type === 'ToolCallRequested') === isRequest).map(placeOf);
  const ran = new Set(ofType(false).map(wireCallId));
  const neverRan = ofType(true).filter((place) => !ran.has(wireCallId(place)));
  return [...completed, ...neverRan.map((place) => ({ ...place, content: null }))];
}

/** Takes up what is owed. */
export function recover(builder: DecisionBuilder, audited: readonly AuditedOutcome[] = []): RepairCount {
  const count: RepairCount = { repaired: 0, retried: 0, unknown: 0 };
  endTurnsOfRemoved(builder);
  endRunOfRemoved(builder);
  for (const item of owed(builder.state)) {
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
  if (!builder.context.roster.agents.has(slug)) {
    // Its agent was removed from the configuration: nobody is left to go on.
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
  else builder.effect({ type: 'call-model', agent: slug, turnId: turn.turnId, key }); // REPAIR-2
}

/** No model call was out: once every call has its result, the turn goes on as it would have (V8, L15). */
function resumeCalls(
  builder: DecisionBuilder,
  turn: Turn,
  audited: readonly AuditedOutcome[],
  count: RepairCount,
): void {
  repairCalls(builder, turn, audited, count); // REPAIR-3
  settle(builder, turn.agent);
}
