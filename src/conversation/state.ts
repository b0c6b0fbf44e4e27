import type { CallPlace, Delivery, Entry, EntryOf, MessageEntry, Mode } from './entry.ts';
import { routedTo } from './knowledge.ts';
import { FIRST_PHASE } from './phases.ts';

/**
 * The state of a conversation: a fold of its log and nothing else (L1). Values here are never changed in
 * place, so that a decision that could not be appended is undone by keeping the state before it.
 */

/** An entry that is routed to an agent and waits for its turn. */
export interface Waiting {
  readonly index: number;
  readonly delivery: Delivery;
}

/** A call of the turn's last assistant entry that has no result yet. */
export interface OpenCall {
  readonly place: CallPlace;
  readonly name: string;
  readonly arguments: string;
  /** The intent to run it is durable (L9). */
  readonly started: boolean;
}

/** A turn that has not ended. A waiting one is still this turn (V11). */
export interface Turn {
  readonly turnId: string;
  readonly agent: string;
  readonly status: 'running' | 'waiting';
  readonly trigger: readonly number[];
  /** Index of its first `turn-started`. */
  readonly startedAt: number;
  /** Index of its newest `turn-started`: another one means that it goes on elsewhere. */
  readonly resumedAt: number;
  /** Where its next model call was asked for: what that request holds is fixed by the log up to here. */
  readonly askedAt: number;
  readonly openCalls: readonly OpenCall[];
  /** Model calls that were answered. */
  readonly modelCalls: number;
  /** The log's length after its newest answer: a request built before that is answered already. */
  readonly answeredUpTo: number;
  readonly hops: number;
}

export interface AgentState {
  /** How many entries this agent has dealt with (V14). */
  readonly lastProcessedMessageIndex: number;
  readonly sessionId: string | null;
  readonly turn: Turn | null;
  /** Oldest first. */
  readonly waiting: readonly Waiting[];
  /** Null: as the conversation is. */
  readonly stopped: boolean | null;
  /** Milliseconds spent in model calls and tools. */
  readonly executionMs: number;
}

export interface ConversationState {
  readonly length: number;
  readonly title: string | null;
  readonly phase: string;
  readonly mode: Mode;
  /** Every mode so far and the index of the entry that entered it, oldest first. */
  readonly modes: readonly { readonly from: number; readonly mode: Mode }[];
  readonly activeAgent: string | null;
  /** Everybody is stopped. */
  readonly stopped: boolean;
  readonly agents: Readonly<Record<string, AgentState>>;
  /** Tokens in and out, as providers reported them. */
  readonly tokens: number;
  readonly updatedAt: string | null;
}

export const EMPTY_STATE: ConversationState = {
  length: 0,
  title: null,
  phase: FIRST_PHASE,
  mode: 'agent',
  modes: [{ from: 0, mode: 'agent' }],
  activeAgent: null,
  stopped: false,
  agents: Object.freeze(Object.create(null)),
  tokens: 0,
  updatedAt: null,
};

export const EMPTY_AGENT: AgentState = {
  lastProcessedMessageIndex: 0,
  sessionId: null,
  turn: null,
  waiting: [],
  stopped: null,
  executionMs: 0,
};

/** The mode in which a request asked for at `index` is made: the same whenever it is made again. */
export function modeAt(state: ConversationState, index: number): Mode {
  return state.modes.findLast((entered) => entered.from <= index)?.mode ?? EMPTY_STATE.mode;
}

export function agentState(state: ConversationState, slug: string): AgentState {
  return state.agents[slug] ?? EMPTY_AGENT;
}

/** No turn of this agent may start. */
export function isStopped(state: ConversationState, slug: string): boolean {
  return agentState(state, slug).stopped ?? state.stopped;
}

/** The running turn of this agent is to end: a stop, or a message posted while it ran that interrupts it. */
export function mustAbort(state: ConversationState, slug: string): boolean {
  const { turn, waiting } = agentState(state, slug);
  if (turn?.status !== 'running') return false;
  return (
    isStopped(state, slug) ||
    waiting.some((item) => item.delivery === 'interrupt' && item.index > turn.startedAt)
  );
}

/** A turn runs or should start: after a crash somebody must look at this log without being asked. */
export function owesSomething(state: ConversationState): boolean {
  return Object.entries(state.agents).some(
    ([slug, agent]) =>
      agent.turn?.status === 'running' ||
      (agent.turn === null && agent.waiting.length > 0 && !isStopped(state, slug)),
  );
}

/** The state after one more entry. */
export function evolve(state: ConversationState, entry: Entry): ConversationState {
  const next = { ...state, length: entry.index + 1, updatedAt: entry.createdAt };
  switch (entry.type) {
    case 'message':
      return evolveMessage(next, entry);
    case 'handoff':
      return wait({ ...next, activeAgent: entry.to }, entry, 'queue');
    case 'delegation-requested':
      return wait(next, entry, 'queue');
    case 'turn-started':
      return startTurn(next, entry);
    case 'message-delivered':
      return deliver(next, entry);
    case 'turn-ended':
      return endTurn(next, entry);
    case 'tool-started':
      return withCall(next, entry.call, (call) => ({ ...call, started: true }));
    case 'phase-entered':
      return { ...next, phase: entry.to, activeAgent: null };
    case 'mode-entered':
      return {
        ...next,
        mode: entry.to,
        modes: [...next.modes, { from: entry.index, mode: entry.to }],
        activeAgent: entry.activeAgent === undefined ? next.activeAgent : entry.activeAgent,
      };
    case 'agent-stopped':
    case 'agent-resumed':
      return setStopped(next, entry.agent, entry.type === 'agent-stopped');
    case 'title-set':
      return { ...next, title: entry.title };
    case 'session-set':
      return withAgent(next, entry.agent, (agent) => ({ ...agent, sessionId: entry.sessionId }));
    default:
      return next;
  }
}

