import type { StreamInfo } from 'nats';
import type { IngressLag, IngressOptions } from '../../port.ts';
import { covers, LowWaterMark, type Settled, union } from '../../settled.ts';
import type { FairQueue, FairQueueLimits } from './fair-queue.ts';
import type { IngressSources } from './ingress-sources.ts';
import type { WasRefused } from './refused-posts.ts';
import { MOST_OPEN } from './settled-keeper.ts';
import { timeOf } from './stored-posts.ts';
import type { StreamMessage } from './stream-message.ts';

/** The state of `ingress.ts` while it reads, and what follows from it. */

/** The read position in one stream. */
export interface Cursor {
  /** The creation time of the stream: a stream that is created again has another one. */
  readonly life: string;
  /** The last sequence that was read. */
  last: number;
  /** When the stream stored that message; null if this process did not read it. */
  lastTime: bigint | null;
  readonly mark: LowWaterMark;
  readonly queue: FairQueue<StreamMessage>;
  /** INGRESS-6 */
  readonly skip: Settled | null;
  readonly isSettledElsewhere: (sequence: number) => boolean;
  /** Whether a post was refused in a batch before this process read it. */
  wasRefused: WasRefused | null;
  /** Skipped parts whose letters are not stored: the mark has only the ends of each. */
  unsettledSkips: number;
  /** The `waitMs` from `onRead`, by sequence, of posts in flight that exceed the rate. */
  readonly waits: Map<number, number>;
}

export function cursorAt(life: string, last: number, skip: Settled | null, queue: Cursor['queue']): Cursor {
  const isSettledElsewhere = skip ? covers(skip) : () => false;
  const unread = { lastTime: null, wasRefused: null, unsettledSkips: 0 };
  return {
    life,
    last,
    ...unread,
    mark: new LowWaterMark(last),
    queue,
    skip,
    isSettledElsewhere,
    waits: new Map(),
  };
}

/** INGRESS-6: what the server records. */
export function settledBy({ life: stream, mark, skip, unsettledSkips, last: sequence, lastTime }: Cursor) {
  const settled = union(mark.settled(unsettledSkips > 0 ? 0 : MOST_OPEN), skip);
  return { stream, settled, last: lastTime === null ? null : { sequence, time: `${lastTime}` } };
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

/** The message limit of the stream, so that a flood leaves no post unread. About 75 MB, 150 MB if each has its own conversation. */
const MAX_PARKED = 1_000_000;
/** The default of `maxKeptBytes`. */
const MAX_KEPT_BYTES = 32 * 1_024 * 1_024;

export function queueLimits(options: IngressOptions): FairQueueLimits {
  const { maxInFlight, maxInFlightPerPublisher, maxConversationsPerPublisher } = options;
  const { maxBytesInFlight, maxParked, maxKeptBytes } = options;
  return {
    maxInFlight,
    perPublisher: maxInFlightPerPublisher ?? maxInFlight,
    conversationsPerPublisher: maxConversationsPerPublisher ?? Number.POSITIVE_INFINITY,
    maxBytes: maxBytesInFlight ?? Number.POSITIVE_INFINITY,
    maxParked: maxParked ?? MAX_PARKED,
    maxKept: maxKeptBytes ?? MAX_KEPT_BYTES,
  };
}

/** Whether the cursor belongs to the stream as it is now: it was neither created again nor rolled back. */
export async function isOfStream(
  cursor: Cursor,
  { created, state }: StreamInfo,
  { manager, subjects }: IngressSources,
): Promise<boolean> {
  if (cursor.life !== created || cursor.last > state.last_seq) return false;
  if (cursor.lastTime === null || cursor.last < state.first_seq) return true;
  // A stream that lost its tail in a crash reuses the sequences for other messages.
  const stored = await timeOf(manager, subjects.ingressStream, cursor.last);
  return stored === null || stored === cursor.lastTime;
}

/** The posts that are unread or unsettled. A cursor of an earlier stream counts nothing. */
export async function lagOf(cursor: Cursor | null, sources: IngressSources): Promise<IngressLag> {
  const { state, created } = await sources.stream();
  const current = cursor?.life === created ? cursor : null;
  const read = current?.last ?? 0;
  const unread = Math.max(0, state.last_seq - Math.max(read, state.first_seq - 1));
  const messages = unread + (current?.mark.underWay ?? 0);
  if (messages === 0) return { messages, oldestTakenAt: null };
  const oldest = current?.mark.oldest ?? Math.max(read + 1, state.first_seq);
  const time = await timeOf(sources.manager, sources.subjects.ingressStream, oldest);
  return { messages, oldestTakenAt: time === null ? null : Number(time / 1_000_000n) };
}
