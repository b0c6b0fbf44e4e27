import type { OwnPublisher } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import type { Application, Request } from '../context.ts';
import { faultsOf } from '../context.ts';
import { nameUnknownMentions, nameUnused } from '../fields.ts';
import { addressOf, baseOf, keepParts, type SentPart } from '../files.ts';
import { authorOf, requireRole } from '../guard/access.ts';
import { jsonBody } from '../guard/body.ts';
import { actingFor, ask } from '../progress/ask.ts';
import { streamed } from '../progress/event-stream.ts';
import { begin } from './begin.ts';
import { addressedBy, readRunInput } from './input.ts';

/**
 * `/ag-ui/<agent>`: for applications that speak AG-UI. A thread is a conversation, a run is a turn.
 *
 * AG-UI-ROUTES-1 A client that disconnects does not end the turn: the turn belongs to the conversation. A repeated run is
 *    replayed from the log.
 */

/** In place of an agent: any agent. */
const ANY_AGENT = 'parley';
const ANONYMOUS: OwnPublisher = 'ag-ui';

export function addAgUiRoutes(app: Application): void {
  app.post('/ag-ui/:agent', (context) => run(context, context.req.param('agent')));
}

async function run(context: Request, slug: string): Promise<Response> {
  const { identity, routes } = context.var;
  const input = readRunInput(await jsonBody(context, { hasHistory: true }));
  // Messages and results of calls may be those of the log: `begin` requires the role for others (BEGIN-8).
  for (const one of input.resume)
    requireRole(identity, addressedBy(one).approvalId === null ? 'post' : 'approve');
  const { runFrames } = await import('./frames.ts'); // with the protocol's packages, which a start does not load
  const daemon = routes.daemon(context);
  const { agents } = await ask(daemon, 'agents', {});
  if (slug !== ANY_AGENT && !agents.some((agent) => agent.slug === slug)) throw unknown(slug, agents);
  const act = actingFor(daemon, identity, ANONYMOUS);
  const keep = (parts: readonly SentPart[]) => keepParts(parts, context, ANONYMOUS);
  const author = authorOf(identity, ANONYMOUS);
  const agent = slug === ANY_AGENT ? null : slug;
  const begun = await begin(daemon, input, { agent, author, identity, act, keep });
  const { closing } = routes;
  const address = addressOf(baseOf(context), input.conversation);
  const frames = runFrames({ daemon, input, begun, closing, onFault: faultsOf(context), address });
  context.header('x-parley-conversation', input.conversation);
  nameUnused(context, [...input.unused, ...begun.unused]);
  nameUnknownMentions(context, begun.unknownMentions);
  return streamed(context, frames, () => begun.arrivals.close());
}

function unknown(slug: string, agents: readonly { slug: string }[]): ParleyError {
  const names = [ANY_AGENT, ...agents.map((agent) => agent.slug)].join(', ');
  return new ParleyError('NOT_FOUND', `there is no agent ${JSON.stringify(slug)}`, {
    hint: `there are ${names}`,
  });
}
