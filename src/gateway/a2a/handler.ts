import {
  AGENT_CARD_PATH,
  type AgentCard,
  type CancelTaskRequest,
  type GetTaskRequest,
  type ListTasksRequest,
  type ListTasksResponse,
  type Message,
  Role,
  type SendMessageConfiguration,
  type SendMessageRequest,
  type StreamResponse,
  type SubscribeToTaskRequest,
  type Task,
} from '@a2a-js/sdk';
import {
  A2AError,
  ContentTypeNotSupportedError,
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors';
import type { A2ARequestHandler } from '@a2a-js/sdk/server';
import { cut, ParleyError } from '../../kernel/index.ts';
import type { Wire } from '../port.ts';
import { errorText, httpStatus, publicErrorOf } from '../problem.ts';
import type { Followed, Tasks } from './tasks.ts';

interface Faults extends Pick<Wire, 'statusOf'> {
  /** Called with bugs. */
  readonly onFault: (error: unknown) => void;
}

/** The requests of the SDK's transports, answered from the log. */
export class AgentRequests implements A2ARequestHandler {
  readonly #card: AgentCard;
  readonly #tasks: Tasks;
  readonly #signal: AbortSignal;
  readonly #faults: Faults;

  /** `signal`: the client has disconnected. */
  constructor(card: AgentCard, tasks: Tasks, signal: AbortSignal, faults: Faults) {
    this.#card = card;
    this.#tasks = tasks;
    this.#signal = signal;
    this.#faults = faults;
  }

  async getAgentCard(): Promise<AgentCard> {
    return this.#card;
  }

  async getAuthenticatedExtendedAgentCard(): Promise<AgentCard> {
    const hint = `the card at ${AGENT_CARD_PATH} has everything`;
    throw this.#fault(new ParleyError('UNSUPPORTED_OPERATION', 'there is no extended card', { hint }));
  }

  async sendMessage(request: SendMessageRequest): Promise<Task> {
    const { returnImmediately, historyLength } = request.configuration ?? {};
    const sent = await this.#send(request);
    return this.#guarded(request, async () => {
      for await (const _ of this.#tasks.follow(sent, this.#signal)) if (returnImmediately) break;
      return sent.task.snapshot(historyLength);
    });
  }

  async *sendMessageStream(request: SendMessageRequest): AsyncGenerator<StreamResponse> {
    yield* this.#stream(await this.#send(request), request.configuration?.historyLength);
  }

  #send({ tenant, message, configuration }: SendMessageRequest): Promise<Followed> {
    return this.#guarded({ tenant, historyLength: configuration?.historyLength }, () => {
      checkConfiguration(configuration);
      return this.#tasks.send(messageOf(message));
    });
  }

  getTask(request: GetTaskRequest): Promise<Task> {
    return this.#guarded(request, async () =>
      (await this.#tasks.load(request.id)).snapshot(request.historyLength),
    );
  }

  cancelTask(request: CancelTaskRequest): Promise<Task> {
    return this.#guarded(request, async () =>
      (await this.#tasks.cancel(request.id, this.#signal)).snapshot(),
    );
  }

  async *resubscribe(request: SubscribeToTaskRequest): AsyncGenerator<StreamResponse> {
    const loaded = await this.#guarded(request, async () => {
      const task = await this.#tasks.load(request.id);
      if (!task.isFinal) return task;
      throw new ParleyError('UNSUPPORTED_OPERATION', 'the task is over', { hint: 'get it instead' });
    });
    yield* this.#stream(this.#tasks.again(loaded));
  }

  listTasks(request: ListTasksRequest): Promise<ListTasksResponse> {
    return this.#guarded(request, () => this.#tasks.list(request, this.#signal));
  }

  readonly createTaskPushNotificationConfig = refusePush;
  readonly getTaskPushNotificationConfig = refusePush;
  readonly listTaskPushNotificationConfigs = refusePush;
  readonly deleteTaskPushNotificationConfig = refusePush;

  /** First the current task, then its updates; again from there after input by others (TASKS-4). */
  async *#stream(followed: Followed, historyLength?: number): AsyncGenerator<StreamResponse> {
    try {
      for (let current: Followed | null = followed; current !== null; ) {
        let isFirst = true;
        for await (const updates of this.#tasks.follow(current, this.#signal)) {
          if (isFirst) yield { payload: { $case: 'task', value: current.task.snapshot(historyLength) } };
          else for (const payload of updates) yield { payload };
          isFirst = false;
        }
        current = await this.#tasks.afterInput(current.task, this.#signal);
      }
    } catch (error) {
      throw this.#fault(error);
    }
  }

  #fault(error: unknown): Error {
    return faultOf(error, this.#faults);
  }

  /** Checks what every request may name. The card has no tenant: what is meant for another agent's must not act here. */
  async #guarded<T>(
    {
      tenant,
      historyLength: length,
    }: { readonly tenant: string; readonly historyLength?: number | undefined },
    work: () => Promise<T>,
  ): Promise<T> {
    try {
      if (tenant) {
        const hint = 'leave tenant out: the card of this agent has none';
        throw new ParleyError('BAD_REQUEST', `there is no tenant ${JSON.stringify(cut(tenant, 100))}`, {
          hint,
        });
      }
      if (length !== undefined && !(Number.isInteger(length) && length >= 0))
        throw new ParleyError('BAD_REQUEST', 'historyLength must be an integer that is not negative');
      return await work();
    } catch (error) {
      throw this.#fault(error);
    }
  }
}

