import type { LiveChunk } from '../bus/index.ts';
import { type Entry, FollowedLog, READ_AGAIN_MS } from '../conversation/index.ts';
import { ParleyError, sleep } from '../kernel/index.ts';
import type { AnswerOf } from './verbs.ts';

/**
 * Follows one conversation: each entry once, in order, and the live text. The feed on `parley.log` is best effort; the log
 * fills its gaps.
 *
 * CLIENT-FOLLOW-1 Entries have consecutive indexes from `from` on, whatever the feed lost, repeated or reordered. Entries that
 *    the server may have refused are read from the log (FOLLOWED-2).
 * CLIENT-FOLLOW-2 The server knows the subscription before the log is first read, so no entry is missed in between.
 * CLIENT-FOLLOW-3 A lost entry without a successor leaves no gap to see: the log is polled each `pollMs` and after each
 *    reconnection.
 * CLIENT-FOLLOW-4 Memory is bounded: when the reader lags, live chunks are dropped (they are lossy by contract) and so are
 *    feed messages (the log has them).
 * CLIENT-FOLLOW-5 After the first successful read, the follower waits for a daemon that does not answer; a refusal ends it.
 */

export type FollowEvent =
  | { readonly kind: 'entry'; readonly entry: Entry }
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
}

/** A message from the bus; its entries may be known already. */
export type Arrival =
  | { readonly kind: 'entries'; readonly entries: readonly Entry[] }
  | { readonly kind: 'live'; readonly agent: string; readonly chunk: LiveChunk }
  | { readonly kind: 'reconnected' };

/** What a follower needs of a connection. */
export interface FollowSource {
  /** Calls back for each arrival, in order; resolves when the server knows the subscription. */
  subscribe(live: boolean, onArrival: (arrival: Arrival) => void): Promise<() => void>;
  /** One page of the log from an index on. */
  page(from: number, signal: AbortSignal | undefined): Promise<AnswerOf<'entries'>>;
}

const DEFAULT_POLL_MS = 3_000;
const MOST_WAITING = 5_000;
/** Transient failures: the daemon restarts, the network recovers. */
const PASSING = new Set(['DAEMON_NOT_RUNNING', 'DAEMON_TIMEOUT', 'NATS_REQUEST_FAILED']);
const NOT_THERE_YET = new Set(['NOT_FOUND', 'CONVERSATION_NOT_FOUND', 'UNKNOWN_CONVERSATION']);

export async function* followConversation(
  source: FollowSource,
  options: FollowOptions,
): AsyncGenerator<FollowEvent, void, undefined> {
  const { signal, pollMs = DEFAULT_POLL_MS } = options;
  const inbox = createInbox();
  const log = createReader(source, options);
  const onAbort = () => inbox.wake();
  signal?.addEventListener('abort', onAbort);
  const unsubscribe = await source.subscribe(options.live !== false, inbox.put); // CLIENT-FOLLOW-2
  try {
    let behind = true;
    while (!signal?.aborted) {
      if (behind) {
        yield* log.catchUp();
        inbox.dropBelow(log.next());
        behind = false;
        continue;
      }
      const arrival = inbox.take();
      if (arrival === undefined) {
        behind = (await inbox.arrived(pollMs)) === 'timeout' || inbox.overflowed(); // CLIENT-FOLLOW-3
      } else if (arrival.kind === 'live') {
        yield arrival;
      } else if (arrival.kind === 'reconnected') {
        behind = true; // CLIENT-FOLLOW-3
      } else {
        const entries = log.fromFeed(arrival.entries);
        for (const entry of entries ?? []) yield { kind: 'entry', entry };
        behind = entries === null; // read before what arrived later is looked at
      }
    }
  } finally {
    signal?.removeEventListener('abort', onAbort);
    unsubscribe();
  }
}

interface Reader {
  catchUp(): AsyncGenerator<FollowEvent, void, undefined>;
  /** Null: read the log instead. */
  fromFeed(entries: readonly Entry[]): readonly Entry[] | null;
  next(): number;
}

/** Keeps the position in the log (CLIENT-FOLLOW-1). */
function createReader(source: FollowSource, { from = 0, signal }: FollowOptions): Reader {
  const log = new FollowedLog(from);
  let read = false;

  async function* catchUp(): AsyncGenerator<FollowEvent, void, undefined> {
    while (!signal?.aborted) {
      const page = await readPage(log.from);
      if (page === null) return;
      const found = log.fromLog(page);
      if (found === null) {
        if (log.newest === null) return; // the log is shorter than where it is to begin
        throw new ParleyError('CONVERSATION_DELETED', 'this conversation was deleted while it was followed', {
          hint: 'follow it again to see what was written since',
        });
      }
      for (const entry of found.entries) yield { kind: 'entry', entry };
      if (found.again === 'no') return;
      if (found.again === 'later') await sleep(READ_AGAIN_MS, signal);
    }
  }

  /** Null: the log cannot be read now (CLIENT-FOLLOW-5). */
  async function readPage(asked: number): Promise<AnswerOf<'entries'> | null> {
    try {
      const page = await source.page(asked, signal);
      read = true;
      return page;
    } catch (error) {
      if (signal?.aborted) return null;
      if (error instanceof ParleyError) {
        if (read && PASSING.has(error.code)) return null;
        if (log.newest === null && NOT_THERE_YET.has(error.code)) {
          read = true; // a conversation begins with its first message: wait for it
          return null;
        }
      }
      throw error;
    }
  }

  return { catchUp, fromFeed: (entries) => log.fromFeed(entries), next: () => log.next };
}

/** Arrivals in order, and a way to wait for the next one. */
function createInbox() {
  let waiting: Arrival[] = [];
  let lost = false;
  let resolve: (() => void) | null = null;
  const wake = () => {
    resolve?.();
    resolve = null;
  };
  return {
    wake,
    put(arrival: Arrival): void {
      if (waiting.length < MOST_WAITING) waiting.push(arrival);
      else lost ||= arrival.kind !== 'live'; // CLIENT-FOLLOW-4
      wake();
    },
    take: (): Arrival | undefined => waiting.shift(),
    /** Entries that were read from the log meanwhile. */
    dropBelow(next: number): void {
      const isRead = (arrival: Arrival) =>
        arrival.kind === 'entries' && arrival.entries.every(({ index }) => index < next);
      waiting = waiting.filter((arrival) => !isRead(arrival));
    },
    /** True once after feed messages were dropped. */
    overflowed(): boolean {
      const was = lost;
      lost = false;
      return was;
    },
    /** Resolves at the next arrival, or after `milliseconds`. */
    arrived(milliseconds: number): Promise<'something' | 'timeout'> {
      if (waiting.length > 0 || lost) return Promise.resolve('something');
      return new Promise((done) => {
        const timer = setTimeout(() => {
          resolve = null;
          done('timeout');
        }, milliseconds);
        resolve = () => {
          clearTimeout(timer);
          done('something');
        };
      });
    },
  };
}
