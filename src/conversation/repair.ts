import type { Drafting } from './drafting.ts';
import type { Entry } from './entry.ts';
import { type ConversationState, EMPTY_STATE, evolve, isStopped, type Turn } from './state.ts';
import { addResult, endTurn, runTool, startTurns } from './turns.ts';

/**
 * What a log still owes, after a crash or an ordinary stop: the same path as a normal start, not a special one.
 *
 * A1 Repair only appends (L2), and doing it twice changes nothing more.
 * A2 A turn goes on from the request that was durable: nothing is delivered to it before its next call is answered.
 * A3 What had started and has no result is said to be unknown (L12).
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
      const aborted = isStopped(state, agent) || waiting.some((item) => item.delivery === 'interrupt');
      found.push({ type: aborted ? 'abort-turn' : 'resume-turn', agent, turnId: turn.turnId });
    } else if (turn === null && waiting.length > 0 && !isStopped(state, agent)) {
      found.push({ type: 'start-turn', agent });
    }
  }
  return found;
}

/** Takes up what is owed. */
export function recover(drafting: Drafting): void {
  for (const item of owed(drafting.state)) {
    if (item.type === 'abort-turn') endTurn(drafting, item.agent, 'aborted');
    else if (item.type === 'resume-turn') resumeTurn(drafting, item.agent);
  }
  startTurns(drafting);
}

function resumeTurn(drafting: Drafting, slug: string): void {
  const turn = drafting.state.agents[slug]?.turn;
  if (!turn) return;
  if (!drafting.context.roster.agents.has(slug)) {
    // Its agent was removed from the configuration: nobody is left to go on.
    endTurn(drafting, slug, 'aborted');
    return;
  }
  const key = drafting.add({
    type: 'turn-started',
    author: drafting.agentAuthor(slug),
    turnId: turn.turnId,
    agent: slug,
    trigger: [...turn.trigger],
    resumed: true,
    hops: turn.hops,
    upTo: drafting.nextIndex,
  });
  if (turn.openCalls.length > 0) resumeCalls(drafting, turn, key);
  if (drafting.state.agents[slug]?.turn?.openCalls.length === 0) {
    drafting.effect({ type: 'call-model', agent: slug, turnId: turn.turnId, key });
  }
}

function resumeCalls(drafting: Drafting, turn: Turn, key: number): void {
  for (const call of turn.openCalls) {
    if (call.started) {
      addResult(drafting, turn, call, `[${call.name} was interrupted: whether it took effect is unknown]`, 0); // A3
    } else {
      runTool(drafting, turn, call, key);
    }
  }
}
