import type { OwnPublisher, Received } from '../../conversation/index.ts';
import { ParleyError, within } from '../../kernel/index.ts';
import type { Application, Request, RouteContext } from '../context.ts';
import { nameUnknownMentions, nameUnused } from '../fields.ts';
import { addressOf, baseOf, fileLines, keepParts, postOf } from '../files.ts';
import { jsonBody } from '../guard/body.ts';
import { Arrivals } from '../progress/arrivals.ts';
import { actingFor, ask, readTail, stoppedOf } from '../progress/ask.ts';
import { eventStream, onAbort } from '../progress/event-stream.ts';
import {
  type Completion,
  completionFrames,
  errorBody,
  failureOf,
  type Refused,
  stopping,
  wholeCompletion,
} from './completions.ts';
import { ANYBODY, pick, prefixOf } from './pick.ts';
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

export function addOpenAiRoutes(app: Application, routes: RouteContext): void {
  const queue = new ConversationQueue();
  app.get('/v1/models', async (context) =>
    context.json({ object: 'list', data: (await models(routes)).map(modelOf) }),
  );
  app.get('/v1/models/:model', async (context) =>
    context.json(modelOf(await known(context.req.param('model'), routes))),
  );
  app.post('/v1/chat/completions', async (context) => {
    const request = await readRequest(context, routes);
    nameUnused(context, request.unused);
    const model = await known(request.model, routes);
    const started = await queue.inTurn(request.conversation ?? prefixOf(request), () =>
      startReply(context, routes, request, model),
    );
    return request.stream
      ? stream(context, routes, started, request.includeUsage)
      : whole(context, routes, started);
  });
}

async function readRequest(context: Request, routes: RouteContext): Promise<ChatRequest> {
  const { req } = context;
  const { publisher, name, caller } = context.var.identity;
  const own = publisher ?? ANONYMOUS;
  return readChatRequest(await jsonBody(context, { ...routes, maxBodyBytes: routes.maxHistoryBytes }), {
    headers: {
      conversation: req.header('x-parley-conversation'),
      idempotencyKey: req.header('idempotency-key'),
      retryCount: req.header('x-stainless-retry-count'),
    },
    publisher: name === undefined ? own : `${own}/${name}`,
    secret: caller,
  });
}

interface Started {
  readonly completion: Completion;
  readonly reply: AsyncGenerator<Said, void>;
  /** Ends the reply (OPENAI-ROUTES-1). */
  readonly leave: () => void;
}

/** Finds or creates the conversation, and posts. A new one begins with the history, which the caller quotes. */
async function startReply(
  context: Request,
  routes: RouteContext,
  request: ChatRequest,
  model: string,
): Promise<Started> {
  const daemon = routes.daemon(context);
  const { conversation, id, parts, meta, seed } = await pick(daemon, {
    ...request,
    newId: routes.newId,
    now: Date.now(),
  });
  context.header('x-parley-conversation', conversation);
  const agent = model === ANYBODY ? null : model;
  const post = {
    id,
    ...postOf(await keepParts(parts, { routes, context, anonymous: ANONYMOUS })),
    meta: { model: meta.model, chat: meta },
    ...(agent && { to: [agent] }),
  };
  const act = actingFor(daemon, context.var.identity, ANONYMOUS);
  if (seed.length > 0) await act('seed', { conversation, messages: seed, post }); // without effect if the post would be refused
  return Arrivals.subscribed(daemon, conversation, async (arrivals) => {
    const { index, agents, unknownMentions } = await act('post', { conversation, ...post });
    nameUnknownMentions(context, unknownMentions);
    const before = await readTail(daemon, conversation, index);
    const stopped = await stoppedOf(daemon, conversation, agents);
    const address = addressOf(baseOf(context, routes), conversation);
    const reply = new Reply(index, agents, agent, before, stopped, (entry) => fileLines(entry, address));
    return {
      completion: { id: `chatcmpl-${id}`, model, created: Math.floor(Date.now() / 1_000) },
      reply: saidBy(reply, arrivals.from(index)),
      leave: () => arrivals.close(),
    };
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

async function whole(
  context: Request,
  { closing }: RouteContext,
  { completion, reply, leave }: Started,
): Promise<Response> {
  const detach = onAbort([closing, context.req.raw.signal], leave);
  try {
    return context.json(await wholeCompletion(completion, reply));
  } finally {
    detach();
    leave();
  }
}

async function stream(
  context: Request,
  routes: RouteContext,
  { completion, reply, leave }: Started,
  includeUsage: boolean,
): Promise<Response> {
  const { closing, heartbeatMs } = routes;
  const detach = onAbort([closing], leave);
  const first = reply.next();
  try {
    const said = await within(heartbeatMs, first); // OPENAI-ROUTES-3
    if (said?.done) throw stopping();
    if (said?.value.kind === 'failed') throw failureOf(said.value);
  } catch (error) {
    leave();
    throw error;
  } finally {
    detach();
  }
  const onFault = (error: unknown) => routes.onFault(error, context.req.path);
  const frames = completionFrames(completion, resumed(first, reply), includeUsage, onFault);
  const response = eventStream(frames, { heartbeatMs, closing, onGone: leave, onFault });
  return context.newResponse(response.body, response);
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
  const { agents } = await ask(routes.daemon(), 'agents', {});
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
