import type { StreamState } from 'nats';
import type { StreamPosition } from '../../port.ts';
import { ANY } from '../../subjects.ts';
import type { IngressSources } from './ingress-sources.ts';
import { lastSequence } from './stored-posts.ts';
import { StreamConsumer } from './stream-consumer.ts';
import type { StreamMessage } from './stream-message.ts';

/**
 * Skips the posts of one publisher up to the current end of the stream, and reads those of the others.
 *
 * SKIP-1  No post is removed. If the skip is not possible (null), reading continues post by post.
 * SKIP-2  Each post of another publisher in the skipped part is read, and processed in stream order.
 * SKIP-3  The end of the stream is read before its subjects, which the server returns in pages. If posts were removed between
 *         two pages, nothing is skipped.
 */
export interface Skip {
  /** The last sequence of the skipped part. */
  readonly last: number;
  /** When the stream stored that post: milliseconds since the epoch. */
  readonly to: number;
  readonly others: readonly StreamMessage[];
  /** Number and estimated size of the publisher's skipped posts. */
  readonly count: number;
  readonly bytes: number;
}

/** Subjects in one answer of the server. */
const PAGE = 100_000;
const MOST_PUBLISHERS = 100;
const MOST_OTHERS = 1_000;
const READ_TIMEOUT_MS = 2_000;

type Sources = Pick<IngressSources, 'connection' | 'manager' | 'subjects'>;

/** `after`: the last post that was read. Null: SKIP-1. */
export async function skipAhead(
  sources: Sources,
  publisher: string,
  after: StreamPosition,
): Promise<Skip | null> {
  const { manager, subjects } = sources;
  const all = subjects.in(ANY, ANY);
  const { created, state: before } = await manager.streams.info(subjects.ingressStream);
  const { last_seq: last, last_ts: lastTime, messages, bytes } = before;
  const { state } = await manager.streams.info(subjects.ingressStream, { subjects_filter: all });
  const filters = filtersOf(sources, Object.keys(state.subjects ?? {}), publisher);
  if (created !== after.stream || last <= after.sequence || filters.length > MOST_PUBLISHERS) return null;
  if (Object.keys(state.subjects ?? {}).length >= PAGE && !hasAllOf(state, before)) return null; // SKIP-3
  const others: StreamMessage[] = [];
  for (const filter of filters) {
    if ((await lastSequence(manager, subjects.ingressStream, filter)) <= after.sequence) continue;
    const found = await readAll(sources, filter, after.sequence + 1);
    if (found === null || others.length + found.length > MOST_OTHERS) return null;
    others.push(...found.filter(({ sequence }) => sequence <= last));
  }
  const count = last - after.sequence - others.length;
  const size = Math.round((count * bytes) / Math.max(1, messages));
  return { last, to: Date.parse(`${lastTime}`), others, count, bytes: size };
}

/** No post was removed since `before`. */
function hasAllOf(state: StreamState, before: StreamState): boolean {
  return state.first_seq === before.first_seq && state.num_deleted === before.num_deleted;
}

/** One subject filter for each other publisher in the stream. */
function filtersOf({ subjects }: Sources, held: readonly string[], publisher: string): string[] {
  const filters = held.map((subject) => {
    const names = subjects.parseIn(subject);
    return names && names.publisher !== publisher
      ? subjects.in(names.publisher, ANY, names.isNameBound)
      : null;
  });
  return [...new Set(filters.filter((filter) => filter !== null))];
}

/** Null: there are too many, or the server did not return all of them. */
async function readAll(
  { connection, manager, subjects }: Sources,
  filter: string,
  from: number,
): Promise<StreamMessage[] | null> {
  const stream = subjects.ingressStream;
  const consumer = await StreamConsumer.open(connection, manager, stream, from, { filter });
  const timeout = setTimeout(() => consumer.interrupt('the server does not answer'), READ_TIMEOUT_MS);
  const found: StreamMessage[] = [];
  try {
    if (consumer.pending > MOST_OTHERS) return null;
    for (let missing = consumer.pending; missing > 0; missing = consumer.pending) {
      const end = await consumer.pull(missing, (message) => void found.push(message));
      if (end.kind !== 'filled') return null;
    }
    return found;
  } finally {
    clearTimeout(timeout);
    consumer.close();
  }
}

/**
 * Processes a skipped part in stream order: refuses the first and the last sequence of the publisher, which represent its
 * whole skipped range, and takes each post of another publisher.
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
