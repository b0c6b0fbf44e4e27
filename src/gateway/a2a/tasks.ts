import { setImmediate } from 'node:timers/promises';
import {
  type ListTasksRequest,
  type ListTasksResponse,
  type Message,
  type Task,
  TaskState,
} from '@a2a-js/sdk';
import {
  createTurnWatch,
  type Entry,
  isOfAPerson,
  type MessageEntry,
  type OwnPublisher,
  type Part,
  type Stopped,
  wireCallId,
} from '../../conversation/index.ts';
import { type NewId, ParleyError } from '../../kernel/index.ts';
import { conversationOf } from '../client-ids.ts';
import { type AddressOf, postOf, type SentPart } from '../files.ts';
import { hasRole, type Identity, requireAuthor, requireRole } from '../guard/access.ts';
import type { GatewayPort } from '../port.ts';
import { Arrivals } from '../progress/arrivals.ts';
import {
  type Act,
  actingFor,
  cancelTurns,
  conversationRows,
  orElse,
  type Posted,
  type Row,
  readLog,
  readTail,
  stoppedOf,
} from '../progress/ask.ts';
import { AgentTask, contentOf, postOfTask, replyOf, type TaskPlace } from './task.ts';

/**
 * The tasks of one agent, with the permissions of one caller.
 *
 * TASKS-1 A message without a task is a post and a new task; with a task it answers the task's question. A repeated message
 *    is the same post.
 * TASKS-2 It subscribes before it posts, so that live text is complete. A later subscriber gets each message when it is
 *    complete.
 * TASKS-3 The author of the post and operators may cancel (`cancelTurns`).
 * TASKS-4 A subscription stays open while the task needs input that only others can give: its reader cannot continue it.
 */

export const ANONYMOUS: OwnPublisher = 'a2a';

export interface TasksOptions {
  readonly daemon: GatewayPort;
  /** For what continues without the client of the request, until `closing`. */
  readonly lasting: () => GatewayPort;
  readonly closing: AbortSignal;
  /** Null: any agent. */
  readonly agent: string | null;
  readonly identity: Identity;
  readonly newId: NewId;
  /** Stores the files of a message. */
  readonly keep: (parts: readonly SentPart[]) => Promise<readonly Part[]>;
  /** Where the files of a conversation are fetched. */
  readonly address: (conversation: string) => AddressOf;
}

export interface Followed {
  readonly task: AgentTask;
  readonly arrivals: Arrivals;
}

export class Tasks {
  readonly #options: TasksOptions;
  readonly #act: Act;

  constructor(options: TasksOptions) {
    this.#options = options;
    this.#act = actingFor(options.daemon, options.identity, ANONYMOUS);
  }

  async send(message: Message): Promise<Followed> {
    const { daemon, newId } = this.#options;
    if (message.taskId) return await this.#reply(message);
    const conversation = message.contextId ? conversationOf(message.contextId) : newId();
    return Arrivals.subscribed(daemon, conversation, async (arrivals) => {
      const posted = await this.#begin(message, conversation);
      const stopped = await stoppedOf(daemon, conversation, posted.agents);
      const task = await this.#open(conversation, posted.index, stopped);
      const { unknownMentions } = posted;
      if (unknownMentions) task.note = { unknownMentions };
      return { task, arrivals };
    });
  }

  async load(taskId: string): Promise<AgentTask> {
    const ref = postOfTask(taskId);
    if (!ref) throw noTask(taskId);
    const { daemon } = this.#options;
    const task = await this.#open(ref.conversation, ref.index);
    const entries = await readLog(daemon, ref.conversation, ref.index);
    task.accept({ kind: 'entries', entries, isCurrent: true });
    return task;
  }

