import { canonicalArguments, hasVisible } from '../../kernel/index.ts';
import type { CallPlace, DeliveryMode, Entry, EntryOf, EntryType, MessageEntry, Mode } from '../log/entry.ts';
import { isContinued, routedTo, traitsOf } from '../log/entry-traits.ts';
import { floorAfter } from './answering.ts';
import { tokenRatio } from './budget.ts';
import { withHired, withoutHired } from './hired.ts';
import {
  type AgentState,
  agentState,
  type Claim,
  type ConversationState,
  NOTHING_REPORTED,
  noAgents,
  type OpenCall,
  ownerOf,
  type Run,
  type RunBranch,
  samePlace,
  type Turn,
} from './state.ts';
import { addUsage, NOTHING_USED, spentWith, usedWith } from './usage.ts';
import type { Delegation, WaitingEntry } from './waiting.ts';

/**
 * The fold: how each entry changes the state. A state that was returned is never changed: each entry starts from a
 * shallow copy, and so does each agent or turn that it changes.
 */

type Next = Mutable<ConversationState>;

export function evolve(state: ConversationState, entry: Entry): ConversationState {
  const next = mutableCopy(state);
  next.length = entry.index + 1;
  next.updatedAt = entry.createdAt;
  const isCopy = entry.copiedFrom !== undefined;
  next.isPartialCopy = isCopy || (state.isPartialCopy && entry.type !== 'forked');
  if (!isCopy) {
    next.claim = claimWith(next.claim, entry);
    next.ingress = ingressWith(next.ingress, entry);
  }
  apply(next, entry);
  return next;
}

/** Null: the type changes nothing here. `claimWith` and `ingressWith` read `claim`. */
const APPLY: { readonly [T in EntryType]: ((next: Next, entry: EntryOf<T>) => void) | null } = {
  message: applyMessage,
  'phase-entered': applyPhaseEntered,
  'mode-entered': applyModeEntered,
  handoff: applyHandoff,
  'delegation-requested': applyDelegationRequested,
  'delegation-answered': null,
  'turn-started': applyTurnStarted,
  'message-delivered': applyMessageDelivered,
  'turn-ended': applyTurnEnded,
  'tool-started': applyToolStarted,
  'approval-requested': applyApprovalRequested,
  'approval-answered': applyApprovalAnswered,
  summary: applySummary,
  'attempt-failed': applyAttemptFailed,
  'run-started': applyRunStarted,
  'node-entered': applyNodeEntered,
  'run-ended': applyRunEnded,
  'agent-stopped': (next, { agent }) => setStopped(next, agent, true),
  'agent-resumed': (next, { agent }) => setStopped(next, agent, false),
  'title-set': applyTitleSet,
  feedback: null,
  'session-set': applySessionSet,
  'limit-reached': applyLimitReached,
  claim: null,
  forked: applyForked,
  'agent-hired': applyAgentHired,
  'agent-dismissed': applyAgentDismissed,
  'team-changed': null,
  note: null,
};

/** Ignores types of a newer version. */
function apply(next: Next, entry: Entry): void {
  if (!Object.hasOwn(APPLY, entry.type)) return;
  const applyEntry = APPLY[entry.type] as ((next: Next, entry: Entry) => void) | null;
  applyEntry?.(next, entry);
}

function applyPhaseEntered(next: Next, entry: EntryOf<'phase-entered'>): void {
  const { phase, activeAgent } = floorAfter(next, entry);
  next.phase = phase;
  next.activeAgent = activeAgent;
}

function applyModeEntered(next: Next, entry: EntryOf<'mode-entered'>): void {
  const { mode, activeAgent } = floorAfter(next, entry);
  addSetting(next, entry.index, mode, next.run);
  next.activeAgent = activeAgent;
}

function applyRunEnded(next: Next, entry: EntryOf<'run-ended'>): void {
  if (floorAfter(next, entry) === next) return;
  if (entry.turnId !== undefined) endBranches(next, entry);
  addSetting(next, entry.index, next.mode, null);
}

/** RUN-BRANCH-4 */
function endBranches(next: Next, { turnId }: EntryOf<'run-ended'>): void {
  for (const { agent: slug, enteredAt } of next.run?.branches ?? []) {
    const turn = slug === null ? null : agentState(next, slug).turn;
    if (slug === null || !turn?.trigger.includes(enteredAt) || turn.turnId === turnId) continue;
    changeAgent(next, slug, (agent) => {
      changeTurn(agent, (open) => {
        open.isDismissed = true;
      });
    });
  }
}

