import { hasVisible } from '../../kernel/index.ts';
import type { Delivery, Entry, EntryOf, MessageEntry, Mode } from '../log/entry.ts';
import { tokenRatio } from './budget.ts';
import { allow, askFor, foldResult, requestedCalls, startCall } from './evolve-calls.ts';
import { routedTo } from './knowledge.ts';
import { changeAgent, changeTurn, type Mutable, mutableCopy, newTurn } from './mutable.ts';
import { type AgentState, agentState, type Claim, type ConversationState, type Run } from './state.ts';
import { addUsage, usedWith } from './usage.ts';
import type { Delegation, Waiting } from './waiting.ts';

/**
 * How each entry changes the state: the fold. What an entry type means is said here, once. A state that was handed out
 * is never changed: each entry begins with a draft of the one before, and so does an agent or a turn that it changes.
 */

type Next = Mutable<ConversationState>;

/** The state after one more entry. */
export function evolve(state: ConversationState, entry: Entry): ConversationState {
  const next = mutableCopy(state);
  next.length = entry.index + 1;
  next.updatedAt = entry.createdAt;
  next.claim = claimWith(next.claim, entry);
  next.ingress = ingressWith(next.ingress, entry);
  fold(next, entry);
  return next;
}

function fold(next: Next, entry: Entry): void {
  switch (entry.type) {
    case 'message':
      foldMessage(next, entry);
      break;
    case 'handoff':
      next.activeAgent = entry.to;
      wait(next, entry, 'queue', entry.hops ?? 0);
      break;
    case 'delegation-requested':
      delegate(next, entry);
      break;
    case 'turn-started':
      startTurn(next, entry);
      break;
    case 'message-delivered':
      deliver(next, entry);
      break;
    case 'turn-ended':
      endTurn(next, entry);
      break;
    case 'tool-started':
      startCall(next, entry);
      break;
    case 'approval-requested':
      askFor(next, entry);
      break;
    case 'approval-answered':
      if (entry.call) allow(next, entry.call);
      break;
    case 'limit-reached':
      limit(next, entry);
      break;
    case 'summary':
      foldSummary(next, entry);
      break;
    default:
      foldSetting(next, entry);
  }
}

/** What was set, by whomever: it wakes nobody but the agent of a node. */
function foldSetting(next: Next, entry: Entry): void {
  switch (entry.type) {
    case 'phase-entered':
      next.phase = entry.to;
      next.activeAgent = null;
      break;
    case 'mode-entered':
      enter(next, entry.index, entry.to, next.run);
      if (entry.activeAgent !== undefined) next.activeAgent = entry.activeAgent;
      break;
    case 'run-started':
      startRun(next, entry);
      break;
    case 'node-entered':
      enterNode(next, entry);
      break;
    case 'run-ended':
      if (next.run?.runId === entry.runId) enter(next, entry.index, next.mode, null);
      break;
    case 'agent-stopped':
    case 'agent-resumed':
      setStopped(next, entry.agent, entry.type === 'agent-stopped');
      break;
    case 'title-set':
      next.title = entry.title;
      break;
    case 'session-set':
      changeAgent(next, entry.agent, (agent) => {
        agent.sessionId = entry.sessionId;
      });
      break;
    default:
  }
}

/** A new mode or node: what requests are made of changes from here on. */
function enter(next: Next, from: number, mode: Mode, run: Run | null): void {
  next.mode = mode;
  next.run = run;
  next.settings = [...next.settings, { from, mode, run }];
}

function startRun(next: Next, { index, runId, workflowId }: EntryOf<'run-started'>): void {
  enter(next, index, next.mode, { runId, workflowId, node: '', agent: null, enteredAt: index, before: null });
}

function enterNode(next: Next, entry: EntryOf<'node-entered'>): void {
  if (next.run?.runId !== entry.runId) return;
  const { outcome, summary } = entry;
  const before = outcome !== undefined && summary !== undefined ? { outcome, summary } : null;
  const enteredAt = entry.index;
  const agent = entry.to?.[0] ?? entry.agent ?? null;
  const { runId, workflowId } = next.run;
  const run: Run = { runId, workflowId, node: entry.node, agent, enteredAt, before };
  enter(next, entry.index, next.mode, run);
  if (agent !== null && !entry.to?.length) next.run = { ...run, awaitsInput: true };
  wait(next, entry, 'queue', entry.hops ?? 0);
}

function wait(
  next: Next,
  entry: Entry,
  delivery: Delivery,
  hops: number,
  delegatedBy: Delegation | null = null,
): void {
  const item = { index: entry.index, delivery, hops, delegatedBy };
  for (const slug of routedTo(entry)) {
    if (entry.type === 'message' && entry.author.kind === 'agent' && entry.author.id === slug) continue;
    if (entry.type === 'message' && next.run?.awaitsInput && next.run.agent === slug) {
      const { awaitsInput: _, ...run } = next.run;
      next.run = { ...run, input: entry.index };
    }
    changeAgent(next, slug, (agent) => {
      agent.waiting = agent.waiting.with(item);
    });
  }
}

function delegate(next: Next, entry: EntryOf<'delegation-requested'>): void {
  const chain = [...(agentState(next, entry.from).turn?.delegatedBy?.chain ?? []), entry.from];
  wait(next, entry, 'queue', entry.hops ?? 0, { agent: entry.from, call: entry.call, chain });
}

