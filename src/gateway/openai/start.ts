import { MOST_RESULTS } from '../../bus/contract.ts';
import { type MessageEntry, type OwnPublisher, type Received, wireCallId } from '../../conversation/index.ts';
import { asError, InOrder, onAbort, ParleyError, tally, within } from '../../kernel/index.ts';
import { digest, NOT_ANSWERED } from '../client-ids.ts';
import { daemonOf, faultsOf, type Request, type RouteContext } from '../context.ts';
import { nameUnknownMentions, nameUnused } from '../fields.ts';
import { addressOf, baseOf, fileLines, keepParts, postOf } from '../files.ts';
import { authorOf } from '../guard/access.ts';
import { jsonBody } from '../guard/body.ts';
import type { GatewayPort } from '../port.ts';
import { Arrivals } from '../progress/arrivals.ts';
import { actingFor, ask, cancelTurns, readLog, readTail, stoppedOf } from '../progress/ask.ts';
import { streamed } from '../progress/event-stream.ts';
import { stopping } from './completions.ts';
import { ANYBODY, type AnsweredCall, pick, pickCalls, prefixOf } from './pick.ts';
import { lastResult, Reply, type Said } from './reply.ts';
import { asSent, type ChatRequest, type Past, type Sender, sentPast } from './request.ts';

/**
 * A request of OpenAI's protocols as a post, and the reply to it.
 *
 * OPENAI-START-1 A client that disconnects does not end the turn: the turn belongs to the conversation. With `stopOnDisconnect` of its
 *    token it ends those that its request started, also where they start later, unless another request waits for the same reply: a
 *    lost connection may be noticed after the request was repeated.
 * OPENAI-START-2 Requests that may belong to one conversation are processed one after another (`pick.ts`): of two that
 *    continue the same history or response, the second finds the first one's post.
 * OPENAI-START-3 A stream that fails before its first text has the status of the error: clients repeat a stream whose first
 *    event is one. So its head waits for the first text, at most for the time between two heartbeats.
 */

export const ANONYMOUS: OwnPublisher = 'openai';

export interface Started {
  readonly conversation: string;
  /** The post, or the first result. */
  readonly index: number;
  readonly id: string;
  readonly model: string;
  readonly reply: AsyncGenerator<Said, void>;
  /** Ends the reply. */
  readonly leave: () => void;
  /** The client has disconnected: ends the reply, and its turns as OPENAI-START-1 says. */
  readonly gone: () => void;
}

/** Who asks, and what the body is. */
export async function readSent(context: Request): Promise<[unknown, Sender]> {
  const { req } = context;
  const sender = {
    headers: {
      conversation: req.header('x-parley-conversation'),
      idempotencyKey: req.header('idempotency-key'),
      retryCount: req.header('x-stainless-retry-count'),
    },
    publisher: authorOf(context.var.identity, ANONYMOUS),
    secret: context.var.identity.caller,
  };
  return [await jsonBody(context, { hasHistory: true }), sender];
}

export class Starter {
  readonly #order = new InOrder();

  /** `earlier`: the conversation that the request names by a response in it, and how to find where it continues. */
  async start(context: Request, request: ChatRequest, earlier?: Earlier): Promise<Started> {
    nameUnused(context, request.unused);
    const [{ id: model }, typed] = await Promise.all([known(request.model, context), typedAgents(context)]);
    const place = earlier?.conversation ?? request.conversation ?? prefixOf(request);
    return this.#order.run(place, async () => {
      const conversation = earlier ? await earlier.find({ ...request, typed }) : request.conversation;
      const placed = { ...request, typed, conversation };
      return startReply(context, placed, model).catch((error: unknown) => {
        throw asSent(error, request);
      });
    });
  }
}

export type TypedRequest = ChatRequest & Required<Pick<Posted, 'typed'>>;

export interface Earlier {
  readonly conversation: string;
  readonly find: (request: TypedRequest) => Promise<string>;
}

/** Finds or creates the conversation, and posts. A new one begins with the history, which the caller quotes. */
async function startReply(context: Request, request: TypedRequest, model: string): Promise<Started> {
  if (request.endsWithResults) return continueReply(context, request, model);
  const daemon = daemonOf(context);
  const { conversation, id, parts, meta, seed, unanswered } = await pick(daemon, {
    ...request,
    newId: context.var.routes.newId,
    now: Date.now(),
  });
  context.header('x-parley-conversation', conversation);
  const agent = agentOf(model);
  const post = {
    id,
    ...postOf(await keepParts(parts, context, ANONYMOUS)),
    ...request.brought,
    meta: { model: meta.model, chat: meta, ...request.meta },
    ...(agent && { to: [agent] }),
    ...(request.schema && { schema: request.schema }),
  };
  const act = actingFor(daemon, context.var.identity, ANONYMOUS);
  if (seed.length > 0) {
    const messages = await keepPast(seed, context);
    await act('seed', { conversation, messages, post }); // without effect if the post would be refused
  }
  return Arrivals.subscribed(daemon, conversation, async (arrivals) => {
    const { index, agents, unknownMentions } = await act('post', { conversation, ...post });
    nameUnknownMentions(context, unknownMentions);
    const left = unanswered.filter(({ asked }) => asked.index < index); // not those of a repeated post
    const results = await resultsOf(left, context);
    if (results.length > 0) await act('results', { conversation, results });
    const { typed } = request;
    const asked = { context, conversation, index, agents, agent, typed };
    return { conversation, index, id, model, ...(await repliedTo(asked, arrivals)) };
  });
}

