import type { JetStreamManager } from 'nats';
import type { BusLog } from '../log.ts';
import type { StreamPosition } from '../port.ts';
import { brokerError } from './broker-error.ts';
import { findStream } from './streams.ts';

/**
 * Frees the room of settled posts.
 *
 * G1 Nothing is purged that is not settled, and `margin` sequences behind that stay (B2): on some versions a
 *    stream that was purged to its end once gave out old sequences again after a crash.
 * G2 Nothing is purged from another life of the stream.
 */

export interface PurgerOptions {
  readonly manager: JetStreamManager;
  readonly stream: string;
  readonly log: BusLog;
  /** Settled sequences that stay. */
  readonly margin: number;
  /** Purges once per so many settled sequences. */
  readonly every: number;
}

export class Purger {
  readonly #options: PurgerOptions;
  #purgedAt: StreamPosition | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(options: PurgerOptions) {
    this.#options = options;
  }

  settledUpTo(position: StreamPosition): void {
    const { margin, every } = this.#options;
    const last = this.#purgedAt?.stream === position.stream ? this.#purgedAt.sequence : 0;
    if (position.sequence <= margin || position.sequence < last + every) return;
    this.#purgedAt = position;
    this.#running = this.#running.then(() => this.#purge(position));
  }

  /** Resolves when no purge is under way. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #purge(position: StreamPosition): Promise<void> {
    const { manager, stream, margin, log } = this.#options;
    try {
      const info = await findStream(manager, stream);
      if (info?.created !== position.stream || info.state.last_seq < position.sequence) return; // G2
      const first = position.sequence - margin + 1; // G1: the oldest that stays
      if (first > info.state.first_seq) await manager.streams.purge(stream, { seq: first });
    } catch (error) {
      log.warn(
        { err: brokerError(error, `purge stream ${stream}`) },
        'settled posts stay until the next purge',
      );
    }
  }
}
