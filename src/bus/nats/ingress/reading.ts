import type { Delivery } from '../../port.ts';
import type { LowWaterMark, Settled } from '../../settled.ts';
import type { FairQueue, QueuedDelivery } from './fair-queue.ts';
import type { WasRefused } from './refused-posts.ts';
import type { StreamMessage } from './stream-message.ts';

/** The state of `ingress.ts` while it reads. */

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

/** `life`: the creation time of its stream. */
export function deliveryFrom(
  life: string,
  {
    publisher,
    conversation,
    isNameBound,
    message,
  }: QueuedDelivery<StreamMessage> & Pick<Delivery, 'isNameBound'>,
): Delivery {
  const { sequence, time, data, messageId } = message;
  return {
    position: { stream: life, sequence },
    takenAt: Number(time / 1_000_000n),
    fallbackId: `in-${sequence}-${time.toString(36)}`,
    publisher,
    conversation,
    ...(isNameBound !== undefined && { isNameBound }),
    body: data,
    messageId,
  };
}