  list(request: ListTasksRequest, signal: AbortSignal): Promise<ListTasksResponse> {
    return listTasks(this.#options, request, signal);
  }

  /** The same task from its start. */
  again(task: AgentTask): Followed {
    return { task: this.#restarted(task), arrivals: new Arrivals(this.#options.daemon, task.conversation) };
  }

  /** First the past updates, then new ones, until the task ends or needs input. */
  async *follow(
    { task, arrivals }: Followed,
    signal: AbortSignal,
  ): AsyncGenerator<ReturnType<AgentTask['accept']>> {
    let isCurrent = false;
    for await (const received of arrivals.from(task.post.index, signal)) {
      const updates = task.accept(received);
      isCurrent ||= received.kind === 'entries' && received.isCurrent;
      if (isCurrent || task.progress.isOver) yield updates;
      if (task.progress.isOver) return;
    }
  }

  /** TASKS-4: the same task once others gave the input that it needs; null: there is nothing to wait for, or no reader. */
  async afterInput(task: AgentTask, signal: AbortSignal): Promise<Followed | null> {
    const { daemon, identity } = this.#options;
    const mayAnswer = task.open.some(({ approval }) => hasRole(identity, approval ? 'approve' : 'post'));
    if (!task.needsInput || mayAnswer) return null;
    const arrivals = new Arrivals(daemon, task.conversation);
    for await (const received of arrivals.from(task.post.index, signal)) {
      if (received.kind !== 'entries' || !received.isCurrent) continue;
      const now = await this.load(task.id);
      if (callsIn(now) !== callsIn(task)) return this.again(now);
    }
    return null;
  }

  async cancel(taskId: string): Promise<AgentTask> {
    const { identity, closing, lasting } = this.#options;
    const task = await this.load(taskId);
    requireAuthor(identity, task.post.author.id);
    if (task.state === TaskState.TASK_STATE_CANCELED) return task;
    if (task.isFinal || task.progress.busy.length === 0) {
      throw new ParleyError('TASK_NOT_CANCELABLE', task.isFinal ? 'it is over' : 'its turn has not begun', {
        hint: 'an operator can stop the whole conversation',
      });
    }
    const daemon = lasting();
    const tasks = new Tasks({ ...this.#options, daemon });
    await cancelTurns(daemon, actingFor(daemon, identity, ANONYMOUS), {
      conversation: task.conversation,
      index: task.post.index,
      async busy() {
        const { isFinal, progress } = await tasks.load(taskId);
        return isFinal ? [] : progress.busy;
      },
      async ended() {
        for await (const _ of tasks.follow(tasks.again(task), closing)); // until it has ended
      },
    });
    return tasks.load(taskId);
  }

  async #open(conversation: string, index: number, stopped?: Stopped): Promise<AgentTask> {
    const { daemon, agent, address } = this.#options;
    const [post] = await orElse(readLog(daemon, conversation, index, index + 1), []);
    if (!post || !isPost(post, agent)) throw noTask(`${conversation}.${index}`);
    const place = { conversation, address: address(conversation) };
    return new AgentTask(place, post, agent, await readTail(daemon, conversation, index), stopped);
  }

  #restarted({ conversation, post, before }: AgentTask): AgentTask {
    const { agent, address } = this.#options;
    return new AgentTask({ conversation, address: address(conversation) }, post, agent, before);
  }

  async #begin(message: Message, conversation: string): Promise<Posted> {
    const { agent, identity, keep } = this.#options;
    requireRole(identity, 'post');
    const meta = metaOf(message);
    return this.#act('post', {
      conversation,
      ...postOf(await keep(contentOf(message).parts)),
      id: message.messageId,
      ...(meta && { meta: { a2a: meta } }),
      ...(agent && { to: [agent] }),
    });
  }

  async #reply(message: Message): Promise<Followed> {
    const task = await this.load(message.taskId);
    if (message.contextId && conversationOf(message.contextId) !== task.conversation) {
      throw new ParleyError('BAD_REQUEST', `task ${task.id} belongs to context ${task.contextId}`);
    }
    if (task.hasMessage(this.#options.identity.publisher ?? ANONYMOUS, message.messageId))
      return this.again(task);
    if (!task.needsInput) {
      throw new ParleyError('TASK_TAKES_NO_INPUT', `task ${task.id} asks for nothing now`, {
        hint: 'send the message without a task: it is a new one in the same context',
      });
    }
    return Arrivals.subscribed(this.#options.daemon, task.conversation, async (arrivals) => {
      await this.#answer(message, task);
      return { task: this.#restarted(task), arrivals };
    });
  }

  async #answer(message: Message, { conversation, open, approvalsRequested }: AgentTask): Promise<void> {
    const { identity, keep } = this.#options;
    const reply = replyOf(message, open, approvalsRequested);
    if (reply.kind === 'words') {
      requireRole(identity, 'post');
      const { agent, replyTo, parts } = reply;
      const post = postOf(await keep(parts));
      await this.#act('post', { conversation, ...post, to: [agent], replyTo, id: message.messageId });
    } else {
      requireRole(identity, 'approve');
      await this.#act('answer', { approvalId: reply.approvalId, ...reply.body });
    }
  }
}

