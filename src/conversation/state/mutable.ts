import type { EntryOf } from '../log/entry.ts';
import { type AgentState, agentState, type ConversationState, noAgents, type Turn } from './state.ts';

/**
 * Copies of state values that the fold may change before it returns them. Written out field by field: a spread of so
 * many fields is many times slower, and opening a log folds every entry.
 */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export function mutableCopy(state: ConversationState): Mutable<ConversationState> {
  return {
    length: state.length,
    title: state.title,
    archived: state.archived,
    people: state.people,
    phase: state.phase,
    mode: state.mode,
    run: state.run,
    settings: state.settings,
    activeAgent: state.activeAgent,
    stopped: state.stopped,
    agents: state.agents,
    tokens: state.tokens,
    usd: state.usd,
    unpricedCalls: state.unpricedCalls,
    spent: state.spent,
    newestSummary: state.newestSummary,
    updatedAt: state.updatedAt,
    claim: state.claim,
    isPartialCopy: state.isPartialCopy,
    hired: state.hired,
    ingress: state.ingress,
  };
}

/** Replaces `agents` by a copy, too. */
export function changeAgent(
  next: Mutable<ConversationState>,
  slug: string,
  change: (agent: Mutable<AgentState>) => void,
): void {
  const agents: Record<string, AgentState> = Object.assign(noAgents(), next.agents);
  const agent = copyOfAgent(agentState(next, slug));
  change(agent);
  agents[slug] = agent;
  next.agents = agents;
}

/** Does nothing if there is no turn. */
export function changeTurn(agent: Mutable<AgentState>, change: (turn: Mutable<Turn>) => void): void {
  if (!agent.turn) return;
  const turn = copyOfTurn(agent.turn);
  change(turn);
  agent.turn = turn;
}

function copyOfAgent(agent: AgentState): Mutable<AgentState> {
  return {
    lastProcessedMessageIndex: agent.lastProcessedMessageIndex,
    session: agent.session,
    turn: agent.turn,
    waiting: agent.waiting,
    stopped: agent.stopped,
    limitedBy: agent.limitedBy,
    failedAt: agent.failedAt,
    executionMs: agent.executionMs,
    tokenRatio: agent.tokenRatio,
    used: agent.used,
    reported: agent.reported,
  };
}

function copyOfTurn(turn: Turn): Mutable<Turn> {
  return {
    turnId: turn.turnId,
    agent: turn.agent,
    status: turn.status,
    trigger: turn.trigger,
    startedAt: turn.startedAt,
    resumedAt: turn.resumedAt,
    workedMs: turn.workedMs,
    workingSince: turn.workingSince,
    askedAt: turn.askedAt,
    openCalls: turn.openCalls,
    modelCalls: turn.modelCalls,
    answeredUpTo: turn.answeredUpTo,
    hops: turn.hops,
    session: turn.session,
    delegatedBy: turn.delegatedBy,
    lastWords: turn.lastWords,
    arrived: turn.arrived,
    wasTooLong: turn.wasTooLong,
    refusedRatio: turn.refusedRatio,
    isDismissed: turn.isDismissed,
  };
}

/** The turn that a `turn-started` entry begins. */
export function newTurn(agent: AgentState, entry: EntryOf<'turn-started'>): Turn {
  const trigger = new Set(entry.trigger);
  return {
    turnId: entry.turnId,
    agent: entry.agent,
    status: 'running',
    trigger: entry.trigger,
    startedAt: entry.index,
    resumedAt: entry.index,
    workedMs: 0,
    workingSince: entry.index,
    askedAt: entry.index,
    openCalls: [],
    modelCalls: 0,
    answeredUpTo: 0,
    hops: entry.hops ?? 0,
    session: agent.session,
    delegatedBy: agent.waiting.find((item) => trigger.has(item.index))?.delegatedBy ?? null,
    lastWords: null,
    arrived: [],
    wasTooLong: false,
    refusedRatio: null,
    isDismissed: false,
  };
}
