import type {
  AgentCard,
  CancelTaskRequest,
  GetTaskRequest,
  ListTasksResponse,
  Message,
  SendMessageRequest,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
  TaskPushNotificationConfig,
} from '@a2a-js/sdk';
import { PushNotificationNotSupportedError } from '@a2a-js/sdk/errors';
import type { A2ARequestHandler } from '@a2a-js/sdk/server';
import { ParleyError } from '../../kernel/index.ts';
import { faultOf } from './faults.ts';
import type { Followed, Tasks } from './tasks.ts';

/** What the SDK's transports ask of an agent, answered from the log. */
export class AgentRequests implements A2ARequestHandler {
  readonly #card: AgentCard;
  readonly #tasks: Tasks;
  readonly #signal: AbortSignal;

  /** `signal`: nobody waits for the answer any more. */
  constructor(card: AgentCard, tasks: Tasks, signal: AbortSignal) {
    this.#card = card;
    this.#tasks = tasks;
    this.#signal = signal;
  }

  async getAgentCard(): Promise<AgentCard> {
    return this.#card;
  }

  async getAuthenticatedExtendedAgentCard(): Promise<AgentCard> {
    return this.#card;
  }

  sendMessage({ message, configuration }: SendMessageRequest): Promise<Task> {
    return this.#guarded(async () => {
      const sent = await this.#tasks.send(messageOf(message));
      const seen = this.#tasks.follow(sent, this.#signal);
      for await (const _ of seen) if (configuration?.returnImmediately) break;
      return sent.task.snapshot(configuration?.historyLength);
    });
  }

  async *sendMessageStream({ message, configuration }: SendMessageRequest): AsyncGenerator<StreamResponse> {
    const sent = await this.#guarded(() => this.#tasks.send(messageOf(message)));
    yield* this.#stream(sent, configuration?.historyLength);
  }

  getTask({ id, historyLength }: GetTaskRequest): Promise<Task> {
    return this.#guarded(async () => (await this.#tasks.load(id)).snapshot(historyLength));
  }

  cancelTask({ id }: CancelTaskRequest): Promise<Task> {
    return this.#guarded(async () => (await this.#tasks.cancel(id, this.#signal)).snapshot());
  }

  async *resubscribe({ id }: SubscribeToTaskRequest): AsyncGenerator<StreamResponse> {
    const loaded = await this.#guarded(() => this.#tasks.load(id));
    if (loaded.isFinal) {
      throw faultOf(new ParleyError('UNSUPPORTED_OPERATION', 'the task is over', { hint: 'get it instead' }));
    }
    yield* this.#stream(this.#tasks.again(loaded));
  }

  async listTasks(): Promise<ListTasksResponse> {
    const hint = 'GET /api/conversations/<contextId>/entries has all of it';
    throw faultOf(new ParleyError('UNSUPPORTED_OPERATION', 'tasks are not listed', { hint }));
  }

  async createTaskPushNotificationConfig(): Promise<TaskPushNotificationConfig> {
    throw new PushNotificationNotSupportedError();
  }

  async getTaskPushNotificationConfig(): Promise<TaskPushNotificationConfig> {
    throw new PushNotificationNotSupportedError();
  }

  async listTaskPushNotificationConfigs(): Promise<never> {
    throw new PushNotificationNotSupportedError();
  }

  async deleteTaskPushNotificationConfig(): Promise<void> {
    throw new PushNotificationNotSupportedError();
  }

  /** First where it stands, then what changes. */
  async *#stream(followed: Followed, historyLength?: number): AsyncGenerator<StreamResponse> {
    let isFirst = true;
    try {
      for await (const updates of this.#tasks.follow(followed, this.#signal)) {
        if (isFirst) yield { payload: { $case: 'task', value: followed.task.snapshot(historyLength) } };
        else for (const payload of updates) yield { payload };
        isFirst = false;
      }
    } catch (error) {
      throw faultOf(error);
    }
  }

  async #guarded<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw faultOf(error);
    }
  }
}

function messageOf(message: Message | undefined): Message {
  if (message?.messageId) return message;
  throw new ParleyError('BAD_REQUEST', 'message.messageId is required');
}
