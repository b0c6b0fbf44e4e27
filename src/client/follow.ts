import { type Arrival, Follower } from '../bus/index.ts';
import type { Entry, LiveChunk } from '../conversation/index.ts';
import { abortable, hasCode, linkedAbort, onAbort } from '../kernel/index.ts';
import { isUnreachable } from './requests.ts';
import type { AnswerOf, PostAnswer, PostMessage, PostOptions, SendRequest } from './verbs.ts';

/**
 * Follows one conversation over a connection: each entry once, in order, and the live text (`Follower`); or reads its log once.
 *
 * CLIENT-FOLLOW-1 The log is polled each `pollMs`: a connection can lose messages of the feed.
 * CLIENT-FOLLOW-2 Memory is bounded: when the reader lags, live chunks are dropped (they are lossy by contract) and so are
 *    feed messages (the log has them).
 * CLIENT-FOLLOW-3 It waits for a conversation that does not exist yet.
 * CLIENT-FOLLOW-4 After the first successful read, it waits for a daemon that does not answer; a refusal ends it.
 * CLIENT-FOLLOW-5 `onReachable` gets false when the connection is lost and when the daemon does not answer, and true after each
 *    read of the log.
 */

export type { Arrival };

export type FollowEvent =
  /** `isCurrent`: the log had no later entry: what it leaves open is open. */
  | { readonly kind: 'entry'; readonly entry: Entry; readonly isCurrent?: boolean }
  | { readonly kind: 'live'; readonly agent: string; readonly chunk: LiveChunk };

export interface FollowOptions {
  /** The first index wanted; 0 by default. */
  readonly from?: number;
  /** With live chunks; true by default. */
  readonly live?: boolean;
  /** Ends the iteration, without an error. */
  readonly signal?: AbortSignal;
  /** The interval at which the log is polled for lost entries; 3,000 by default. */
  readonly pollMs?: number;
  /** Called often, also without a change (CLIENT-FOLLOW-5). */
  readonly onReachable?: (isReachable: boolean) => void;
}

/** What a follower needs of a connection. */
export interface FollowSource {
  /** Calls back for each arrival, in order; resolves when the server knows the subscription. */
  subscribe(live: boolean, onArrival: (arrival: Arrival) => void): Promise<() => void>;
  /** One page of the log from an index on. */
  page(from: number, signal: AbortSignal | undefined): Promise<AnswerOf<'entries'>>;
  /** Aborts when the client closes. */
  readonly closing?: AbortSignal;
}

const DEFAULT_POLL_MS = 3_000;

export async function* followConversation(
  source: FollowSource,
  { from = 0, live = true, signal, pollMs = DEFAULT_POLL_MS, onReachable }: FollowOptions,
): AsyncGenerator<FollowEvent, void, undefined> {
  let hasRead = false;
  const page = async (from: number, signal: AbortSignal) => {
    try {
      const page = await source.page(from, signal);
      hasRead = true;
      onReachable?.(true);
      return page;
    } catch (error) {
      if (signal.aborted) return null; // it ends
      if (hasRead && isUnreachable(error)) {
        onReachable?.(false);
        return null;
      }
      if (!hasCode(error, 'NOT_FOUND')) throw error;
      hasRead = true;
      onReachable?.(true);
      return { length: 0, entries: [] };
    }
  };
  const subscribe = (onArrival: (arrival: Arrival) => void) => source.subscribe(live, onArrival);
  const follower = new Follower({ subscribe, page }, { pollMs, whenFull: 'drop' });
  follower.begin(from);
  const close = () => follower.close();
  const signals = [signal, source.closing].filter((one) => one !== undefined);
  const detach = onAbort(signals, close);
  try {
    for (let received = await follower.take(); received; received = await follower.take()) {
      if (received.kind === 'live') {
        yield received;
        continue;
      }
      const { entries, isCurrent } = received;
      for (const entry of entries)
        yield { kind: 'entry', entry, ...(isCurrent && entry === entries.at(-1) && { isCurrent }) };
    }
  } finally {
    detach();
    close();
  }
}

interface Requests {
  readonly request: SendRequest;
}

/** Yields the log from an index on, page by page. */
export async function* logEntries(
  client: Requests,
  conversation: string,
  from: number,
): AsyncGenerator<Entry, void, undefined> {
  for (let next = from; ; ) {
    const { entries, length } = await client.request('entries', { conversation, from: next });
    yield* entries;
    const last = entries.at(-1);
    if (last === undefined || last.index + 1 >= length) return;
    next = last.index + 1;
  }
}

/** The length of the log; 0 for a conversation that does not exist yet. */
export async function logLength(client: Requests, conversation: string): Promise<number> {
  try {
    return (await client.request('conversation', { conversation })).length;
  } catch (error) {
    if (hasCode(error, 'NOT_FOUND')) return 0;
    throw error;
  }
}

export interface PostingClient extends Requests {
  post(message: PostMessage, options: PostOptions): Promise<PostAnswer>;
  follow(conversation: string, options: FollowOptions): AsyncIterable<FollowEvent>;
}

/** Posts, and yields the events from that message on. Follows before it posts, so that no early token is missed. */
export async function postAndFollow(
  client: PostingClient,
  message: PostMessage,
  { signal, live = true, ...more }: PostOptions & { readonly signal: AbortSignal; readonly live?: boolean },
): Promise<{ answer: PostAnswer; events: AsyncGenerator<FollowEvent, void, undefined> }> {
  const { conversation } = message;
  const from = await abortable(logLength(client, conversation), signal);
  const early = linkedAbort(signal);
  const following = client.follow(conversation, { from, live, signal: early.signal })[Symbol.asyncIterator]();
  const first = following.next();
  first.catch(() => {}); // reported where it is awaited
  try {
    const answer = await client.post(message, { signal, ...more });
    if (answer.index >= from) return { answer, events: since(answer.index, following, first) };
    early.abort(); // the id was posted before: its events are earlier
    const again = client.follow(conversation, { from: answer.index, live, signal })[Symbol.asyncIterator]();
    return { answer, events: since(answer.index, again, again.next()) };
  } catch (error) {
    early.abort(); // not `return`, which would wait for an event
    throw error;
  }
}

async function* since(
  index: number,
  following: AsyncIterator<FollowEvent>,
  first: Promise<IteratorResult<FollowEvent>>,
): AsyncGenerator<FollowEvent, void, undefined> {
  try {
    for (let next = await first; !next.done; next = await following.next()) {
      const event = next.value;
      if (event.kind === 'live' || event.entry.index >= index) yield event;
    }
  } finally {
    await following.return?.();
  }
}
