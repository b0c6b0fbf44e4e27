import type { Model, Retry } from '../../agents/index.ts';
import type { AnswerOf } from '../../bus/index.ts';
import {
  type AgentState,
  agentState,
  type ConversationState,
  type Entry,
  isStopped,
  splitFailedAnswer,
  visitsOf,
} from '../../conversation/index.ts';
import { cut } from '../../kernel/index.ts';
import type { RowActivity } from '../../persistence/index.ts';
import type { ToolProgress } from '../tools/run-tool.ts';

/**
 * What the agents of a conversation do or wait for, and since when. Folded from the log, so that it survives a restart; only
 * running turns and programs that are not connected are known to the daemon that works on the conversation.
 */

export type Activity = NonNullable<AnswerOf<'conversations'>['conversations'][number]['activity']>[number];

type AgentStatus = 'idle' | Activity['status'];

export function statusOf(state: ConversationState, slug: string): AgentStatus {
  const { turn, limitedBy, failedAt } = agentState(state, slug);
  if (turn) return asksPerson(turn) ? 'waiting' : turn.status;
  if (isStopped(state, slug)) return 'stopped';
  if (state.run?.awaitsInput && state.run.agent === slug) return 'waiting';
  if (limitedBy !== null) return 'limited';
  if (failedAt !== null) return 'failed';
  return isLeftAtNode(state, slug) ? 'waiting' : 'idle';
}

/** A run is at its node, but its turn there was stopped: it begins again with the next message. */
function isLeftAtNode(state: ConversationState, slug: string): boolean {
  const isAtNode = visitsOf(state.run).some(({ agent }) => agent === slug);
  return isAtNode && agentState(state, slug).waiting.length === 0;
}

/** A call runs whose server asks a person: nothing moves until the answer. */
function asksPerson({ openCalls }: NonNullable<AgentState['turn']>): boolean {
  return openCalls.some(({ question }) => question);
}

/** The limit that ended the last turn of an agent, by its key in `limits`. */
export function reachedLimit(
  state: ConversationState,
  slug: string,
  entries: readonly Entry[],
): string | undefined {
  const reached = entries[agentState(state, slug).limitedBy ?? -1];
  return reached?.type === 'limit-reached' ? reached.limit : undefined;
}

export function withStatus(state: ConversationState, wanted: AgentStatus): string[] {
  return agentsOf(state).filter((slug) => statusOf(state, slug) === wanted);
}

/** Messages wait for this agent, or a run is at its node. */
export function hasWork(state: ConversationState, slug: string): boolean {
  return (
    agentState(state, slug).waiting.length > 0 || visitsOf(state.run).some(({ agent }) => agent === slug)
  );
}

/** Without running turns: a stored row may be older than the end of a turn. */
export function storedActivity(state: ConversationState, entries: readonly Entry[]): RowActivity[] {
  return agentsOf(state).flatMap((slug) => [...waits(state, slug, entries), ...halted(state, slug, entries)]);
}

/** What this daemon knows of running turns besides the log. */
interface CurrentTurns {
  readonly remote: Pick<Model, 'isAbsent'>;
  readonly retries: Pick<ReadonlyMap<string, RunningRetry>, 'get'>;
  readonly toolProgress: Pick<ReadonlyMap<string, ToolProgress>, 'get'>;
}

/** The running turns of a conversation in memory. */
export function runningActivity(
  state: ConversationState,
  entries: readonly Entry[],
  { remote, retries, toolProgress }: CurrentTurns,
): Activity[] {
  return agentsOf(state).flatMap((agent): Activity[] => {
    const { turn } = agentState(state, agent);
    if (turn?.status !== 'running') return [];
    if (remote.isAbsent?.(turn.turnId))
      return [{ agent, status: 'waiting', since: timeOf(entries, turn.upTo), for: 'program', of: agent }];
    const retry = retries.get(turn.turnId);
    const since = timeOf(entries, turn.startedAt);
    const calls = toolProgress.get(turn.turnId);
    const more = { ...(retry && { retry: retryOf(retry) }), ...(calls && { progress: calls }) };
    return [{ agent, status: 'running', since, ...more }];
  });
}

function retryOf({ attempt, attempts, since, waitMs, code, message }: RunningRetry): Activity['retry'] {
  const at = new Date(since + waitMs).toISOString();
  return { attempt, attempts, at, code, message: cut(message, MOST_OF_MESSAGE) };
}

type RunningRetry = Retry & { readonly since: number };

/** Characters. */
const MOST_OF_MESSAGE = 300;

