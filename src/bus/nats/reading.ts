import type { IngressDelivery } from '../port.ts';
import type { StreamMessage } from './stream-message.ts';
import type { Parcel } from './turnstile.ts';

/** Parts of `ingress.ts` that know no stream. */

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
  }: Parcel<StreamMessage> & Pick<IngressDelivery, 'isNameBound'>,
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