async function repliedTo(
  asked: Posted,
  arrivals: Arrivals,
): Promise<Pick<Started, 'reply' | 'leave' | 'gone'>> {
  const { context, conversation, index } = asked;
  const { routes, identity } = context.var;
  const { closing } = routes;
  const place = `${conversation} ${index}`;
  let [reply, isWaiting]: [Reply | null, boolean] = [null, true];
  waitFor(routes, place, 1);
  const leave = () => {
    if (isWaiting) waitFor(routes, place, -1);
    isWaiting = false;
    arrivals.close();
  };
  const gone = () => {
    const wasWaiting = isWaiting;
    leave();
    if (!wasWaiting || reply?.isOver || closing.aborted || !identity.stopOnDisconnect) return;
    stopReply(asked, () => isWaitedFor(routes, place)).catch(faultsOf(context));
  };
  try {
    reply = await replyTo(asked);
    return { reply: saidBy(reply, arrivals.from(index)), leave, gone };
  } catch (error) {
    if (context.req.raw.signal.aborted) gone();
    else leave();
    throw error;
  }
}

/** How many requests wait for the reply at a place. */
const waiting = new WeakMap<RouteContext, Map<string, number>>();

function waitFor(routes: RouteContext, place: string, more: 1 | -1): void {
  const counts = waiting.get(routes) ?? new Map<string, number>();
  waiting.set(routes, counts);
  tally(counts, place, more);
}

const isWaitedFor = (routes: RouteContext, place: string) => waiting.get(routes)?.has(place) === true;

/** As the verb `seed` takes it. */
async function keepPast(seed: readonly Past[], context: Request): Promise<object[]> {
  const kept: object[] = [];
  for (const { message, files } of seed.map(sentPast))
    kept.push(files.length > 0 ? { ...message, files: await keepParts(files, context, ANONYMOUS) } : message);
  return kept;
}

/** Answers open calls, and continues their turns (REQUEST-5). */
async function continueReply(context: Request, request: TypedRequest, model: string): Promise<Started> {
  const daemon = daemonOf(context);
  const { conversation, calls } = await pickCalls(daemon, request);
  context.header('x-parley-conversation', conversation);
  const answered = calls.map((call, at) => ({ ...call, parts: request.results[at]?.parts ?? [] }));
  const results = await resultsOf(answered, context);
  const act = actingFor(daemon, context.var.identity, ANONYMOUS);
  return Arrivals.subscribed(daemon, conversation, async (arrivals) => {
    const { index } = await act('results', { conversation, results });
    const turns = calls.map(({ asked }) => ({ turnId: asked.turnId ?? '', agent: asked.author.id }));
    const { typed } = request;
    const asked = { context, conversation, index, agents: [], agent: agentOf(model), turns, typed };
    const id = digest([conversation, index]);
    return { conversation, index, id, model, ...(await repliedTo(asked, arrivals)) };
  });
}

/** As the verb `results` takes them. Without parts: the caller did not answer. */
async function resultsOf(calls: readonly AnsweredCall[], context: Request): Promise<object[]> {
  const results: object[] = [];
  for (const { asked, position, parts } of calls) {
    const call = wireCallId({ index: asked.index, position });
    if (parts) results.push({ call, ...postOf(await keepParts(parts, context, ANONYMOUS)) });
    else results.push({ call, content: NOT_ANSWERED, isError: true });
  }
  return results;
}

/** Null: any agent. */
export const agentOf = (model: string): string | null => (model === ANYBODY ? null : model);

export interface Posted {
  readonly context: Request;
  /** Absent: that of the request. */
  readonly daemon?: GatewayPort;
  readonly conversation: string;
  readonly index: number;
  readonly agents: readonly string[];
  readonly agent: string | null;
  /** The turns that continue, if `index` is a result. */
  readonly turns?: readonly { readonly turnId: string; readonly agent: string }[];
  /** Agents that have a schema for their answers; absent: as the daemon has them now. */
  readonly typed?: ReadonlySet<string>;
}