function withAgent(
  state: ConversationState,
  slug: string,
  change: (agent: AgentState) => AgentState,
): ConversationState {
  const agents: Record<string, AgentState> = Object.assign(Object.create(null), state.agents);
  agents[slug] = change(agentState(state, slug));
  return { ...state, agents };
}

function without(waiting: readonly Waiting[], indexes: readonly number[]): readonly Waiting[] {
  return waiting.some((item) => indexes.includes(item.index))
    ? waiting.filter((item) => !indexes.includes(item.index))
    : waiting;
}

function wait(state: ConversationState, entry: Entry, delivery: Delivery): ConversationState {
  return routedTo(entry)
    .filter((slug) => !(entry.author.kind === 'agent' && entry.author.id === slug))
    .reduce(
      (next, slug) =>
        withAgent(next, slug, (agent) => ({
          ...agent,
          waiting: [...agent.waiting, { index: entry.index, delivery }],
        })),
      state,
    );
}

function evolveMessage(state: ConversationState, entry: MessageEntry): ConversationState {
  if (entry.role === 'tool') return evolveResult(state, entry);
  if (entry.role === 'assistant' && entry.author.kind === 'agent') return evolveAnswer(state, entry);
  return wait(state, entry, entry.delivery ?? 'steer');
}

function evolveAnswer(state: ConversationState, entry: MessageEntry): ConversationState {
  const usage = entry.usage;
  const counted = usage ? { ...state, tokens: state.tokens + usage.inputTokens + usage.outputTokens } : state;
  return withAgent(counted, entry.author.id, (agent) => ({
    ...agent,
    executionMs: agent.executionMs + (entry.duration ?? 0),
    sessionId: entry.sessionId ?? agent.sessionId,
    turn: agent.turn && {
      ...agent.turn,
      modelCalls: agent.turn.modelCalls + 1,
      answeredUpTo: entry.index + 1,
      openCalls: (entry.tool_calls ?? []).map((call, position) => ({
        place: { index: entry.index, position },
        name: call.function.name,
        arguments: call.function.arguments,
        started: false,
      })),
    },
  }));
}

function evolveResult(state: ConversationState, entry: MessageEntry): ConversationState {
  const owner = entry.call && ownerOf(state, entry.call);
  if (!owner) return state;
  return withAgent(state, owner, (agent) => ({
    ...agent,
    executionMs: agent.executionMs + (entry.duration ?? 0),
    waiting: without(agent.waiting, entry.answers ?? []),
    turn: agent.turn && {
      ...agent.turn,
      askedAt: entry.index,
      openCalls: agent.turn.openCalls.filter((call) => !samePlace(call.place, entry.call)),
    },
  }));
}

function deliver(state: ConversationState, entry: EntryOf<'message-delivered'>): ConversationState {
  return withAgent(state, entry.agent, (agent) => ({
    ...agent,
    waiting: without(agent.waiting, entry.entries),
    turn: agent.turn && { ...agent.turn, askedAt: entry.index },
  }));
}

/** The agent whose running turn holds this open call. */
function ownerOf(state: ConversationState, place: CallPlace): string | undefined {
  return Object.keys(state.agents).find((slug) =>
    state.agents[slug]?.turn?.openCalls.some((call) => samePlace(call.place, place)),
  );
}

export function samePlace(a: CallPlace, b: CallPlace | undefined): boolean {
  return a.index === b?.index && a.position === b.position;
}

function withCall(
  state: ConversationState,
  place: CallPlace,
  change: (call: OpenCall) => OpenCall,
): ConversationState {
  const owner = ownerOf(state, place);
  if (!owner) return state;
  return withAgent(state, owner, (agent) => ({
    ...agent,
    turn: agent.turn && {
      ...agent.turn,
      openCalls: agent.turn.openCalls.map((call) => (samePlace(call.place, place) ? change(call) : call)),
    },
  }));
}

function startTurn(state: ConversationState, entry: EntryOf<'turn-started'>): ConversationState {
  return withAgent(state, entry.agent, (agent) => {
    const same = agent.turn?.turnId === entry.turnId ? agent.turn : null;
    const turn: Turn = same
      ? { ...same, status: 'running', resumedAt: entry.index }
      : {
          turnId: entry.turnId,
          agent: entry.agent,
          status: 'running',
          trigger: entry.trigger,
          startedAt: entry.index,
          resumedAt: entry.index,
          askedAt: entry.index,
          openCalls: [],
          modelCalls: 0,
          answeredUpTo: 0,
          hops: entry.hops ?? 0,
        };
    return { ...agent, turn, waiting: without(agent.waiting, entry.trigger) };
  });
}

function endTurn(state: ConversationState, entry: EntryOf<'turn-ended'>): ConversationState {
  return withAgent(state, entry.agent, (agent) => ({
    ...agent,
    lastProcessedMessageIndex: entry.lastProcessedMessageIndex,
    turn: entry.outcome === 'waiting' && agent.turn ? { ...agent.turn, status: 'waiting' } : null,
  }));
}

function setStopped(state: ConversationState, slug: string | null, stopped: boolean): ConversationState {
  if (slug !== null) return withAgent(state, slug, (agent) => ({ ...agent, stopped }));
  const agents: Record<string, AgentState> = Object.create(null);
  for (const [name, agent] of Object.entries(state.agents)) agents[name] = { ...agent, stopped: null };
  return { ...state, stopped, agents };
}
