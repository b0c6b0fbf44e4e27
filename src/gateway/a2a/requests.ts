import { A2A_VERSION_HEADER, AGENT_CARD_PATH, AgentCard, formatSSEEvent } from '@a2a-js/sdk';
import { A2A_LEGACY_PROTOCOL_VERSION } from '@a2a-js/sdk/compat/v0_3';
import { LegacyJsonRpcTransportHandler, LegacyRestTransportHandler } from '@a2a-js/sdk/compat/v0_3/server';
import {
  type A2ARequestHandler,
  JsonRpcTransportHandler,
  ServerCallContext,
  validateVersion,
} from '@a2a-js/sdk/server';
import { ParleyError } from '../../kernel/index.ts';
import type { Request, RouteContext } from '../context.ts';
import { ownUrl } from '../guard/hosts.ts';
import type { KnownHosts } from '../guard/known-hosts.ts';
import { ask } from '../progress/ask.ts';
import { eventStream, onAbort } from '../progress/event-stream.ts';
import { cardOf, type Described } from './answer.ts';
import { AgentRequests } from './handler.ts';
import { asFaultOfClient, readRequest, refusalOf } from './rpc.ts';
import { Tasks } from './tasks.ts';

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

export interface A2aOptions extends RouteContext {
  readonly needsToken: boolean;
  readonly known: KnownHosts;
}

export async function listAgents(context: Request, options: A2aOptions): Promise<Response> {
  const agents = (await allAgents(options)).map(({ slug, name, description }) => {
    return { slug, name, description, card: `${urlOf(context, slug, options)}/${AGENT_CARD_PATH}` };
  });
  return context.json({ agents });
}

export async function card(
  context: Request,
  options: A2aOptions,
  slug: string = ANY_AGENT.slug,
): Promise<Response> {
  const own = await cardFor(context, slug, options);
  if (versionOf(context) !== A2A_LEGACY_PROTOCOL_VERSION)
    return context.json(AgentCard.toJSON(own) as object);
  // The SDK's handler calls this method alone for a card.
  const source = { getAuthenticatedExtendedAgentCard: async () => own } as unknown as A2ARequestHandler;
  const legacy = new LegacyRestTransportHandler(source);
  return context.json(await legacy.getAuthenticatedExtendedAgentCard(new ServerCallContext()));
}

export async function answer(context: Request, options: A2aOptions, slug: string): Promise<Response> {
  const { closing, heartbeatMs } = options;
  const gone = new AbortController();
  const onGone = () => gone.abort();
  const detach = onAbort([closing, context.req.raw.signal], onGone);
  try {
    const own = await cardFor(context, slug, options);
    const requests = requestsOf(context, own, slug, options, gone.signal);
    const read = await readRequest(context, options, versionOf(context) === A2A_LEGACY_PROTOCOL_VERSION);
    if ('refused' in read) return context.json(read.refused);
    const { body } = read;
    const answered = await dispatch(context, requests, own, body);
    if (!(Symbol.asyncIterator in answered)) return context.json(answered);
    const first = await answered.next().catch((error: unknown) => ({ error }));
    if ('error' in first) return context.json(asFaultOfClient(body, refusalOf(body, first.error)));
    const onFault = (error: unknown) => options.onFault(error, context.req.path);
    return eventStream(frames(body, first, answered), { heartbeatMs, closing, onGone, onFault });
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

async function cardFor(context: Request, slug: string, options: A2aOptions): Promise<AgentCard> {
  const found = (await allAgents(options)).find((agent) => agent.slug === slug);
  if (found) return cardOf(found, urlOf(context, slug, options), options.version, options.needsToken);
  // Does not list other agents: a card is public.
  throw new ParleyError('NOT_FOUND', `there is no agent ${JSON.stringify(slug)}`, {
    hint: 'GET /a2a lists those that there are',
  });
}

function requestsOf(
  context: Request,
  own: AgentCard,
  slug: string,
  options: A2aOptions,
  signal: AbortSignal,
): AgentRequests {
  const tasks = new Tasks({
    daemon: options.daemon(context),
    agent: slug === ANY_AGENT.slug ? null : slug,
    identity: context.var.identity,
    newId: options.newId,
  });
  return new AgentRequests(own, tasks, signal, (error) => options.onFault(error, context.req.path));
}

async function allAgents(options: A2aOptions): Promise<readonly Described[]> {
  const { agents } = await ask(options.daemon(), 'agents', {});
  return [ANY_AGENT, ...agents.filter(({ slug }) => slug !== ANY_AGENT.slug)];
}

function urlOf(context: Request, slug: string, { known }: A2aOptions): string {
  return `${ownUrl(context.req.header('host'), known)}/a2a/${slug}`;
}
