import type { StreamState } from 'nats';
import type { StreamPosition, UnreadPosts } from '../../post.ts';
import { ANY } from '../../subjects.ts';
import { type IngressSources, lastSequence, StreamConsumer, type StreamMessage } from './stored-posts.ts';

/**
 * Skips the posts of publishers that flood the stream up to its current end, and reads those of the others.
 *
 * SKIP-1  No post is removed. If the skip is not possible, reading continues post by post.
 * SKIP-2  Each post of another publisher in the skipped part is read, and processed in stream order.
 * SKIP-3  The end of the stream is read before its subjects, which the server returns in pages. If posts were removed between
 *         two pages, nothing is skipped.
 * SKIP-4  Unread posts are counted for each publisher, and those of a publisher with few of them are read, whatever its rate.
 * SKIP-5  Posts are read here without bodies, so that their size does not matter.
 */
export interface Skip {
  /** The last sequence of the skipped part. */
  readonly last: number;
  readonly others: readonly StreamMessage[];
  /** The skipped posts of each publisher. */
  readonly floods: readonly UnreadPosts[];
}

/** Subjects in one answer of the server. */
const PAGE = 100_000;
const MOST_PUBLISHERS = 100;
/** Unread posts of a publisher that are read even in a flood. */
const FEW = 1_000;
/** With more unread posts of a publisher that are no flood, nothing is skipped. */
const MOST_READ = 10_000;
const READ_TIMEOUT_MS = 2_000;

type Sources = Pick<IngressSources, 'connection' | 'manager' | 'subjects'>;

/** `after`: the last post that was read, and when the stream stored it. Null, and a rejection: SKIP-1. */
export async function skipAhead(
  sources: Sources,
  after: StreamPosition & { readonly time: number },
  isFlood: (posts: UnreadPosts) => boolean,
): Promise<Skip | null> {
  const { manager, subjects } = sources;
  const all = subjects.in(ANY, ANY);
  const { created, state: before } = await manager.streams.info(subjects.ingressStream);
  const { last_seq: last, last_ts: lastTime, messages, bytes } = before;
  const { state } = await manager.streams.info(subjects.ingressStream, { subjects_filter: all });
  const held = Object.keys(state.subjects ?? {});
  const publishers = new Set(held.flatMap((subject) => subjects.parseIn(subject)?.publisher ?? []));
  if (created !== after.stream || last <= after.sequence || publishers.size > MOST_PUBLISHERS) return null;
  if (held.length >= PAGE && !hasAllOf(state, before)) return null;
  const range = { stream: created, first: after.sequence + 1, last };
  const times = { from: after.time, to: Date.parse(`${lastTime}`) };
  const of = (publisher: string, count: number) => {
    return {
      publisher,
      ...range,
      ...times,
      count,
      bytes: Math.round((count * bytes) / Math.max(1, messages)),
    };
  };
  const parts = await Promise.all(
    [...publishers].map(async (publisher) => ({
      publisher,
      ...(await unreadOf(sources, publisher, range, (count) => isFlood(of(publisher, count)))),
    })),
  );
  const others = parts.flatMap(({ posts }) => posts ?? []);
  const counted = parts.filter(({ posts }) => posts === null);
  const skipped = last - after.sequence - others.length;
  const floods = shareOut(counted, skipped);
  if (floods.length === 0 || skipped <= 0) return null;
  return { last, others, floods: floods.map(({ publisher, count }) => of(publisher, count)) };
}

/** No post was removed since `before`. */
function hasAllOf(state: StreamState, before: StreamState): boolean {
  return state.first_seq === before.first_seq && state.num_deleted === before.num_deleted;
}

/** Without the posts that arrived while the publishers were counted: these are removed in proportion. */
function shareOut<P extends { readonly count: number }>(counted: readonly P[], skipped: number): P[] {
  let [sum, left] = [counted.reduce((total, { count }) => total + count, 0), skipped];
  return counted.map((part) => {
    const count = Math.round((part.count * left) / Math.max(1, sum));
    sum -= part.count;
    left -= count;
    return { ...part, count };
  });
}