/** Fields that are stored with the post and not shown to agents; null: none. */
function metaOf({ contextId, metadata, extensions, referenceTaskIds }: Message): object | null {
  const kept = {
    ...(contextId && conversationOf(contextId) !== contextId && { contextId }),
    ...(metadata && Object.keys(metadata).length > 0 && { metadata }),
    ...(extensions.length > 0 && { extensions }),
    ...(referenceTaskIds.length > 0 && { referenceTaskIds }),
  };
  return Object.keys(kept).length > 0 ? kept : null;
}

/** The calls that wait for a person, as a text to compare. */
const callsIn = ({ open }: AgentTask): string => open.map(({ place }) => wireCallId(place)).join(' ');

function noTask(taskId: string): ParleyError {
  return new ParleyError('TASK_NOT_FOUND', `this agent has no task ${JSON.stringify(taskId)}`, {
    hint: 'the id of a task is in the answer to the message that began it',
  });
}

const PAGE_SIZE = 50;
const MOST_PAGE_SIZE = 100;
/** LIST-4 */
const MOST_BEFORE = 1_000;
const SLICE_MS = 10;

interface Source {
  readonly daemon: GatewayPort;
  /** Null: any agent. */
  readonly agent: string | null;
  readonly address: (conversation: string) => TaskPlace['address'];
}

type Changed = Pick<Row, 'id' | 'updatedAt'>;

interface SortKey {
  readonly at: string;
  readonly id: string;
}

interface Wanted {
  readonly pageSize: number;
  readonly after: SortKey | null;
  readonly since: string;
  readonly status: TaskState;
}

/**
 * Lists the tasks of an agent, newest change first.
 *
 * LIST-1  Logs are read in the order of their last change, until the page is complete: no task changed later than its
 *         conversation. `totalSize` counts the tasks of the logs that were read.
 * LIST-2  Only one log and the tasks of one page plus one are in memory. A client that disconnects ends the reading.
 * LIST-3  A page starts after the task that the token names, whatever has changed since.
 * LIST-4  A log is folded once: what is open before a post is looked for in the entries since all turns had ended, at most
 *         `MOST_BEFORE`. Other requests come between the tasks.
 */
async function listTasks(
  { daemon, agent, address }: Source,
  request: ListTasksRequest,
  signal: AbortSignal,
): Promise<ListTasksResponse> {
  const wanted = wantedBy(request);
  const rows = await rowsOf(daemon, request.contextId);
  let rest: AgentTask[] = [];
  let totalSize = 0;
  for (const { id, updatedAt } of rows) {
    if (updatedAt < wanted.since || isCertain(rest, wanted, updatedAt)) break;
    signal.throwIfAborted();
    const place = { conversation: id, address: address(id) };
    for await (const task of tasksIn(place, await orElse(readLog(daemon, id, 0), []), agent)) {
      signal.throwIfAborted();
      if (!fits(task, wanted)) continue;
      totalSize += 1;
      if (!isAfter(sortKeyOf(task), wanted.after)) continue;
      rest = [...rest, task]
        .sort((one, other) => order(sortKeyOf(one), sortKeyOf(other)))
        .slice(0, wanted.pageSize + 1);
    }
  }
  const page = rest.slice(0, wanted.pageSize);
  const last = page.at(-1);
  return {
    tasks: page.map((task) => shown(task, request)),
    nextPageToken: last && rest.length > page.length ? tokenOf(sortKeyOf(last)) : '',
    pageSize: wanted.pageSize,
    totalSize,
  };
}

