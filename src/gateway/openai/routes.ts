import type { Entry, OwnPublisher, Received } from '../../conversation/index.ts';
import { ParleyError, within } from '../../kernel/index.ts';
import type { Application, Request, RouteContext } from '../context.ts';
import { actingAs, type Identity } from '../guard/access.ts';
import type { GatewayPort } from '../port.ts';
import { Arrivals } from '../progress/arrivals.ts';
import { ask, stoppedOf } from '../progress/ask.ts';
import { eventStream } from '../progress/event-stream.ts';
import { readLog } from '../progress/log.ts';
import { jsonBody } from '../rest/handlers.ts';
import { UNKNOWN_MENTIONS_HEADER, UNUSED_HEADER, unknownMentionsHeader, unusedHeader } from '../unused.ts';
import {
  type Completion,
  completionFrames,
  errorBody,
  failureOf,
  type Refused,
  stopping,
  wholeCompletion,
} from './completions.ts';
import { ANYBODY, type Picked, pick, prefixOf } from './pick.ts';
import { Reply, type Said } from './reply.ts';
import { type ChatRequest, readChatRequest } from './request.ts';

/**
 * `/v1`: an agent as a model, for programs that speak OpenAI's protocol.
 *
 * OPENAI-ROUTES-1 A client that disconnects does not end the turn: the turn belongs to the conversation.
 * OPENAI-ROUTES-2 Requests that may belong to one conversation are processed one after another (`pick.ts`): of two that
 *    continue the same history, the second finds the first one's post.
 * OPENAI-ROUTES-3 A stream that fails before its first text has the status of the error: clients repeat a stream whose first
 *    event is one. So its head waits for the first text, at most for the time between two heartbeats.
 */

const ANONYMOUS: OwnPublisher = 'openai';

export function addOpenAiRoutes(app: Application, routes: RouteContext, heartbeatMs: number): void {
  const queue = new ConversationQueue();
  app.get('/v1/models', async (context) =>
    context.json({ object: 'list', data: (await models(routes)).map(modelOf) }),
  );
  app.get('/v1/models/:model', async (context) =>
    context.json(modelOf(await known(context.req.param('model'), routes))),
  );
  app.post('/v1/chat/completions', (context) => complete(context, routes, queue, heartbeatMs));
}

async function complete(
  context: Request,
  routes: RouteContext,
  queue: ConversationQueue,
  heartbeatMs: number,
): Promise<Response> {
  const { identity } = context.var;
  const publisher = identity.publisher ?? ANONYMOUS;
  const request = readChatRequest(
    await jsonBody(context, { ...routes, maxBodyBytes: routes.maxHistoryBytes }),
    {
      headers: {
        conversation: context.req.header('x-parley-conversation'),
        idempotencyKey: context.req.header('idempotency-key'),
        retryCount: context.req.header('x-stainless-retry-count'),
      },
      publisher: identity.name === undefined ? publisher : `${publisher}/${identity.name}`,
      secret: identity.caller,
    },
  );
  if (request.unused.length > 0) context.header(UNUSED_HEADER, unusedHeader(request.unused));
  const model = await known(request.model, routes);
  const who: ChatCaller = { identity, publisher, agent: model === ANYBODY ? null : model };
  const asked: Asked = { context, routes, request, who, model, queue };
  return request.stream ? stream(asked, heartbeatMs) : whole(asked);
}

interface Asked {
  readonly context: Request;
  readonly routes: RouteContext;
  readonly request: ChatRequest;
  readonly who: ChatCaller;
  readonly model: string;
  readonly queue: ConversationQueue;
}

interface Started {
  readonly completion: Completion;
  readonly reply: AsyncGenerator<Said, void>;
  /** Ends the reply (OPENAI-ROUTES-1). */
  readonly leave: () => void;
}

/** Finds or creates the conversation, and posts. */
function startReply({ context, routes, request, who, model, queue }: Asked): Promise<Started> {
  const daemon = routes.daemon(context);
  return queue.inTurn(request.conversation ?? prefixOf(request), async () => {
    const picked = await pick(daemon, request, { newId: routes.newId, now: Date.now() });
    const post = postOf(picked);
    const completion = { id: `chatcmpl-${post.id}`, model, created: Math.floor(Date.now() / 1_000) };
    context.header('x-parley-conversation', picked.conversation);
    await seed(daemon, picked.seed, post, who);
    const onUnknown = (names: readonly string[]) =>
      context.header(UNKNOWN_MENTIONS_HEADER, unknownMentionsHeader(names));
    return { completion, ...(await converse(daemon, post, who, picked.tail, onUnknown)) };
  });
}

function postOf({ conversation, id, content, meta }: Picked): ChatPost {
  return { conversation, id, content, meta: { model: meta.model, chat: meta } };
}

async function whole(asked: Asked): Promise<Response> {
  const { context, routes } = asked;
  const { completion, reply, leave } = await startReply(asked);
  const signals = [routes.closing, context.req.raw.signal];
  for (const signal of signals) signal.addEventListener('abort', leave);
  if (signals.some(({ aborted }) => aborted)) leave();
  try {
    return context.json(await wholeCompletion(completion, reply));
  } finally {
    for (const signal of signals) signal.removeEventListener('abort', leave);
    leave();
  }
}