/** The unread posts of one publisher; only their number if they are a flood. Rejects if they cannot be read. */
async function unreadOf(
  { connection, manager, subjects }: Sources,
  publisher: string,
  { first, last }: Pick<UnreadPosts, 'first' | 'last'>,
  isFlood: (count: number) => boolean,
): Promise<{ readonly count: number; readonly posts: readonly StreamMessage[] | null }> {
  const stream = subjects.ingressStream;
  const filter = subjects.in(publisher, ANY);
  if ((await lastSequence(manager, stream, filter)) < first) return { count: 0, posts: [] };
  const options = { filter, isHeadersOnly: true };
  const consumer = await StreamConsumer.open(connection, manager, stream, first, options);
  try {
    const count = consumer.pending;
    if (count > FEW && isFlood(count)) return { count, posts: null };
    if (count > MOST_READ) throw new Error('a publisher has many unread posts that are no flood');
    const posts = await readAll(consumer);
    return { count, posts: posts.filter(({ sequence }) => sequence <= last) };
  } finally {
    consumer.close();
  }
}

/** Rejects if the server does not answer in time. */
async function readAll(consumer: StreamConsumer): Promise<StreamMessage[]> {
  const timeout = setTimeout(() => consumer.interrupt('the server does not answer'), READ_TIMEOUT_MS);
  const found: StreamMessage[] = [];
  try {
    await consumer.toEnd((message) => void found.push(message));
    return found;
  } finally {
    clearTimeout(timeout);
  }
}

/**
 * Processes a skipped part in stream order: refuses the first and the last sequence of the flood, which represent the whole
 * skipped range, and takes each post of another publisher.
 */
export function handOverSkipped(
  from: number,
  { last, others }: Pick<Skip, 'last' | 'others'>,
  refuse: (sequence: number) => void,
  take: (message: StreamMessage) => void,
): void {
  const theirs = new Set(others.map(({ sequence }) => sequence));
  let [low, high] = [from, last];
  while (theirs.has(low)) low += 1;
  while (theirs.has(high)) high -= 1;
  const ends = low < high ? [low, high] : low === high ? [low] : [];
  const handed = [
    ...ends.map((sequence) => ({ sequence, hand: () => refuse(sequence) })),
    ...others.map((message) => ({ sequence: message.sequence, hand: () => take(message) })),
  ];
  for (const { hand } of handed.sort((one, other) => one.sequence - other.sequence)) hand();
}

/** With more bytes of refused posts in one pull, bodies are no longer read. */
const MANY_BYTES = 1_024 * 1_024;
/** Bodies are read again after this time with fewer. */
const CALM_MS = 2_000;

/** Decides whether bodies are read: not in a flood of long posts that are refused. */
export class BodyMode {
  #bytes = 0;
  /** Monotonic milliseconds. */
  #withoutUntil = 0;

  refused(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Before each pull. */
  update(): void {
    if (this.#bytes > MANY_BYTES) this.#withoutUntil = performance.now() + CALM_MS;
    this.#bytes = 0;
  }

  get isHeadersOnly(): boolean {
    return performance.now() < this.#withoutUntil;
  }
}

/** Posts are skipped only if the stream has more unread ones than this. */
const MANY_UNREAD = 5_000;
/** Share of refused posts in a pull that makes it a flood. The pull after a skip has posts that the rate permits again. */
const FLOOD_SHARE = 0.5;
const BETWEEN_SKIPS_MS = 100;

/** Decides when to skip unread posts, from the last pull. */
export class FloodWatch {
  #refused = 0;
  #read = 0;
  #skippedAt = Number.NEGATIVE_INFINITY;

  read(isRefused: boolean): void {
    this.#read += 1;
    if (isRefused) this.#refused += 1;
  }

  /** Call it after each pull. */
  isSkipDue(unread: number): boolean {
    const isFlood = this.#refused > 0 && this.#refused >= this.#read * FLOOD_SHARE;
    this.#refused = 0;
    this.#read = 0;
    const now = performance.now();
    if (!isFlood || unread < MANY_UNREAD || now - this.#skippedAt < BETWEEN_SKIPS_MS) return false;
    this.#skippedAt = now;
    return true;
  }
}

/** Refused posts that are settled together, once their dead letter is stored. */
export class RefusedTogether {
  readonly #waiting = new Map<Promise<void>, number[]>();

  /** If `kept` rejects they stay unsettled. */
  add(kept: Promise<void>, sequence: number, settle: (sequences: readonly number[]) => void): void {
    const known = this.#waiting.get(kept);
    if (known) {
      known.push(sequence);
      return;
    }
    const sequences = [sequence];
    this.#waiting.set(kept, sequences);
    void kept.then(
      () => {
        this.#waiting.delete(kept);
        settle(sequences);
      },
      () => this.#waiting.delete(kept),
    );
  }
}
