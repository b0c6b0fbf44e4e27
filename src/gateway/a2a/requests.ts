import {
  A2A_PROTOCOL_VERSION,
  A2A_VERSION_HEADER,
  AGENT_CARD_PATH,
  AgentCard,
  type CancelTaskRequest,
  formatSSEEvent,
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
import { A2A_LEGACY_PROTOCOL_VERSION, duplicateInterfacesForLegacy } from '@a2a-js/sdk/compat/v0_3';
import { LegacyJsonRpcTransportHandler, LegacyRestTransportHandler } from '@a2a-js/sdk/compat/v0_3/server';
import {
  A2AError,
  ContentTypeNotSupportedError,
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors';
import {
  type A2ARequestHandler,
  JsonRpcTransportHandler,
  ServerCallContext,
  validateVersion,
} from '@a2a-js/sdk/server';
import { cut, isBase64, isRecord, onAbort, ParleyError, valueAt } from '../../kernel/index.ts';
import type { Request, RouteContext } from '../context.ts';
import { faultsOf } from '../context.ts';
import { addressOf, baseOf, keepParts } from '../files.ts';
import { jsonBody } from '../guard/body.ts';
import type { Wire } from '../port.ts';
import { errorText, httpStatus, publicErrorOf } from '../problem.ts';
import { ask } from '../progress/ask.ts';
import { streamed } from '../progress/event-stream.ts';
import { ANONYMOUS, type Followed, Tasks } from './tasks.ts';

/**
 * Answers the requests of `routes.ts`.
 *
 * A2A-ROUTES-1 Clients of version 0.3, which name no version, get answers in that version.
 * A2A-ROUTES-2 A client that disconnects does not end the turn: it may get the task or subscribe to it again.
 */

/** In place of an agent: any agent. */
const ANY_AGENT: Described = {
  slug: 'parley',
  name: 'Parley',
  description: 'a team of agents; the routing rules choose which one answers',
};

export async function listAgents(context: Request): Promise<Response> {
  const agents = (await allAgents(context)).map(({ slug, name, description }) => {
    return { slug, name, description, card: `${urlOf(context, slug)}/${AGENT_CARD_PATH}` };
  });
  return context.json({ agents });
}

export async function card(context: Request, slug: string = ANY_AGENT.slug): Promise<Response> {
  const own = await cardFor(context, slug);
  if (versionOf(context) !== A2A_LEGACY_PROTOCOL_VERSION)
    return context.json(AgentCard.toJSON(own) as object);
  // The SDK's handler calls this method alone for a card.
  const source = { getAuthenticatedExtendedAgentCard: async () => own } as unknown as A2ARequestHandler;
  const legacy = new LegacyRestTransportHandler(source);
  return context.json(await legacy.getAuthenticatedExtendedAgentCard(new ServerCallContext()));
}

export async function answer(context: Request, slug: string): Promise<Response> {
  const gone = new AbortController();
  const onGone = () => gone.abort();
  const detach = onAbort([context.var.routes.closing, context.req.raw.signal], onGone);
  try {
    const own = await cardFor(context, slug);
    const requests = requestsOf(context, own, slug, gone.signal);
    const body = await readRequest(context, versionOf(context) === A2A_LEGACY_PROTOCOL_VERSION);
    const answered = await dispatch(context, requests, own, body);
    if (!(Symbol.asyncIterator in answered)) return context.json(answered);
    const first = await answered.next().catch((error: unknown) => ({ error }));
    if ('error' in first) return context.json(asFaultOfClient(body, refusalOf(body, first.error)));
    return streamed(context, frames(body, first, answered), onGone);
  } catch (error) {
    if (error instanceof Unreadable) return context.json(error.answer);
    throw error;
  } finally {
    detach(); // a stream ends by itself
  }
}

type Answered = object | AsyncGenerator<object, void, undefined>;

async function dispatch(
  context: Request,
  requests: AgentRequests,
  own: AgentCard,
  body: Record<string, unknown>,
): Promise<Answered> {
  const requestedVersion = versionOf(context);
  try {
    validateVersion(requestedVersion, own, 'JSONRPC');
  } catch (error) {
    return refusalOf(body, error);
  }
  const call = new ServerCallContext({ requestedVersion });
  const isLegacy = requestedVersion === A2A_LEGACY_PROTOCOL_VERSION;
  const Handler = isLegacy ? LegacyJsonRpcTransportHandler : JsonRpcTransportHandler;
  const answered = await new Handler(requests).handle(body, call);
  return Symbol.asyncIterator in answered ? answered : asFaultOfClient(body, answered);
}

async function* frames(
  body: Record<string, unknown>,
  first: IteratorResult<object, void>,
  rest: AsyncGenerator<object, void, undefined>,
): AsyncGenerator<string> {
  if (first.done) return;
  yield formatSSEEvent(first.value);
  try {
    for await (const event of rest) yield formatSSEEvent(event);
  } catch (error) {
    yield formatSSEEvent(refusalOf(body, error));
  }
}

/** From header or query; default: the oldest version, since newer clients name theirs. The patch number is ignored. */
function versionOf(context: Request): string {
  const { req } = context;
  const given =
    req.header(A2A_VERSION_HEADER) || req.query(A2A_VERSION_HEADER) || A2A_LEGACY_PROTOCOL_VERSION;
  return given.replace(/^(\d+\.\d+)\.\d+$/, '$1');
}

async function cardFor(context: Request, slug: string): Promise<AgentCard> {
  const found = (await allAgents(context)).find((agent) => agent.slug === slug);
  if (found) return cardOf(found, urlOf(context, slug), context.var.routes);
  // Does not list other agents: a card is public.
  throw new ParleyError('NOT_FOUND', `there is no agent ${JSON.stringify(slug)}`, {
    hint: 'GET /a2a lists those that there are',
  });
}

function requestsOf(context: Request, own: AgentCard, slug: string, signal: AbortSignal): AgentRequests {
  const { identity, routes } = context.var;
  const tasks = new Tasks({
    daemon: routes.daemon(context),
    lasting: () => routes.daemon(),
    closing: routes.closing,
    agent: slug === ANY_AGENT.slug ? null : slug,
    identity,
    newId: routes.newId,
    keep: (parts) => keepParts(parts, context, ANONYMOUS),
    address: (conversation) => addressOf(baseOf(context), conversation),
  });
  const faults = { onFault: faultsOf(context), statusOf: routes.wire.statusOf };
  return new AgentRequests(own, tasks, signal, faults);
}

async function allAgents(context: Request): Promise<readonly Described[]> {
  const { agents } = await ask(context.var.routes.daemon(), 'agents', {});
  return [ANY_AGENT, ...agents.filter(({ slug }) => slug !== ANY_AGENT.slug)];
}

function urlOf(context: Request, slug: string): string {
  return `${baseOf(context)}/a2a/${slug}`;
}

/** The public description of an agent. */
interface Described {
  readonly slug: string;
  readonly name: string;
  readonly description: string;
}

function cardOf(
  { slug, name, ...agent }: Described,
  url: string,
  { version, tokens }: RouteContext,
): AgentCard {
  const description = agent.description || `${name}, an agent of this team`;
  const own = { url, protocolBinding: 'JSONRPC', tenant: '', protocolVersion: A2A_PROTOCOL_VERSION };
  const scheme = { description: 'a token of this daemon', scheme: 'Bearer' };
  const needsToken = tokens.length > 0;
  return AgentCard.fromJSON({
    name,
    description,
    version,
    supportedInterfaces: duplicateInterfacesForLegacy([own], ['JSONRPC']),
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false },
    ...(needsToken && {
      securitySchemes: { token: { httpAuthSecurityScheme: scheme } },
      securityRequirements: [{ schemes: { token: { list: [] } } }],
    }),
    defaultInputModes: ['text/plain', 'application/json', '*/*'],
    defaultOutputModes: ['text/plain', '*/*'],
    skills: [{ id: slug, name, description, tags: ['conversation'] }],
  });
}

type Body = Record<string, unknown>;

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;

/** Refusals of `jsonBody` that JSON-RPC has a code for. */
const CODES: Readonly<Record<string, number>> = {
  MALFORMED_JSON: PARSE_ERROR,
  INVALID_UTF8: PARSE_ERROR,
  INVALID_FIELD: INVALID_REQUEST,
  BAD_REQUEST: INVALID_REQUEST,
};

const METHODS: ReadonlySet<string> = new Set([
  'SendMessage',
  'SendStreamingMessage',
  'GetTask',
  'ListTasks',
  'CancelTask',
  'SubscribeToTask',
  'CreateTaskPushNotificationConfig',
  'GetTaskPushNotificationConfig',
  'ListTaskPushNotificationConfigs',
  'DeleteTaskPushNotificationConfig',
  'GetExtendedAgentCard',
]);

/**
 * JSON-RPC errors of unreadable requests: the SDK answers all of them with `-32602`.
 * Throws `Unreadable`.
 *
 * RPC-1  No JSON (or an empty body) is `-32700`, JSON that is no request `-32600`, an unknown method `-32601`.
 *        What HTTP refuses (type, size, token) remains a refusal of HTTP.
 * RPC-2  A part of several kinds is `-32602`: the SDK would keep one of them and drop the others. So are parts that are no list: it would
 *        take them for none; and bytes in broken base64, of which it would take a part.
 * RPC-3  Parameters at which the SDK throws are `-32602`, in our words: it answers with what JavaScript says about its own code.
 */
async function readRequest(context: Request, isLegacy: boolean): Promise<Body> {
  const options = { hasHistory: true, mayBeEmpty: false };
  const body = await jsonBody(context, options).catch((error: unknown) => {
    const code = error instanceof ParleyError ? CODES[error.code] : undefined;
    throw code === undefined ? error : new Unreadable({}, code, (error as ParleyError).message);
  });
  const { method, params = {} } = body;
  const wrong = wrongWith(body);
  if (wrong !== null) throw new Unreadable(body, INVALID_REQUEST, wrong);
  const wrongParts = faultOfParts(params);
  if (wrongParts !== null) throw new Unreadable(body, INVALID_PARAMS, wrongParts);
  const isKnown = METHODS.has(String(method));
  if (isLegacy && !isKnown) return body; // the SDK knows its methods
  if (isKnown && !isLegacy) return { ...body, params };
  const hint = isKnown
    ? `${method} is one of version 1.0: send the header A2A-Version: 1.0`
    : `there is no method ${JSON.stringify(method)}: there are ${[...METHODS].join(', ')}`;
  throw new Unreadable(body, METHOD_NOT_FOUND, hint);
}

/** Null: a valid request. */
function wrongWith({ jsonrpc, id, method }: Body): string | null {
  if (jsonrpc !== '2.0') return 'expected "jsonrpc": "2.0"';
  if (typeof method !== 'string' || method === '') return 'expected the name of a method as `method`';
  const isId = id === undefined || id === null || typeof id === 'string' || Number.isInteger(id);
  return isId ? null : 'expected a text or an integer as `id`';
}

class Unreadable extends Error {
  readonly answer: object;

  constructor(body: Body, code: number, message: string) {
    super(message);
    this.answer = refusal(body, code, message);
  }
}

function refusalOf(body: Body, error: unknown): object {
  return { jsonrpc: '2.0', id: idOf(body), error: JsonRpcTransportHandler.mapToJSONRPCError(error) };
}

/** RPC-3. Our own errors begin with their code. */
function asFaultOfClient(body: Body, answered: object): object {
  const error = valueAt(answered, ['error']);
  if (!isRecord(error) || error.code !== INTERNAL_ERROR || /^[A-Z][A-Z_]+: /.test(String(error.message)))
    return answered;
  return refusal(body, INVALID_PARAMS, `the parameters are not those of ${String(body.method)}`);
}

function refusal(body: Body, code: number, message: string): object {
  return { jsonrpc: '2.0', id: idOf(body), error: { code, message } };
}

function idOf({ id }: Body): string | number | null {
  return typeof id === 'string' || Number.isInteger(id) ? (id as string | number) : null;
}

/** `file`: as version 0.3 calls it. */
const KINDS = ['text', 'data', 'raw', 'url', 'file'];

/** Parameters of a request, before they are parsed: what is wrong with the parts of its message; null: nothing. */
function faultOfParts(params: unknown): string | null {
  const parts = valueAt(params, ['message', 'parts']);
  if (parts === undefined) return null; // the SDK refuses a message without any
  if (!Array.isArray(parts)) return 'message.parts: expected a list';
  for (const [at, part] of parts.entries()) {
    if (!isRecord(part)) return `message.parts.${at}: expected an object`;
    const kinds = KINDS.filter((kind) => (part[kind] ?? null) !== null);
    if (kinds.length > 1) {
      const wanted = 'expected one of text, data, raw and url: send each as a part of its own';
      return `message.parts.${at} has ${kinds.join(' and ')}; ${wanted}`;
    }
    const raw = part.raw ?? valueAt(part, ['file', 'bytes']);
    if (typeof raw === 'string' && !isBase64(raw)) return `message.parts.${at}: the base64 is broken`;
  }
  return null;
}

interface Faults extends Pick<Wire, 'statusOf'> {
  /** Called with bugs. */
  readonly onFault: (error: unknown) => void;
}

/** The requests of the SDK's transports, answered from the log. */
class AgentRequests implements A2ARequestHandler {
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
    return this.#guarded(request, async () => (await this.#tasks.cancel(request.id)).snapshot());
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

  /** Maps refusals to the protocol's errors. The message keeps the documented code. */
  #fault(error: unknown): Error {
    if (error instanceof A2AError) return error;
    const { onFault, statusOf } = this.#faults;
    const shown = publicErrorOf(error, onFault);
    const { code } = shown;
    const isOurs = httpStatus(code, statusOf) >= 500; // another request cannot avoid it
    const Fault = CLASSES[code] ?? (isOurs ? A2AError : RequestMalformedError);
    return new Fault({ message: errorText(shown), cause: error, metadata: { code } });
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