async function stream(asked: Asked, heartbeatMs: number): Promise<Response> {
  const { context, routes, request } = asked;
  const { closing } = routes;
  const { completion, reply, leave } = await startReply(asked);
  const onGone = () => {
    closing.removeEventListener('abort', leave);
    leave();
  };
  closing.addEventListener('abort', leave);
  if (closing.aborted) leave();
  const first = reply.next();
  try {
    const said = await within(heartbeatMs, first); // OPENAI-ROUTES-3
    if (said?.done) throw stopping();
    if (said?.value.kind === 'failed') throw failureOf(said.value);
  } catch (error) {
    onGone();
    throw error;
  }
  const onFault = (error: unknown) => routes.onFault(error, context.req.path);
  const frames = completionFrames(completion, resumed(first, reply), request.includeUsage, onFault);
  context.header('content-type', 'text/event-stream; charset=utf-8');
  return context.body(eventStream(frames, { heartbeatMs, onGone, onFault }).body ?? '');
}

/** A generator of which the first result was requested. */
async function* resumed<T>(
  first: Promise<IteratorResult<T, void>>,
  rest: AsyncGenerator<T, void>,
): AsyncGenerator<T, void> {
  const { done, value } = await first;
  if (done) return;
  yield value;
  yield* rest;
}

/** OPENAI-ROUTES-2 */
class ConversationQueue {
  readonly #busy = new Map<string, Promise<unknown>>();

  async inTurn<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#busy.get(name);
    const mine = (before ?? Promise.resolve()).then(work);
    const settled = mine.catch(() => undefined); // thrown below; the next one only waits
    this.#busy.set(name, settled);
    try {
      return await mine;
    } finally {
      if (this.#busy.get(name) === settled) this.#busy.delete(name);
    }
  }
}

async function models(routes: RouteContext): Promise<string[]> {
  const answer = await routes.daemon().request({ endpoint: 'agents', publisher: null, body: {} });
  if (!answer.ok) throw new ParleyError(answer.refusal.code, answer.refusal.message, answer.refusal);
  const { agents } = answer.body as { agents: readonly { slug: string }[] };
  return [...new Set([ANYBODY, ...agents.map(({ slug }) => slug)])];
}

async function known(model: string, routes: RouteContext): Promise<string> {
  const all = await models(routes);
  if (all.includes(model)) return model;
  throw new ParleyError('MODEL_NOT_FOUND', `there is no model ${JSON.stringify(model)}`, {
    hint: `there are ${all.join(', ')}`,
  });
}

const modelOf = (id: string) => ({ id, object: 'model', created: 0, owned_by: 'parley' });

/**
 * An error in OpenAI's format. Clients repeat 408, 409, 429 and each 5xx by themselves, some of them six times: only what a
 * repetition can change has such a status (COMPLETIONS-1).
 */
export function openAiError(
  given: number,
  refused: Refused & { readonly retryAfter?: number | undefined },
): Response {
  const status = given === 409 ? 400 : given;
  const again = status === 429 || status === 503;
  return Response.json(
    { error: errorBody(refused, status) },
    {
      status,
      headers: again ? { 'retry-after': String(refused.retryAfter ?? 1) } : { 'x-should-retry': 'false' },
    },
  );
}

/** The caller and the addressed agent. */
interface ChatCaller {
  readonly identity: Identity;
  readonly publisher: string;
  readonly agent: string | null;
}

interface ChatPost {
  readonly conversation: string;
  readonly id: string;
  readonly content: string;
  readonly meta: Readonly<Record<string, unknown>>;
}

/**
 * Seeds a new conversation with its history, which the caller quotes. Refused without effect if the post that follows would
 * be refused.
 */
async function seed(
  daemon: GatewayPort,
  messages: Picked['seed'],
  { conversation, ...post }: ChatPost,
  { identity, publisher, agent }: ChatCaller,
): Promise<void> {
  if (messages.length === 0) return;
  const next = { ...post, ...(agent && { to: [agent] }) };
  const given = { conversation, messages, post: next };
  const body = actingAs(identity, given, publisher);
  await ask(daemon, 'seed', body, identity);
}

/** Posts. `tail`: the end of the log before the post. `onUnknown`: called with the mentions that name no agent. */
async function converse(
  daemon: GatewayPort,
  { conversation, ...post }: ChatPost,
  { identity, publisher, agent }: ChatCaller,
  tail: readonly Entry[],
  onUnknown: (names: readonly string[]) => void,
): Promise<Omit<Started, 'completion'>> {
  return Arrivals.subscribed(daemon, conversation, async (arrivals) => {
    const body = actingAs(identity, { conversation, ...post, ...(agent && { to: [agent] }) }, publisher);
    const { index, agents, unknownMentions } = await ask(daemon, 'post', body, identity);
    if (unknownMentions) onUnknown(unknownMentions);
    const known = await before(daemon, conversation, tail, index);
    const reply = new Reply(index, agents, agent, known, await stoppedOf(daemon, conversation, agents));
    return { reply: saidBy(reply, arrivals.from(index)), leave: () => arrivals.close() };
  });
}

async function* saidBy(reply: Reply, arrivals: AsyncGenerator<Received>): AsyncGenerator<Said, void> {
  yield* reply.drain();
  if (reply.isOver) return;
  for await (const received of arrivals) {
    yield* reply.accept(received);
    if (reply.isOver) return;
  }
}

/** The tail up to the post, with entries appended since it was read. */
async function before(
  daemon: GatewayPort,
  conversation: string,
  tail: readonly Entry[],
  index: number,
): Promise<readonly Entry[]> {
  const next = (tail.at(-1)?.index ?? index - 1) + 1;
  const between = next < index ? await readLog(daemon, conversation, next, index) : [];
  return [...tail.filter((entry) => entry.index < index), ...between];
}
