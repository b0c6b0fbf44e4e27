import type { LowWaterMark } from '../../low-water-mark.ts';
import type { IngressDelivery } from '../../port.ts';
import type { Settled } from '../../settled.ts';
import type { FairQueue, QueuedPost } from './fair-queue.ts';
import type { WasRefused } from './refused-posts.ts';
import type { StreamMessage } from './stream-message.ts';

/** What `ingress.ts` remembers while it reads. */

/** Where reading stands in one life of the stream. */
export interface Cursor {
  readonly life: string;
  /** The last sequence handed over. */
  last: number;
  /** When the stream took that message; null if it was not read by this process. */
  lastTime: bigint | null;
  readonly mark: LowWaterMark;
  readonly turnstile: FairQueue<StreamMessage>;
  /** INGRESS-6 */
  readonly skip: Settled | null;
  readonly isElsewhere: (sequence: number) => boolean;
  /** Refused with others before this process read it. */
  wasRefused: WasRefused | null;
  /** Of posts under way that are over the rate: what `onRead` said. */
  readonly waits: Map<number, number>;
}

/** Bytes of refused posts in one pull: with more, further bodies are not read. */
const MANY_BYTES = 1_024 * 1_024;
/** After so long with fewer, bodies are read again. */
const CALM_MS = 2_000;

/** Whether bodies are read: in a flood of long posts that are refused they are not. */
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

/** Unread posts of the stream: with more, it is worth skipping some. */
const MANY_UNREAD = 5_000;
/** Of the posts of one pull: one publisher's refused ones. */
const MOSTLY = 0.9;
const BETWEEN_SKIPS_MS = 100;

/** Who floods, as far as the last pull says. */
export class FloodWatch {
  readonly #refused = new Map<string, number>();
  #read = 0;
  #skippedAt = Number.NEGATIVE_INFINITY;

  read(refusedPublisher: string | null): void {
    this.#read += 1;
    if (refusedPublisher !== null)
      this.#refused.set(refusedPublisher, (this.#refused.get(refusedPublisher) ?? 0) + 1);
  }

  /** After each pull: whose unread posts to skip, if reading is far behind; null: nothing is to be skipped. */
  flooder(unread: number): string | null {
    const found = [...this.#refused].find(([, count]) => count >= this.#read * MOSTLY);
    this.#refused.clear();
    this.#read = 0;
    const now = performance.now();
    if (!found || unread < MANY_UNREAD || now - this.#skippedAt < BETWEEN_SKIPS_MS) return null;
    this.#skippedAt = now;
    return found[0];
  }
}

/** Sequences that are settled together, when what refuses them is stored. */
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

/** `life`: of the stream that it was read from. */
export function deliveryFrom(
  life: string,
  {
    publisher,
    conversation,
    isNameBound,
    message,
  }: QueuedPost<StreamMessage> & Pick<IngressDelivery, 'isNameBound'>,
): IngressDelivery {
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
