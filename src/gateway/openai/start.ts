import type { OwnPublisher, Received } from '../../conversation/index.ts';
import { ParleyError, within } from '../../kernel/index.ts';
import type { Request, RouteContext } from '../context.ts';
import { nameUnknownMentions, nameUnused } from '../fields.ts';
import { addressOf, baseOf, fileLines, keepParts, postOf } from '../files.ts';
import { jsonBody } from '../guard/body.ts';
import { Arrivals } from '../progress/arrivals.ts';
import { actingFor, ask, readTail, stoppedOf } from '../progress/ask.ts';
import { onAbort } from '../progress/event-stream.ts';
import { failureOf, stopping } from './completions.ts';
import { ANYBODY, pick, prefixOf } from './pick.ts';
import { Reply, type Said } from './reply.ts';
import type { ChatRequest, Sender } from './request.ts';

/**
 * A request of OpenAI's protocols as a post, and the reply to it.
 *
 * OPENAI-START-1 A client that disconnects does not end the turn: the turn belongs to the conversation.
 * OPENAI-START-2 Requests that may belong to one conversation are processed one after another (`pick.ts`): of two that
 *    continue the same history, the second finds the first one's post.
 * OPENAI-START-3 A stream that fails before its first text has the status of the error: clients repeat a stream whose first
 *    event is one. So its head waits for the first text, at most for the time between two heartbeats.
 */

export const ANONYMOUS: OwnPublisher = 'openai';

export interface Started {
  readonly conversation: string;
  /** The post. */
  readonly index: number;
  readonly id: string;
  readonly model: string;
  readonly reply: AsyncGenerator<Said, void>;
  /** Ends the reply (OPENAI-START-1). */
  readonly leave: () => void;
}

/** Who asks, and what the body is. */
export async function readSent(context: Request, routes: RouteContext): Promise<[unknown, Sender]> {
  const { req } = context;
  const { publisher, name, caller } = context.var.identity;
  const own = publisher ?? ANONYMOUS;
  const sender = {
    headers: {
      conversation: req.header('x-parley-conversation'),
      idempotencyKey: req.header('idempotency-key'),
      retryCount: req.header('x-stainless-retry-count'),
    },
    publisher: name === undefined ? own : `${own}/${name}`,
    secret: caller,
  };
  return [await jsonBody(context, { ...routes, maxBodyBytes: routes.maxHistoryBytes }), sender];
}

export class Starter {
  readonly #routes: RouteContext;
  readonly #queue = new ConversationQueue();

  constructor(routes: RouteContext) {
    this.#routes = routes;
  }

  async start(context: Request, request: ChatRequest): Promise<Started> {
    nameUnused(context, request.unused);
    const model = await known(request.model, this.#routes);
    return this.#queue.inTurn(request.conversation ?? prefixOf(request), () =>
      startReply(context, this.#routes, request, model),
    );
  }
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
  const agent = agentOf(model);
  const post = {
    id,
    ...postOf(await keepParts(parts, { routes, context, anonymous: ANONYMOUS })),
    meta: { model: meta.model, chat: meta, ...request.meta },
    ...(agent && { to: [agent] }),
    ...(request.schema && { schema: request.schema }),
  };
  const act = actingFor(daemon, context.var.identity, ANONYMOUS);
  if (seed.length > 0) await act('seed', { conversation, messages: seed, post }); // without effect if the post would be refused
  return Arrivals.subscribed(daemon, conversation, async (arrivals) => {
    const { index, agents, unknownMentions } = await act('post', { conversation, ...post });
    nameUnknownMentions(context, unknownMentions);
    const reply = await replyTo({ context, routes, conversation, index, agents, agent });
    const leave = () => arrivals.close();
    return { conversation, index, id, model, reply: saidBy(reply, arrivals.from(index)), leave };
  });
}

/** Null: any agent. */
export const agentOf = (model: string): string | null => (model === ANYBODY ? null : model);

interface Posted {
  readonly context: Request;
  readonly routes: RouteContext;
  readonly conversation: string;
  readonly index: number;
  readonly agents: readonly string[];
  readonly agent: string | null;
}

/** The reply to a post, before anything that came after it. */
export async function replyTo({
  context,
  routes,
  conversation,
  index,
  agents,
  agent,
}: Posted): Promise<Reply> {
  const daemon = routes.daemon(context);
  const before = await readTail(daemon, conversation, index);
  const stopped = await stoppedOf(daemon, conversation, agents);
  const address = addressOf(baseOf(context, routes), conversation);
  return new Reply(index, agents, agent, before, stopped, (entry) => fileLines(entry, address));
}

async function* saidBy(reply: Reply, arrivals: AsyncGenerator<Received>): AsyncGenerator<Said, void> {
  yield* reply.drain();
  if (reply.isOver) return;
  for await (const received of arrivals) {
    yield* reply.accept(received);
    if (reply.isOver) return;
  }
}

/** The reply for a stream, after its first text. Throws why there is none (OPENAI-START-3). */
export async function begun(
  { reply, leave }: Started,
  { closing, heartbeatMs }: RouteContext,
): Promise<AsyncGenerator<Said, void>> {
  const detach = onAbort([closing], leave);
  const first = reply.next();
  try {
    const said = await within(heartbeatMs, first);
    if (said?.done) throw stopping();
    if (said?.value.kind === 'failed') throw failureOf(said.value);
  } catch (error) {
    leave();
    throw error;
  } finally {
    detach();
  }
  return resumed(first, reply);
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

export async function models(routes: RouteContext): Promise<string[]> {
  const { agents } = await ask(routes.daemon(), 'agents', {});
  return [...new Set([ANYBODY, ...agents.map(({ slug }) => slug)])];
}

export async function known(model: string, routes: RouteContext): Promise<string> {
  const all = await models(routes);
  if (all.includes(model)) return model;
  throw new ParleyError('MODEL_NOT_FOUND', `there is no model ${JSON.stringify(model)}`, {
    hint: `there are ${all.join(', ')}`,
  });
}