function wantedBy(request: ListTasksRequest): Wanted {
  const { pageSize = PAGE_SIZE, pageToken, status, statusTimestampAfter: since } = request;
  if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > MOST_PAGE_SIZE)
    throw invalid(`pageSize must be an integer from 1 to ${MOST_PAGE_SIZE}`);
  if (status === TaskState.UNRECOGNIZED)
    throw invalid('status is no state of a task; TASK_STATE_WORKING is one');
  if (since !== undefined && Number.isNaN(Date.parse(since)))
    throw invalid('statusTimestampAfter is no time; 2026-01-31T12:00:00Z is one');
  return {
    pageSize,
    after: pageToken === '' ? null : sortKeyFrom(pageToken),
    since: since === undefined ? '' : new Date(since).toISOString(),
    status,
  };
}

/** Newest change first. */
async function rowsOf(daemon: GatewayPort, contextId: string): Promise<Changed[]> {
  if (contextId !== '') return [{ id: conversationOf(contextId), updatedAt: '~' }];
  const rows: Changed[] = [];
  for await (const row of conversationRows(daemon)) rows.push(row);
  return rows.sort((one, other) => (one.updatedAt > other.updatedAt ? -1 : 1));
}

/** LIST-4. Answers to questions belong to the task that asked. */
async function* tasksIn(
  place: TaskPlace,
  entries: readonly Entry[],
  agent: string | null,
): AsyncGenerator<AgentTask, void> {
  const answers = new Set(
    entries.flatMap((entry) => (entry.type === 'message' ? (entry.answers ?? []) : [])),
  );
  const watch = createTurnWatch();
  /** The newest of each agent; of all: null. */
  const stops = new Map<string | null, Entry>();
  let before: Entry[] = [];
  let yielded = performance.now();
  for (const [at, entry] of entries.entries()) {
    if (isPost(entry, agent) && !answers.has(entry.index)) {
      before = watch.settled ? [] : before.slice(-MOST_BEFORE);
      const task = new AgentTask(place, entry, agent, [...stops.values(), ...before]);
      for (let next = at; next < entries.length && !task.progress.isOver; next++)
        task.accept({
          kind: 'entries',
          entries: entries.slice(next, next + 1),
          isCurrent: next === entries.length - 1,
        });
      yield task;
      if (performance.now() - yielded > SLICE_MS) {
        await setImmediate();
        yielded = performance.now();
      }
    }
    watch.observe(entry);
    before.push(entry);
    if (entry.type !== 'agent-stopped' && entry.type !== 'agent-resumed') continue;
    if (entry.agent === null) stops.clear();
    stops.set(entry.agent, entry);
  }
}

function isPost(entry: Entry, agent: string | null): entry is MessageEntry {
  return isOfAPerson(entry) && (agent === null || entry.to?.includes(agent) === true);
}

function fits(task: AgentTask, { status, since }: Wanted): boolean {
  const isState = status === TaskState.TASK_STATE_UNSPECIFIED || task.state === status;
  return isState && task.changedAt >= since;
}

/** LIST-1: all remaining logs changed before the last task of the page. */
function isCertain(rest: readonly AgentTask[], { pageSize }: Wanted, updatedAt: string): boolean {
  return rest.filter((task) => task.changedAt > updatedAt).length > pageSize;
}

function shown(task: AgentTask, { historyLength, includeArtifacts }: ListTasksRequest): Task {
  const whole = task.snapshot(historyLength);
  return includeArtifacts ? whole : { ...whole, artifacts: [] };
}

function sortKeyOf({ changedAt, id }: AgentTask): SortKey {
  return { at: changedAt, id };
}

/** Newest first; at the same time by id. */
function order(one: SortKey, other: SortKey): number {
  if (one.at !== other.at) return one.at > other.at ? -1 : 1;
  return one.id > other.id ? -1 : 1;
}

function isAfter(place: SortKey, after: SortKey | null): boolean {
  return after === null || (place.id !== after.id && order(after, place) < 0);
}

function tokenOf({ at, id }: SortKey): string {
  return Buffer.from(JSON.stringify([at, id])).toString('base64url');
}

function sortKeyFrom(token: string): SortKey {
  try {
    const [at, id] = JSON.parse(Buffer.from(token, 'base64url').toString()) as unknown[];
    if (typeof at === 'string' && typeof id === 'string' && tokenOf({ at, id }) === token) return { at, id };
  } catch {
    // Not ours.
  }
  throw invalid('pageToken is none of this agent: send `nextPageToken` of the page before');
}

function invalid(message: string): ParleyError {
  return new ParleyError('BAD_REQUEST', message);
}
