import { type ListTasksRequest, type ListTasksResponse, type Message, TaskState } from '@a2a-js/sdk';
import {
  isOfAPerson,
  type MessageEntry,
  type OwnPublisher,
  type Part,
  type Stopped,
  wireCallId,
} from '../../conversation/index.ts';
import { type NewId, ParleyError } from '../../kernel/index.ts';
import { conversationOf } from '../conversation-id.ts';
import { type AddressOf, postOf, type SentPart } from '../files.ts';
import { hasRole, type Identity, requireAuthor, requireRole } from '../guard/access.ts';
import type { GatewayPort } from '../port.ts';
import { Arrivals } from '../progress/arrivals.ts';
import { type Act, actingFor, orElse, type Posted, readLog, readTail, stoppedOf } from '../progress/ask.ts';
import { cancelTurns } from '../progress/cancel.ts';
import { listTasks } from './listing.ts';
import { contentOf, replyOf } from './messages.ts';
import { AgentTask, postOfTask } from './task.ts';

/**
 * The tasks of one agent, with the permissions of one caller.
 *
 * TASKS-1 A message without a task is a post and a new task; with a task it answers the task's question. A repeated message
 *    is the same post.
 * TASKS-2 It subscribes before it posts, so that live text is complete. A later subscriber gets each message when it is
 *    complete.
 * TASKS-3 The author of the post and operators may cancel (`progress/cancel.ts`).
 * TASKS-4 A subscription stays open while the task needs input that only others can give: its reader cannot continue it.
 */

export const ANONYMOUS: OwnPublisher = 'a2a';

export interface TasksOptions {
  readonly daemon: GatewayPort;
  /** Null: any agent. */
  readonly agent: string | null;
  readonly identity: Identity;
  readonly newId: NewId;
  /** Stores the files of a message. */
  readonly keep: (parts: readonly SentPart[]) => Promise<readonly Part[]>;
  /** Of a conversation. */
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
      const task = await openTask(this.#options, conversation, posted.index, stopped);
      const { unknownMentions } = posted;
      if (unknownMentions) task.note = { unknownMentions };
      return { task, arrivals };
    });
  }

  async load(taskId: string): Promise<AgentTask> {
    const ref = postOfTask(taskId);
    if (!ref) throw noTask(taskId);
    const { daemon } = this.#options;
    const task = await openTask(this.#options, ref.conversation, ref.index);
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

  async cancel(taskId: string, signal: AbortSignal): Promise<AgentTask> {
    const { daemon } = this.#options;
    const task = await this.load(taskId);
    requireAuthor(this.#options.identity, task.post.author.id);
    if (task.state === TaskState.TASK_STATE_CANCELED) return task;
    const { busy } = task.progress;
    if (task.isFinal || busy.length === 0) {
      throw new ParleyError('TASK_NOT_CANCELABLE', task.isFinal ? 'it is over' : 'its turn has not begun', {
        hint: 'an operator can stop the whole conversation',
      });
    }
    const { conversation, post } = task;
    const again = this.again(task);
    await cancelTurns(daemon, this.#act, { conversation, index: post.index, busy }, async () => {
      for await (const _ of this.follow(again, signal)); // until it has ended
    });
    return again.task;
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

async function openTask(
  { daemon, agent, address }: TasksOptions,
  conversation: string,
  index: number,
  stopped?: Stopped,
): Promise<AgentTask> {
  const taskId = `${conversation}.${index}`;
  const post = await postAt(daemon, conversation, index);
  if (!post || (agent !== null && !post.to?.includes(agent))) throw noTask(taskId);
  const place = { conversation, address: address(conversation) };
  return new AgentTask(place, post, agent, await readTail(daemon, conversation, index), stopped);
}

async function postAt(
  daemon: GatewayPort,
  conversation: string,
  index: number,
): Promise<MessageEntry | null> {
  const [entry] = await orElse(readLog(daemon, conversation, index, index + 1), []);
  return isOfAPerson(entry) ? entry : null;
}

function noTask(taskId: string): ParleyError {
  return new ParleyError('TASK_NOT_FOUND', `this agent has no task ${JSON.stringify(taskId)}`, {
    hint: 'the id of a task is in the answer to the message that began it',
  });
}
