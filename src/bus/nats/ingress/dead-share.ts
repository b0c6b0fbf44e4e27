import type { JetStreamManager } from 'nats';
import { messageOf } from '../../../kernel/index.ts';
import type { BusLog } from '../../port.ts';
import { findStream } from '../streams/streams.ts';

/**
 * Limits the dead letters of one publisher to a quarter of the stream, so that they do not displace those of others.
 *
 * DEAD-SHARE-1  Only the publisher's own letters are removed, the oldest first.
 * DEAD-SHARE-2  The share is approximate: it is enforced each time that a publisher's letters have grown by `STEP_BYTES`. The
 *          number of letters to keep is computed from their mean size.
 */
const SHARE = 1 / 4;
const STEP_BYTES = 4 * 1_024 ** 2;
const MANY = 10_000;

export interface DeadShareOptions {
  readonly manager: JetStreamManager;
  readonly stream: string;
  readonly log: BusLog;
}

export class DeadShare {
  readonly #options: DeadShareOptions;
  /** Letters stored since the share was last enforced, by the subject filter of their publisher. */
  readonly #stored = new Map<string, { letters: number; bytes: number }>();

  constructor(options: DeadShareOptions) {
    this.#options = options;
  }

  /** Counts a stored letter and enforces the share. `filter` matches all letters of its publisher. Does not reject. */
  async stored(filter: string, bytes: number): Promise<void> {
    const stored = this.#stored.get(filter) ?? { letters: 0, bytes: 0 };
    stored.letters += 1;
    stored.bytes += bytes;
    const [oldest] = this.#stored.keys();
    if (this.#stored.size >= MANY && oldest !== undefined) this.#stored.delete(oldest);
    this.#stored.set(filter, stored);
    if (stored.bytes < STEP_BYTES) return;
    this.#stored.delete(filter);
    await this.#enforce(filter, stored.bytes / stored.letters);
  }

  async #enforce(filter: string, meanBytes: number): Promise<void> {
    const { manager, stream, log } = this.#options;
    try {
      const most = (await findStream(manager, stream))?.config.max_bytes ?? 0;
      if (most <= 0) return;
      const keep = Math.max(1, Math.floor(Math.max(0, most * SHARE - STEP_BYTES) / meanBytes));
      const { purged } = await manager.streams.purge(stream, { filter, keep });
      if (purged > 0) log.info({ filter, purged }, 'the oldest dead letters of a publisher were removed');
    } catch (error) {
      log.warn({ filter, reason: messageOf(error) }, 'the dead letters of a publisher could not be limited');
    }
  }
}