function applyTitleSet(next: Next, entry: EntryOf<'title-set'>): void {
  const { title, archived } = entry;
  if (entry.writtenBy === 'model') {
    addUsage(next, entry);
    next.spent = spentWith(next.spent, entry.author.id, entry);
  }
  next.title = title;
  next.archived = archived === true;
}

function applySessionSet(next: Next, { agent: slug, sessionId: id, from }: EntryOf<'session-set'>): void {
  changeAgent(next, slug, (agent) => {
    const session = { id, by: 'person', from } as const;
    agent.session = session;
    changeTurn(agent, (turn) => {
      turn.session = session;
    });
  });
}

function applyAgentHired(next: Next, entry: EntryOf<'agent-hired'>): void {
  next.hired = withHired(next.hired, entry);
}

/** HIRING-7 */
function applyAgentDismissed(next: Next, { agent: slug }: EntryOf<'agent-dismissed'>): void {
  next.hired = withoutHired(next.hired, slug);
  if (!agentState(next, slug).turn) return;
  changeAgent(next, slug, (agent) => {
    changeTurn(agent, (turn) => {
      turn.isDismissed = true;
    });
  });
}

/** The copied model calls were paid in the other conversation, and what an agent in another process keeps of it continues there. */
function applyForked(next: Next, { file }: EntryOf<'forked'>): void {
  next.archived = false;
  next.tokens = 0;
  next.usd = 0;
  next.unpricedCalls = 0;
  next.spent = [];
  for (const slug of Object.keys(next.agents)) {
    changeAgent(next, slug, (agent) => {
      agent.used = NOTHING_USED;
      agent.reported = NOTHING_REPORTED;
      agent.executionMs = 0;
      if (file !== undefined || agent.session?.by === 'agent') agent.session = null;
      if (file !== undefined) agent.tokenRatio = 1;
    });
  }
}

function applyHandoff(next: Next, entry: EntryOf<'handoff'>): void {
  next.activeAgent = floorAfter(next, entry).activeAgent;
  addWaiting(next, entry, 'queue', entry.hops ?? 0);
}

/** A new mode or node: requests use it from this index on. */
function addSetting(next: Next, from: number, mode: Mode, run: Run | null): void {
  next.mode = mode;
  next.run = run;
  next.settings = [...next.settings, { from, mode, run }];
}

function applyRunStarted(next: Next, entry: EntryOf<'run-started'>): void {
  const { runId, workflowId } = entry;
  const visit = { node: '', agent: null, enteredAt: entry.index, before: [] };
  addSetting(next, entry.index, next.mode, { runId, workflowId, ...visit });
}

function applyNodeEntered(next: Next, entry: EntryOf<'node-entered'>): void {
  const completed = next.run;
  const floor = floorAfter(next, entry);
  if (floor === next || floor.run === null) return;
  const { outcome, summary, from = completed?.node ?? '' } = entry;
  const met = entry.branch === undefined ? (completed?.branches ?? []) : [];
  const result = outcome !== undefined && summary !== undefined ? [{ node: from, outcome, summary }] : [];
  const waited = met.filter(({ agent }) => agent === null).flatMap(({ before }) => before);
  const visit = { enteredAt: entry.index, before: [...waited, ...result] };
  const branches = floor.run.branches?.map((one): RunBranch => {
    const known = completed?.branches?.find(({ branch }) => branch === one.branch);
    return one.branch === entry.branch || !known ? { ...one, ...visit } : known;
  });
  const known = completed?.runId === entry.runId ? completed.values : undefined;
  const values = completed && 'value' in entry ? { ...known, [from]: entry.value } : known;
  const { runId, workflowId, node, agent } = floor.run;
  const at = branches?.find((one) => one.agent !== null) ?? { node, agent, ...visit };
  const run: Run = {
    runId,
    workflowId,
    node: at.node,
    agent: at.agent,
    enteredAt: at.enteredAt,
    before: at.before,
    ...(branches && { branches }),
    ...(values && { values }),
  };
  addSetting(next, entry.index, next.mode, run);
  if (entry.agent !== undefined && !entry.to?.length) next.run = { ...run, awaitsInput: true };
  addWaiting(next, entry, 'queue', entry.hops ?? 0);
}