function foldMessage(next: Next, entry: MessageEntry): void {
  if (entry.role === 'tool') foldResult(next, entry);
  else if (entry.role === 'assistant' && entry.author.kind === 'agent') foldAnswer(next, entry);
  else wait(next, entry, entry.delivery ?? 'steer', 0);
}

function limit(next: Next, { agent: slug, index }: EntryOf<'limit-reached'>): void {
  if (!slug) return;
  changeAgent(next, slug, (agent) => {
    agent.limitedBy = index;
  });
}

/** The request that it was made for comes next, and holds what it did. */
function foldSummary(next: Next, entry: EntryOf<'summary'>): void {
  addUsage(next, entry.usage);
  if (entry.content !== '') next.newestSummary = entry.index;
  changeAgent(next, entry.agent, (agent) => {
    agent.used = usedWith(agent.used, entry);
    changeTurn(agent, (turn) => {
      turn.askedAt = entry.index;
      turn.refusedRatio = entry.tokenRatio ?? turn.refusedRatio;
      turn.wasTooLong ||= entry.tokenRatio !== undefined;
    });
  });
}

function foldAnswer(next: Next, entry: MessageEntry): void {
  addUsage(next, entry.usage);
  const ratio = tokenRatio(entry);
  changeAgent(next, entry.author.id, (agent) => {
    agent.tokenRatio = ratio ?? agent.tokenRatio;
    agent.used = usedWith(agent.used, entry);
    agent.executionMs += entry.duration ?? 0;
    agent.sessionId = entry.sessionId ?? agent.sessionId;
    changeTurn(agent, (turn) => {
      turn.modelCalls += 1;
      turn.workedMs += entry.duration ?? 0;
      turn.answeredUpTo = entry.index + 1;
      if (hasVisible(entry.content ?? '')) turn.lastWords = entry.index;
      turn.arrived = [];
      turn.wasTooLong = false;
      if (ratio !== undefined) turn.refusedRatio = null;
      turn.openCalls = requestedCalls(entry, turn.askedAt);
    });
  });
}

function deliver(next: Next, entry: EntryOf<'message-delivered'>): void {
  changeAgent(next, entry.agent, (agent) => {
    agent.waiting = agent.waiting.without(entry.entries);
    changeTurn(agent, (turn) => {
      turn.askedAt = entry.index;
    });
  });
}

function startTurn(next: Next, entry: EntryOf<'turn-started'>): void {
  changeAgent(next, entry.agent, (agent) => {
    if (agent.turn?.turnId === entry.turnId) {
      changeTurn(agent, (turn) => {
        if (turn.status === 'waiting') {
          turn.workedMs = 0;
          turn.workingSince = entry.index;
        }
        turn.status = 'running';
        turn.resumedAt = entry.index;
      });
    } else {
      agent.turn = newTurn(agent, entry);
    }
    agent.waiting = agent.waiting.without(entry.trigger);
  });
}

function endTurn(next: Next, entry: EntryOf<'turn-ended'>): void {
  changeAgent(next, entry.agent, (agent) => {
    agent.lastProcessedMessageIndex = entry.lastProcessedMessageIndex;
    if (entry.outcome !== 'limited') agent.limitedBy = null;
    if (entry.outcome !== 'waiting') agent.turn = null;
    changeTurn(agent, (turn) => {
      turn.status = 'waiting';
    });
  });
}

function setStopped(next: Next, slug: string | null, stopped: boolean): void {
  if (slug !== null) {
    changeAgent(next, slug, (agent) => {
      agent.stopped = stopped;
      hold(agent, stopped);
    });
    return;
  }
  next.stopped = stopped;
  for (const name of Object.keys(next.agents))
    changeAgent(next, name, (agent) => {
      agent.stopped = null;
      hold(agent, stopped);
    });
}

/** Resumed: a turn that a limit ended goes on, answering the notice of that limit. */
function hold(agent: Mutable<AgentState>, stopped: boolean): void {
  if (stopped || agent.limitedBy === null || agent.turn) return;
  const item: Waiting = { index: agent.limitedBy, delivery: 'queue', hops: 0, delegatedBy: null };
  agent.limitedBy = null;
  agent.waiting = agent.waiting.withOldest(item);
}

/** What the state knows of who works on a conversation, and of how far the ingress stream is in its log: two folds. */

export function claimWith(claim: Claim | null, entry: Entry): Claim | null {
  if (entry.type === 'claim') {
    const { daemon, epoch, attempt } = entry;
    return { daemon, epoch, attempt: attempt ?? 0, progressed: attempt === undefined };
  }
  return claim === null || claim.progressed || !isProgress(entry) ? claim : { ...claim, progressed: true };
}

/** Another life of the stream counts anew. */
export function ingressWith(
  ingress: ConversationState['ingress'],
  entry: Entry,
): ConversationState['ingress'] {
  const { stream } = ingress;
  if (entry.type === 'claim')
    return (entry.ingress ?? null) === stream ? ingress : { stream: entry.ingress ?? null, sequence: 0 };
  const { ingressSequence: sequence = 0 } = entry;
  return sequence > ingress.sequence ? { stream, sequence } : ingress;
}

/** What is appended before anything came of a turn: its being taken up, its tools' beginnings, what people say meanwhile. */
function isProgress(entry: Entry): boolean {
  switch (entry.type) {
    case 'claim':
    case 'turn-started':
    case 'tool-started':
    case 'message-delivered':
    case 'session-set':
    case 'agent-resumed':
      return false;
    case 'message':
      return entry.role !== 'user';
    default:
      return true;
  }
}