/** The reply to a post, before anything that came after it. */
export async function replyTo({
  context,
  conversation,
  index,
  agents,
  agent,
  turns,
  typed,
  daemon = daemonOf(context),
}: Posted): Promise<Reply> {
  const before = await readTail(daemon, conversation, index);
  const stopped = await stoppedOf(daemon, conversation, agents);
  const address = addressOf(baseOf(context), conversation);
  const linesOf = (entry: MessageEntry) => fileLines(entry, address);
  return new Reply(index, agents, agent, before, {
    stopped,
    linesOf,
    notBefore: lastResult(await readLog(daemon, conversation, index, index + 2 * MOST_RESULTS)),
    ...(turns && { turns }),
    typed: typed ?? (await typedAgents(context)),
  });
}

async function typedAgents({ var: { routes } }: Request): Promise<ReadonlySet<string>> {
  const { agents } = await ask(routes.daemon(), 'agents', {});
  return new Set(agents.filter(({ typed }) => typed).map(({ slug }) => slug));
}

/** Ends the turns of a reply once they have begun, and waits until they have ended. `isKept`: asked then; it ends none. */
export async function stopReply(asked: Posted, isKept = () => false): Promise<void> {
  const { context, conversation, index } = asked;
  const { routes } = context.var;
  const daemon = routes.daemon(); // that of the request refuses once its client is gone
  const act = actingFor(daemon, context.var.identity, ANONYMOUS);
  const follow = async (isEnough: (reply: Reply) => boolean): Promise<Reply> => {
    const arrivals = new Arrivals(daemon, conversation);
    const reply = await replyTo({ ...asked, daemon });
    for await (const received of arrivals.from(index, routes.closing)) {
      reply.accept(received);
      const isCurrent = received.kind === 'live' || received.isCurrent;
      if (reply.isOver || (isCurrent && isEnough(reply))) break;
    }
    return reply;
  };
  await cancelTurns(daemon, act, {
    conversation,
    index,
    async busy() {
      const { isOver, busy } = await follow((reply) => reply.busy.length > 0 || isKept());
      return isOver || isKept() ? [] : busy;
    },
    async ended() {
      await follow(() => false);
    },
  });
}

/** How a protocol renders a reply. */
export interface Rendering {
  readonly isStream: boolean;
  frames(said: AsyncGenerator<Said, void>, onFault: (error: unknown) => void): AsyncGenerator<string>;
  /** Throws why there is no answer. */
  whole(reply: AsyncGenerator<Said, void>): Promise<object>;
}

/** The answer as a stream, or whole. */
export async function answer(context: Request, started: Started, rendering: Rendering): Promise<Response> {
  const { routes } = context.var;
  const { gone } = started;
  if (rendering.isStream) {
    const reply = await begun({ ...started, leave: gone }, routes);
    return streamed(context, rendering.frames(reply, faultsOf(context)), gone);
  }
  const detach = onAbort([routes.closing, context.req.raw.signal], gone);
  try {
    return context.json(await rendering.whole(started.reply));
  } finally {
    detach();
    started.leave();
  }
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
async function begun(
  { reply, leave }: Started,
  { closing, heartbeatMs }: RouteContext,
): Promise<AsyncGenerator<Said, void>> {
  const detach = onAbort([closing], leave);
  const first = reply.next();
  try {
    const said = await within(heartbeatMs, first);
    if (said?.done) throw stopping();
    if (said?.value.kind === 'failed') throw asError(said.value.refusal);
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

/** An agent as a model. `parley` can what the default agent can. */
export interface AgentModel {
  readonly id: string;
  readonly description: string;
  readonly capabilities: {
    readonly tools: boolean;
    readonly files?: readonly string[];
    readonly structured: true;
  };
}

export async function models({ var: { routes } }: Request): Promise<AgentModel[]> {
  const { agents, default: first } = await ask(routes.daemon(), 'agents', {});
  const rows = agents.map(({ slug: id, description, clientTools: tools, shownFiles: files }) => ({
    id,
    description,
    capabilities: { tools, ...(files && { files }), structured: true as const },
  }));
  const anybody = rows.find(({ id }) => id === first) ?? rows[0];
  const { capabilities } = anybody ?? { capabilities: { tools: true, structured: true as const } };
  const whose = { id: ANYBODY, description: 'the agent whose turn it is', capabilities };
  return [whose, ...rows.filter(({ id }) => id !== ANYBODY)];
}

export async function known(model: string, context: Request): Promise<AgentModel> {
  const all = await models(context);
  const found = all.find(({ id }) => id === model);
  if (found) return found;
  throw new ParleyError('MODEL_NOT_FOUND', `there is no model ${JSON.stringify(model)}`, {
    hint: `there are ${all.map(({ id }) => id).join(', ')}`,
  });
}