function addWaiting(
  next: Next,
  entry: Entry,
  delivery: DeliveryMode,
  hops: number,
  delegatedBy: Delegation | null = null,
): void {
  const brings = entry.type !== 'message' ? undefined : entry.tools ? 'tools' : entry.schema && 'schema';
  const item: WaitingEntry = { index: entry.index, delivery, hops, delegatedBy, ...(brings && { brings }) };
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

function applyDelegationRequested(next: Next, entry: EntryOf<'delegation-requested'>): void {
  const chain = [...(agentState(next, entry.from).turn?.delegatedBy?.chain ?? []), entry.from];
  addWaiting(next, entry, 'queue', entry.hops ?? 0, { agent: entry.from, call: entry.call, chain });
}

function applyMessage(next: Next, entry: MessageEntry): void {
  if (entry.role === 'tool') applyResult(next, entry);
  else if (entry.role === 'assistant' && entry.author.kind === 'agent') applyAnswer(next, entry);
  else addWaiting(next, entry, entry.delivery ?? 'steer', 0);
  const { kind, id } = entry.author;
  if (kind !== 'person') return;
  if (next.people.length < MOST_PEOPLE && !next.people.includes(id)) next.people = [...next.people, id];
  if (entry.replyTo !== undefined) answerFailure(next, entry.replyTo);
}

/** A post that names the failure of an agent, or its limit: a person has dealt with it, for example asked another agent. */
function answerFailure(next: Next, failure: string): void {
  for (const slug of Object.keys(next.agents)) {
    const { failedAt, limitedBy, failure: newest } = agentState(next, slug);
    if ((failedAt ?? limitedBy) === null || newest !== failure) continue;
    changeAgent(next, slug, (agent) => {
      agent.failedAt = agent.limitedBy = null;
    });
  }
}

const MOST_PEOPLE = 50;

function applyLimitReached(next: Next, { agent: slug, index, id }: EntryOf<'limit-reached'>): void {
  if (!slug) return;
  changeAgent(next, slug, (agent) => {
    agent.limitedBy = index;
    agent.failure = id;
  });
}

/** The turn's own model call follows: a summary ends no turn. */
function applySummary(next: Next, entry: EntryOf<'summary'>): void {
  addUsage(next, entry);
  next.spent = spentWith(next.spent, entry.agent, entry);
  if (entry.content !== '') next.newestSummary = entry.index;
  changeAgent(next, entry.agent, (agent) => {
    agent.used = usedWith(agent.used, entry);
    changeTurn(agent, (turn) => {
      turn.upTo = entry.index;
      turn.refusedRatio = entry.tokenRatio ?? turn.refusedRatio;
      turn.wasTooLong ||= entry.tokenRatio !== undefined;
    });
  });
}

/** The turn stays with the next candidate: a fallback is asked with a request of its own, another key with the same one. */
function applyAttemptFailed(next: Next, entry: EntryOf<'attempt-failed'>): void {
  next.spent = spentWith(next.spent, entry.agent, entry);
  changeAgent(next, entry.agent, (agent) => {
    agent.used = usedWith(agent.used, entry);
    agent.executionMs += entry.duration;
    changeTurn(agent, (turn) => {
      turn.workedMs += entry.duration;
      turn.upTo = entry.index;
      turn.candidate = entry.next;
      if (entry.next.model === entry.model) return;
      turn.wasTooLong = false;
      turn.refusedRatio = null;
    });
  });
}

function applyAnswer(next: Next, entry: MessageEntry): void {
  addUsage(next, entry);
  next.spent = spentWith(next.spent, entry.author.id, entry);
  const ratio = tokenRatio(entry);
  changeAgent(next, entry.author.id, (agent) => {
    agent.tokenRatio = ratio ?? agent.tokenRatio;
    agent.used = usedWith(agent.used, entry);
    if (entry.usage?.byAgent) {
      const { inputTokens, outputTokens, usd = 0 } = entry.usage;
      const { reported } = agent;
      agent.reported = { tokens: reported.tokens + inputTokens + outputTokens, usd: reported.usd + usd };
    }
    agent.executionMs += entry.duration ?? 0;
    if (entry.partType === 'error') agent.failure = entry.id;
    const { sessionId: id = agent.session?.id, turnId } = entry;
    // Only an answer of a turn: what a history from elsewhere says of sessions has no effect.
    const isNew = id !== undefined && id !== agent.session?.id && turnId === agent.turn?.turnId;
    if (isNew) agent.session = { id, by: 'agent', from: entry.index };
    changeTurn(agent, (turn) => {
      if (isNew) turn.session = agent.session;
      turn.modelCalls += 1;
      turn.workedMs += entry.duration ?? 0;
      turn.answeredUpTo = entry.index + 1;
      if (hasVisible(entry.content ?? '') || entry.parts) turn.lastWords = entry.index;
      turn.arrived = [];
      turn.wasTooLong = false;
      if (ratio !== undefined) turn.refusedRatio = null;
      turn.openCalls = requestedCalls(entry, turn.upTo);
      if (isContinued(entry)) {
        turn.upTo = entry.index; // the next request continues this answer
        turn.answeredUpTo = entry.index;
      }
      turn.wasInvalid ||= entry.invalid !== undefined;
    });
  });
}

function applyMessageDelivered(next: Next, entry: EntryOf<'message-delivered'>): void {
  changeAgent(next, entry.agent, (agent) => {
    agent.waiting = agent.waiting.without(entry.entries);
    changeTurn(agent, (turn) => {
      turn.upTo = entry.index;
    });
  });
}

function applyTurnStarted(next: Next, entry: EntryOf<'turn-started'>): void {
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
      agent.failedAt = null;
    }
    agent.waiting = agent.waiting.without(entry.trigger);
  });
}