function waits(state: ConversationState, agent: string, entries: readonly Entry[]): Activity[] {
  const { turn } = agentState(state, agent);
  const waiting = (since: string | null, what: Partial<Activity>): Activity => {
    return { agent, status: 'waiting', since, ...what };
  };
  if (!turn && statusOf(state, agent) === 'waiting') return [waitingRun(state, agent, entries)];
  return (turn?.openCalls ?? []).flatMap(
    ({ approval, name: of, place, arguments: given, atCaller, question }) => {
      if (question) {
        const entry = requestOf(entries, question.id);
        return [waiting(question.requestedAt, { for: 'approval', of, asks: question.asks.server, entry })];
      }
      if (atCaller) return [waiting(atCaller, { for: 'caller', of, entry: place.index })];
      if (approval?.status === 'pending') {
        const entry = requestOf(entries, approval.id);
        return [
          waiting(approval.requestedAt, { for: approval.mayHaveRun ? 'outcome' : 'approval', of, entry }),
        ];
      }
      const since = timeOf(entries, place.index);
      if (of === 'ask')
        return [waiting(since, { for: 'question', entry: place.index, position: place.position })];
      if (of !== 'delegate' || turn?.status === 'running') return [];
      const to = delegateOf(given);
      return [waiting(since, { for: 'agent', ...(to === undefined ? {} : { of: to }) })];
    },
  );
}

/** Names the last words of the agent at its node, else the newest ones of anybody. */
function waitingRun({ run }: ConversationState, agent: string, entries: readonly Entry[]): Activity {
  const visit = visitsOf(run).find((one) => one.agent === agent);
  const at = visit?.enteredAt ?? -1;
  const says = (entry: Entry) => entry.type === 'message' && entry.role !== 'tool' && !!entry.content;
  const own = entries.slice(at + 1).findLast((entry) => entry.author.id === agent && says(entry));
  const said = own ?? entries.findLast(says);
  const since = timeOf(entries, at);
  return {
    agent,
    status: 'waiting',
    since,
    for: 'input',
    of: run?.workflowId,
    ...(said && { entry: said.index }),
  };
}

/** Limited, stopped with outstanding work, or failed. */
function halted(state: ConversationState, agent: string, entries: readonly Entry[]): Activity[] {
  const { limitedBy, failedAt } = agentState(state, agent);
  const status = statusOf(state, agent);
  if (status === 'limited' && limitedBy !== null) {
    const of = reachedLimit(state, agent, entries);
    return [{ agent, status, since: timeOf(entries, limitedBy), ...(of && { of }), entry: limitedBy }];
  }
  if (status === 'stopped' && hasWork(state, agent))
    return [{ agent, status, since: stoppedSince(entries, agent) }];
  if (status !== 'failed' || failedAt === null) return [];
  const failure = failureBefore(entries, agent, failedAt);
  const of = failure && codeOf(failure);
  const entry = failure?.index ?? failedAt;
  return [{ agent, status, since: timeOf(entries, failedAt), ...(of === undefined ? {} : { of }), entry }];
}

function agentsOf({ agents, run }: ConversationState): string[] {
  const inRun = visitsOf(run).flatMap(({ agent }) => agent ?? []); // it may have no state yet
  return [...new Set([...Object.keys(agents), ...inRun])];
}

function timeOf(entries: readonly Entry[], index: number): string | null {
  return entries[index]?.createdAt ?? null;
}

function stoppedSince(entries: readonly Entry[], agent: string): string | null {
  const stops = (entry: Entry) =>
    entry.type === 'agent-stopped' && (entry.agent === null || entry.agent === agent);
  return entries.findLast(stops)?.createdAt ?? null;
}

function requestOf(entries: readonly Entry[], approvalId: string): number | undefined {
  return entries.findLast((entry) => entry.type === 'approval-requested' && entry.approvalId === approvalId)
    ?.index;
}

/** The answer before the end of a failed turn that says why, or the limit that it was given up at. */
function failureBefore(entries: readonly Entry[], agent: string, failedAt: number): Entry | undefined {
  return entries
    .slice(Math.max(0, failedAt - FAILURE_WITHIN), failedAt)
    .findLast((entry) =>
      entry.type === 'message'
        ? entry.author.id === agent && entry.partType === 'error'
        : entry.type === 'limit-reached' && entry.agent === agent,
    );
}

function codeOf(entry: Entry): string | undefined {
  if (entry.type === 'limit-reached') return entry.limit;
  const code = entry.type === 'message' ? splitFailedAnswer(entry.content).failure?.code : undefined;
  return code && /^\w{1,64}$/.test(code) ? code : undefined;
}

/** Entries between the failure and the end of its turn: results of calls that it leaves. */
const FAILURE_WITHIN = 20;

function delegateOf(given: string): string | undefined {
  try {
    const { to }: { to?: unknown } = JSON.parse(given);
    return typeof to === 'string' ? to : undefined;
  } catch {
    return undefined;
  }
}
