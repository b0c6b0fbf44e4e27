import { tokenRatio } from './budget.ts';
import type { CallPlace, Delivery, Entry, EntryOf, MessageEntry } from './entry.ts';
import { routedTo } from './knowledge.ts';
import {
  type AgentState,
  agentState,
  type ConversationState,
  noAgents,
  type OpenCall,
  ownerOf,
  samePlace,
  type Turn,
} from './state.ts';
import { usedWith, withUsage } from './usage.ts';
import type { Delegation, Waiting } from './waiting.ts';

/** How each entry changes the state: the fold. What an entry type means is said here, once. */

/** The state after one more entry. */
export function evolve(state: ConversationState, entry: Entry): ConversationState {
  const next = copyOf(state);
  next.length = entry.index + 1;
  next.updatedAt = entry.createdAt;
  switch (entry.type) {
    case 'message':
      return evolveMessage(next, entry);
    case 'handoff':
      return wait({ ...next, activeAgent: entry.to }, entry, 'queue', entry.hops ?? 0);
    case 'delegation-requested':
      return delegate(next, entry);
    case 'turn-started':
      return startTurn(next, entry);
    case 'message-delivered':
      return deliver(next, entry);
    case 'turn-ended':
      return endTurn(next, entry);
    case 'tool-started':
      return withCall(next, entry.call, (call) => ({
        ...call,
        started: true,
        starts: call.starts + 1,
        risk: entry.risk ?? call.risk,
      }));
    case 'approval-requested':
      return askFor(next, entry);
    case 'approval-answered':
      return entry.call
        ? withCall(next, entry.call, (call) => ({
            ...call,
            approval: call.approval && { ...call.approval, status: 'given' },
          }))
        : next;
    case 'phase-entered':
      return { ...next, phase: entry.to, activeAgent: null };
    case 'mode-entered':
      return enter(next, entry.index, {
        mode: entry.to,
        activeAgent: entry.activeAgent === undefined ? next.activeAgent : entry.activeAgent,
      });
    case 'run-started':
      return startRun(next, entry);
    case 'node-entered':
      return enterNode(next, entry);
    case 'run-ended':
      return next.run?.runId === entry.runId ? enter(next, entry.index, { run: null }) : next;
    case 'agent-stopped':
    case 'agent-resumed':
      return setStopped(next, entry.agent, entry.type === 'agent-stopped');
    case 'limit-reached':
      return limit(next, entry);
    case 'summary':
      return evolveSummary(next, entry);
    case 'title-set':
      return { ...next, title: entry.title };
    case 'session-set':
      return withAgent(next, entry.agent, (agent) => ({ ...agent, sessionId: entry.sessionId }));
    default:
      return next;
  }
}

/** Written out: a spread of so many fields takes many times as long, and opening a log folds each of its entries. */
function copyOf(state: ConversationState): {
  -readonly [K in keyof ConversationState]: ConversationState[K];
} {
  return {
    length: state.length,
    title: state.title,
    phase: state.phase,
    mode: state.mode,
    run: state.run,
    settings: state.settings,
    activeAgent: state.activeAgent,
    stopped: state.stopped,
    agents: state.agents,
    tokens: state.tokens,
    usd: state.usd,
    newestSummary: state.newestSummary,
    updatedAt: state.updatedAt,
  };
}

/** A new mode or node: what requests are made of changes from here on. */
function enter(
  state: ConversationState,
  from: number,
  change: Partial<Pick<ConversationState, 'mode' | 'run' | 'activeAgent'>>,
): ConversationState {
  const next = { ...state, ...change };
  return { ...next, settings: [...state.settings, { from, mode: next.mode, run: next.run }] };
}

function startRun(
  state: ConversationState,
  { index, runId, workflowId }: EntryOf<'run-started'>,
): ConversationState {
  return enter(state, index, {
    run: { runId, workflowId, node: '', agent: null, enteredAt: index, before: null },
  });
}

function enterNode(state: ConversationState, entry: EntryOf<'node-entered'>): ConversationState {
  if (state.run?.runId !== entry.runId) return state;
  const { outcome, summary } = entry;
  const before = outcome !== undefined && summary !== undefined ? { outcome, summary } : null;
  const enteredAt = entry.index;
  const run = { ...state.run, node: entry.node, agent: entry.to?.[0] ?? null, enteredAt, before };
  return wait(enter(state, entry.index, { run }), entry, 'queue', entry.hops ?? 0);
}

function withAgent(
  state: ConversationState,
  slug: string,
  change: (agent: AgentState) => AgentState,
): ConversationState {
  const agents: Record<string, AgentState> = Object.assign(noAgents(), state.agents);
  agents[slug] = change(agentState(state, slug));
  const next = copyOf(state);
  next.agents = agents;
  return next;
}

function wait(
  state: ConversationState,
  entry: Entry,
  delivery: Delivery,
  hops: number,
  delegatedBy: Delegation | null = null,
): ConversationState {
  const item = { index: entry.index, delivery, hops, delegatedBy };
  return routedTo(entry)
    .filter(
      (slug) => !(entry.type === 'message' && entry.author.kind === 'agent' && entry.author.id === slug),
    )
    .reduce(
      (next, slug) => withAgent(next, slug, (agent) => ({ ...agent, waiting: agent.waiting.with(item) })),
      state,
    );
}

function delegate(state: ConversationState, entry: EntryOf<'delegation-requested'>): ConversationState {
  const chain = [...(agentState(state, entry.from).turn?.delegatedBy?.chain ?? []), entry.from];
  return wait(state, entry, 'queue', entry.hops ?? 0, { agent: entry.from, call: entry.call, chain });
}

