import { NAME_PATTERN } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import { type Application, daemonOf, faultsOf, type Request, type RouteContext } from '../context.ts';
import { streamed } from '../progress/event-stream.ts';
import {
  conversationFeed,
  type Feed,
  frame,
  ListFeed,
  ONE_CONVERSATION,
  SEVERAL_CONVERSATIONS,
} from './feeds.ts';

/** The event streams: log, live text and list as server-sent events. */

/** Sent first: the browser reports the stream as open, and reconnects after a second. */
export const GREETING: Uint8Array = Buffer.from('retry: 1000\n\n');
const MOST_FOLLOWED = 64;

export function addEventRoutes(app: Application, routes: RouteContext): void {
  const onFault = (error: unknown) => routes.onFault(error, '/api/events');
  const list = new ListFeed({ daemon: () => routes.daemon(), newId: routes.newId, onFault });
  const stream = (context: Request, feeds: readonly Feed[]) =>
    streamed(context, framesOf(feeds, routes.closing), () => {
      for (const feed of feeds) feed.close();
    });
  app.get('/api/conversations/:conversation/events', (context) => {
    const conversation = checkedName(context.req.param('conversation'));
    const from = startOf(context.req.header('last-event-id'), context.req.query('from'));
    const place = { daemon: daemonOf(context), framing: ONE_CONVERSATION, conversation, from };
    return stream(context, [conversationFeed({ ...place, onFault: faultsOf(context) })]);
  });
  app.get('/api/events', (context) => {
    const followed = followedOf(context.req.query('follow') ?? '');
    const since = context.req.query('list');
    if (followed.size === 0 && since === undefined)
      throw badRequest(
        'nothing to follow',
        'name conversations with ?follow=ID@INDEX,…, or the list with ?list=1',
      );
    const shared = { daemon: daemonOf(context), framing: SEVERAL_CONVERSATIONS, onFault: faultsOf(context) };
    const onEntries = () => list.hurry();
    const feeds = [...followed].map(([conversation, from]) =>
      conversationFeed({ ...shared, conversation, from, onEntries }),
    );
    return stream(context, since === undefined ? feeds : [...feeds, list.join(since)]);
  });
}

/** The frames of the feeds as they come. A feed is asked for its next ones after its frames before were taken. */
async function* framesOf(feeds: readonly Feed[], closing: AbortSignal): AsyncGenerator<Uint8Array> {
  const idle = new Set(feeds);
  const frames = [GREETING];
  let open = feeds.length;
  let wake = () => {};
  const receive = async (feed: Feed) => {
    idle.delete(feed);
    const taken = await feed.take();
    if (taken === 'too-slow') open = 0;
    else if (taken === null) open -= 1;
    else idle.add(feed);
    if (Array.isArray(taken)) frames.push(...taken);
    wake();
  };
  while (frames.length > 0 || open > 0) {
    if (frames.length > 0) yield Buffer.concat(frames.splice(0));
    else {
      for (const feed of idle) void receive(feed);
      await new Promise<void>((woken) => {
        wake = woken;
      });
    }
  }
  if (closing.aborted) yield frame('end', { code: 'STOPPING', message: 'the daemon stops' });
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