function applyTurnEnded(next: Next, entry: EntryOf<'turn-ended'>): void {
  changeAgent(next, entry.agent, (agent) => {
    agent.lastProcessedMessageIndex = entry.lastProcessedMessageIndex;
    if (entry.outcome !== 'limited') agent.limitedBy = null;
    if (entry.outcome === 'failed') agent.failedAt = entry.index;
    if (entry.outcome !== 'waiting') agent.turn = null;
    changeTurn(agent, (turn) => {
      turn.status = 'waiting';
    });
  });
}

function setStopped(next: Next, slug: string | null, stopped: boolean): void {
  if (slug === null) next.stopped = stopped;
  for (const name of slug === null ? Object.keys(next.agents) : [slug])
    changeAgent(next, name, (agent) => {
      agent.stopped = slug === null ? null : stopped;
      queueLimitNotice(agent, stopped);
    });
}

/** On resume, a turn that a limit ended continues: the notice of that limit is the next trigger. */
function queueLimitNotice(agent: Mutable<AgentState>, stopped: boolean): void {
  if (stopped || agent.limitedBy === null || agent.turn) return;
  const item: WaitingEntry = { index: agent.limitedBy, delivery: 'queue', hops: 0, delegatedBy: null };
  agent.limitedBy = null;
  agent.waiting = agent.waiting.withOldest(item);
}

function claimWith(claim: Claim | null, entry: Entry): Claim | null {
  if (entry.type === 'claim') {
    const { daemon, epoch, attempt } = entry;
    return { daemon, epoch, attempt: attempt ?? 0, progressed: attempt === undefined };
  }
  return claim === null || claim.progressed || !isProgress(entry) ? claim : { ...claim, progressed: true };
}

/** Sequences of another stream start again at 0. */
function ingressWith(ingress: ConversationState['ingress'], entry: Entry): ConversationState['ingress'] {
  const { stream } = ingress;
  if (entry.type === 'claim')
    return (entry.ingress ?? null) === stream ? ingress : { stream: entry.ingress ?? null, sequence: 0 };
  const { ingressSequence: sequence = 0 } = entry;
  return sequence > ingress.sequence ? { stream, sequence } : ingress;
}

/** A post is no progress: people may post while no daemon runs. */
function isProgress(entry: Entry): boolean {
  return traitsOf(entry).isProgress && !(entry.type === 'message' && entry.role === 'user');
}

/** The calls of an answer: all open, none started. */
function requestedCalls(answer: MessageEntry, upTo: number): OpenCall[] {
  return (answer.tool_calls ?? []).map((call, position) => ({
    place: { index: answer.index, position },
    name: call.function.name,
    arguments: canonicalArguments(call.function.arguments),
    upTo,
    started: false,
    startedMs: 0,
    starts: 0,
    // Logs of older versions have no risks: treat the call as risky.
    risk: answer.risks?.[position] ?? ('risky' as const),
    approval: null,
    atCaller: answer.callerCalls?.includes(position) ? answer.createdAt : null,
  }));
}

function changeCall(next: Next, place: CallPlace, change: (call: OpenCall, turn: Turn) => OpenCall): void {
  const owner = ownerOf(next, place);
  if (!owner) return;
  changeAgent(next, owner, (agent) =>
    changeTurn(agent, (turn) => {
      turn.openCalls = turn.openCalls.map((call) =>
        samePlace(call.place, place) ? change(call, turn) : call,
      );
    }),
  );
}

function applyToolStarted(next: Next, { call: place, risk }: EntryOf<'tool-started'>): void {
  changeCall(next, place, (call, turn) => ({
    ...call,
    started: true,
    startedMs: turn.workedMs,
    starts: call.starts + 1,
    risk: risk ?? call.risk,
  }));
}