const refusePush = async (): Promise<never> => {
  throw new PushNotificationNotSupportedError();
};

function messageOf(message: Message | undefined): Message {
  if (!message?.messageId) throw new ParleyError('BAD_REQUEST', 'message.messageId is required');
  if (message.role === Role.ROLE_USER) return message;
  const hint = 'ROLE_USER (in version 0.3: user) is what a client sends';
  throw new ParleyError('BAD_REQUEST', 'message.role must be that of the client', { hint });
}

/** Refuses unsupported settings before anything is posted. */
function checkConfiguration(configuration: SendMessageConfiguration | undefined): void {
  if (!configuration) return;
  const { taskPushNotificationConfig: push, acceptedOutputModes: modes } = configuration;
  if (push !== undefined) {
    const hint = 'leave the configuration out; stream the task, or get it';
    throw new ParleyError('PUSH_NOT_SUPPORTED', 'push notifications are not sent', { hint });
  }
  if (modes.length > 0 && !modes.some((mode) => /^(text\b|\*)/.test(mode))) {
    throw new ParleyError('CONTENT_NOT_SUPPORTED', 'answers are text/plain', {
      hint: 'name text/plain in acceptedOutputModes, or leave them out',
    });
  }
}

type ErrorClass = new (options: {
  message: string;
  cause: unknown;
  metadata: Record<string, string>;
}) => A2AError;

const CLASSES: Readonly<Record<string, ErrorClass>> = {
  TASK_NOT_FOUND: TaskNotFoundError,
  TASK_NOT_CANCELABLE: TaskNotCancelableError,
  TASK_TAKES_NO_INPUT: UnsupportedOperationError,
  UNSUPPORTED_OPERATION: UnsupportedOperationError,
  CONTENT_NOT_SUPPORTED: ContentTypeNotSupportedError,
  PUSH_NOT_SUPPORTED: PushNotificationNotSupportedError,
};

/** Maps refusals to the protocol's errors. The message keeps the documented code. */
function faultOf(error: unknown, { onFault, statusOf }: Faults): Error {
  if (error instanceof A2AError) return error;
  const shown = publicErrorOf(error, onFault);
  const { code } = shown;
  const isOurs = httpStatus(code, statusOf) >= 500; // another request cannot avoid it
  const Fault = CLASSES[code] ?? (isOurs ? A2AError : RequestMalformedError);
  return new Fault({ message: errorText(shown), cause: error, metadata: { code } });
}