function evolveMessage(state: ConversationState, entry: MessageEntry): ConversationState {
  if (entry.role === 'tool') return evolveResult(state, entry);
  if (entry.role === 'assistant' && entry.author.kind === 'agent') return evolveAnswer(state, entry);
  return wait(state, entry, entry.delivery ?? 'steer', 0);
}

function limit(
  state: ConversationState,
  { agent: slug, index }: EntryOf<'limit-reached'>,
): ConversationState {
  return slug ? withAgent(state, slug, (agent) => ({ ...agent, limitedBy: index })) : state;
}

/** The request that it was made for comes next, and holds what it did. */
function evolveSummary(state: ConversationState, entry: EntryOf<'summary'>): ConversationState {
  const counted = withUsage(state, entry.usage);
  const next = entry.content === '' ? counted : { ...counted, newestSummary: entry.index };
  return withAgent(next, entry.agent, (agent) => ({
    ...agent,
    used: usedWith(agent.used, entry),
    turn: agent.turn && {
      ...agent.turn,
      askedAt: entry.index,
      refusedRatio: entry.tokenRatio ?? agent.turn.refusedRatio,
      wasTooLong: agent.turn.wasTooLong || entry.tokenRatio !== undefined,
    },
  }));
}

function evolveAnswer(state: ConversationState, entry: MessageEntry): ConversationState {
  return withAgent(withUsage(state, entry.usage), entry.author.id, (agent) => ({
    ...agent,
    tokenRatio: tokenRatio(entry) ?? agent.tokenRatio,
    used: usedWith(agent.used, entry),
    executionMs: agent.executionMs + (entry.duration ?? 0),
    sessionId: entry.sessionId ?? agent.sessionId,
    turn: agent.turn && {
      ...agent.turn,
      modelCalls: agent.turn.modelCalls + 1,
      answeredUpTo: entry.index + 1,
      lastWords: entry.content ? entry.index : agent.turn.lastWords,
      arrived: [],
      wasTooLong: false,
      refusedRatio: tokenRatio(entry) === undefined ? agent.turn.refusedRatio : null,
      openCalls: (entry.tool_calls ?? []).map((call, position) => ({
        place: { index: entry.index, position },
        name: call.function.name,
        arguments: call.function.arguments,
        askedAt: agent.turn?.askedAt ?? entry.index,
        started: false,
        starts: 0,
        // A log from before risks were kept: what nobody knows is risky.
        risk: entry.risks?.[position] ?? ('risky' as const),
        approval: null,
      })),
    },
  }));
}

function evolveResult(state: ConversationState, entry: MessageEntry): ConversationState {
  const { call } = entry;
  const owner = call && ownerOf(state, call);
  if (!call || !owner) return state;
  const answers = entry.answers ?? [];
  return withAgent(state, owner, (agent) => ({
    ...agent,
    executionMs: agent.executionMs + (entry.duration ?? 0),
    waiting: agent.waiting.without(answers),
    turn: agent.turn && {
      ...agent.turn,
      askedAt: entry.index,
      arrived: [...agent.turn.arrived, ...answers],
      openCalls: agent.turn.openCalls.filter((open) => !samePlace(open.place, call)),
    },
  }));
}

function deliver(state: ConversationState, entry: EntryOf<'message-delivered'>): ConversationState {
  return withAgent(state, entry.agent, (agent) => ({
    ...agent,
    waiting: agent.waiting.without(entry.entries),
    turn: agent.turn && { ...agent.turn, askedAt: entry.index },
  }));
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

function askFor(state: ConversationState, entry: EntryOf<'approval-requested'>): ConversationState {
  const { approvalId: id, mayHaveRun, createdAt: requestedAt } = entry;
  return withCall(state, entry.call, (call) => ({
    ...call,
    started: false,
    approval: { id, status: 'pending', mayHaveRun, requestedAt },
  }));
}

function startTurn(state: ConversationState, entry: EntryOf<'turn-started'>): ConversationState {
  const trigger = new Set(entry.trigger);
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
          sessionId: agent.sessionId,
          delegatedBy: agent.waiting.find((item) => trigger.has(item.index))?.delegatedBy ?? null,
          lastWords: null,
          arrived: [],
          wasTooLong: false,
          refusedRatio: null,
        };
    return { ...agent, turn, waiting: agent.waiting.without(entry.trigger) };
  });
}

function endTurn(state: ConversationState, entry: EntryOf<'turn-ended'>): ConversationState {
  return withAgent(state, entry.agent, (agent) => ({
    ...agent,
    lastProcessedMessageIndex: entry.lastProcessedMessageIndex,
    limitedBy: entry.outcome === 'limited' ? agent.limitedBy : null,
    turn: entry.outcome === 'waiting' && agent.turn ? { ...agent.turn, status: 'waiting' } : null,
  }));
}

function setStopped(state: ConversationState, slug: string | null, stopped: boolean): ConversationState {
  if (slug !== null) return withAgent(state, slug, (agent) => held({ ...agent, stopped }, stopped));
  const agents = noAgents();
  for (const [name, agent] of Object.entries(state.agents))
    agents[name] = held({ ...agent, stopped: null }, stopped);
  return { ...state, stopped, agents };
}

/** Resumed: a turn that a limit ended goes on, answering the notice of that limit. */
function held(agent: AgentState, stopped: boolean): AgentState {
  if (stopped || agent.limitedBy === null || agent.turn) return agent;
  const item: Waiting = { index: agent.limitedBy, delivery: 'queue', hops: 0, delegatedBy: null };
  return { ...agent, limitedBy: null, waiting: agent.waiting.withOldest(item) };
}