function applyApprovalRequested(next: Next, entry: EntryOf<'approval-requested'>): void {
  const { approvalId: id, mayHaveRun, createdAt: requestedAt, accepts, covers, asks } = entry;
  if (asks) {
    const question = { id, requestedAt, asks, arguments: entry.arguments ?? '{}' };
    changeCall(next, entry.call, (call) => ({ ...call, question }));
    return;
  }
  changeCall(next, entry.call, (call) => ({
    ...call,
    started: false,
    approval: { id, status: 'pending', mayHaveRun, requestedAt, accepts, covers },
  }));
}

function applyApprovalAnswered(next: Next, entry: EntryOf<'approval-answered'>): void {
  if (!entry.call) return;
  changeCall(next, entry.call, (call) => {
    if (call.question?.id === entry.approvalId) return { ...call, question: null };
    return { ...call, ...answeredApproval(call, entry) };
  });
}

function answeredApproval({ approval }: OpenCall, entry: EntryOf<'approval-answered'>): Partial<OpenCall> {
  const { answer, arguments: changed, reason, author } = entry;
  const isRunning = answer === 'approve' || answer === 'rerun';
  return {
    ...(changed !== undefined && { arguments: changed, changedBy: author.name }),
    ...(isRunning && reason !== undefined && { remark: { by: author.name, text: reason } }),
    approval: approval && { ...approval, status: 'given' as const },
  };
}

function applyResult(next: Next, entry: MessageEntry): void {
  const { call } = entry;
  const owner = call && ownerOf(next, call);
  if (!call || !owner) return;
  const answers = entry.answers ?? [];
  if (next.run?.agent === owner) returnInput(next, next.run, answers);
  changeAgent(next, owner, (agent) => {
    agent.executionMs += entry.duration ?? 0;
    agent.waiting = agent.waiting.without(answers);
    changeTurn(agent, (turn) => {
      turn.upTo = entry.index;
      turn.arrived = [...turn.arrived, ...answers];
      const open = turn.openCalls.find(({ place }) => samePlace(place, call));
      // Concurrent calls take the time of the longest one.
      if (open) turn.workedMs = Math.max(turn.workedMs, open.startedMs + (entry.duration ?? 0));
      turn.openCalls = turn.openCalls.filter((open) => !samePlace(open.place, call));
    });
  });
}

/** The answer to a question is not the run's input: the run waits for another message (V18). */
function returnInput(next: Next, { input, ...run }: Run, answers: readonly number[]): void {
  if (input !== undefined && answers.includes(input)) next.run = { ...run, awaitsInput: true };
}

/**
 * Copies of state values that the fold may change before it returns them. Written out field by field: a spread of so
 * many fields is many times slower, and opening a log folds every entry.
 */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function mutableCopy(state: ConversationState): Mutable<ConversationState> {
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
function changeAgent(
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
function changeTurn(agent: Mutable<AgentState>, change: (turn: Mutable<Turn>) => void): void {
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
    failure: agent.failure,
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
    upTo: turn.upTo,
    openCalls: turn.openCalls,
    modelCalls: turn.modelCalls,
    answeredUpTo: turn.answeredUpTo,
    hops: turn.hops,
    session: turn.session,
    toolsFrom: turn.toolsFrom,
    delegatedBy: turn.delegatedBy,
    lastWords: turn.lastWords,
    arrived: turn.arrived,
    wasTooLong: turn.wasTooLong,
    refusedRatio: turn.refusedRatio,
    candidate: turn.candidate,
    wasInvalid: turn.wasInvalid,
    isDismissed: turn.isDismissed,
  };
}

function newTurn(agent: AgentState, entry: EntryOf<'turn-started'>): Turn {
  const trigger = new Set(entry.trigger);
  const taken = agent.waiting.filter((item) => trigger.has(item.index));
  return {
    turnId: entry.turnId,
    agent: entry.agent,
    status: 'running',
    trigger: entry.trigger,
    startedAt: entry.index,
    resumedAt: entry.index,
    workedMs: 0,
    workingSince: entry.index,
    upTo: entry.index,
    openCalls: [],
    modelCalls: 0,
    answeredUpTo: 0,
    hops: entry.hops ?? 0,
    session: agent.session,
    toolsFrom: taken.findLast((item) => item.brings === 'tools')?.index ?? null,
    delegatedBy: taken[0]?.delegatedBy ?? null,
    lastWords: null,
    arrived: [],
    wasTooLong: false,
    refusedRatio: null,
    candidate: null,
    wasInvalid: false,
    isDismissed: false,
  };
}
