import { NAME_PATTERN } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import type { Application, RouteContext } from '../context.ts';
import { Channels } from './channel.ts';
import { ConversationFeed } from './conversation-feed.ts';
import { ONE_CONVERSATION, SEVERAL_CONVERSATIONS } from './frames.ts';
import { ListFeed } from './list-feed.ts';
import { bodyOf, type Feed, Reader } from './reader.ts';

/**
 * The event streams: log, live text and list as server-sent events.
 *
 * reader.ts             one client: heartbeats, back-pressure, the end
 * conversation-feed.ts  the frames of a conversation; channel.ts shares them among readers
 * list-feed.ts          the changes of the conversation list
 * frames.ts             the encoding
 */

export interface EventRouteOptions {
  readonly heartbeatMs: number;
  readonly onFault: (error: unknown, path: string) => void;
}

const MOST_FOLLOWED = 64;

export function addEventRoutes(
  app: Application,
  routes: RouteContext,
  { heartbeatMs, onFault }: EventRouteOptions,
): void {
  const { closing, newId } = routes;
  const one = new Channels(ONE_CONVERSATION);
  const several = new Channels(SEVERAL_CONVERSATIONS);
  const onFaultAt = (path: string) => (error: unknown) => onFault(error, path);
  const daemon = () => routes.daemon();
  const list = new ListFeed({ daemon, newId, onFault: onFaultAt('/api/events') });
  const stream = (feeds: readonly Feed[]) =>
    new Response(bodyOf(new Reader({ feeds, heartbeatMs, closing })), {
      headers: { 'content-type': 'text/event-stream; charset=utf-8' },
    });
  app.get('/api/conversations/:conversation/events', (context) => {
    const conversation = checkedName(context.req.param('conversation'));
    const from = startOf(context.req.header('last-event-id'), context.req.query('from'));
    const place = { daemon: daemon(), channels: one, conversation, from };
    return stream([new ConversationFeed({ ...place, onFault: onFaultAt(context.req.path) })]);
  });
  app.get('/api/events', (context) => {
    const followed = followedOf(context.req.query('follow') ?? '');
    const since = context.req.query('list');
    if (followed.size === 0 && since === undefined)
      throw badRequest(
        'nothing to follow',
        'name conversations with ?follow=ID@INDEX,…, or the list with ?list=1',
      );
    const shared = { daemon: daemon(), channels: several, onFault: onFaultAt(context.req.path) };
    const onEntries = () => list.hurry();
    const feeds: Feed[] = [...followed].map(
      ([conversation, from]) => new ConversationFeed({ ...shared, conversation, from, onEntries }),
    );
    return stream(since === undefined ? feeds : [...feeds, list.join(since)]);
  });
}

function checkedName(conversation: string): string {
  if (NAME_PATTERN.test(conversation)) return conversation;
  throw new ParleyError('INVALID_NAME', `${JSON.stringify(conversation)} is no conversation`, {
    hint: 'use 1 to 128 letters, digits, _ or -',
  });
}

/** The conversations of `ID@INDEX,…` with the first index wanted, by default 0. */
function followedOf(text: string): ReadonlyMap<string, number> {
  const parts = text === '' ? [] : text.split(',');
  if (parts.length > MOST_FOLLOWED)
    throw badRequest(`${parts.length} conversations in one stream`, `follow at most ${MOST_FOLLOWED}`);
  return new Map(
    parts.map((part) => {
      const [name = '', from, ...more] = part.split('@');
      if (more.length > 0) throw badRequest(`${JSON.stringify(part)} is not ID@INDEX`, INDEX_HINT);
      return [checkedName(name), indexOf(from ?? '0')];
    }),
  );
}

/** The start index: after the last seen event, else from the query, else 0. */
export function startOf(lastEventId: string | undefined, from: string | undefined): number {
  const lastSeen = lastEventId || undefined;
  const index = indexOf(lastSeen ?? from ?? '0');
  return lastSeen === undefined ? index : index + 1;
}

const INDEX_HINT = 'Last-Event-ID takes the id of an event; ?from= and ?follow=ID@ the first index wanted';

function indexOf(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw badRequest(`${JSON.stringify(text)} is not the index of an entry`, INDEX_HINT);
}

function badRequest(message: string, hint: string): ParleyError {
  return new ParleyError('BAD_REQUEST', message, { hint });
}
