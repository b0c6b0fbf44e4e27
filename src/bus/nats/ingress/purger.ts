import type { JetStreamManager, StreamInfo } from 'nats';
import type { BusLog, StreamPosition } from '../../port.ts';
import { brokerError } from '../streams/broker-error.ts';
import { findStream } from '../streams/streams.ts';

/**
 * Purges settled posts.
 *
 * PURGER-1 Only settled posts are purged, and the last `margin` of them stay (BUS-PORT-2): on some server versions a stream that
 *    was purged to its end reuses old sequences after a crash.
 * PURGER-2 Nothing is purged after the stream was created again.
 * PURGER-3 Settled posts never fill the stream: while it is more than half full, in bytes or in posts, fewer of them stay; the
 *    newest one always stays. (Reused sequences are detected by INGRESS-4. A full stream would never be purged again.)
 *    A purge follows each settled post within `DELAY_MS`, and a failed one is retried without waiting for another post.
 */

const DELAY_MS = 1_000;

export interface PurgerOptions {
  readonly manager: JetStreamManager;
  readonly stream: string;
  readonly log: BusLog;
  /** Settled sequences that stay. */
  readonly margin: number;
  /** Purges once per so many settled sequences. */
  readonly every: number;
  /** The limit of the whole stream (`capacity-guard.ts`). */
  readonly maxBytes: number;
}

export class Purger {
  readonly #options: PurgerOptions;
  #purgedAt: StreamPosition | null = null;
  #running: Promise<void> = Promise.resolve();
  /** Bytes read since the last purge. Infinite at first, so that the first purge is due at once. */
  #bytes = Number.POSITIVE_INFINITY;
  #latest: StreamPosition | null = null;
  #timer: NodeJS.Timeout | null = null;
  /** Only the first of several failures in a row is logged. */
  #hasReportedFailure = false;
  #isStopping = false;

  constructor(options: PurgerOptions) {
    this.#options = options;
  }

  /** Call it with the size of each post that was read. */
  noteRead(bytes: number): void {
    this.#bytes += bytes;
  }

  settledUpTo(position: StreamPosition): void {
    const { margin, every } = this.#options;
    const last = this.#purgedAt?.stream === position.stream ? this.#purgedAt.sequence : 0;
    const isDue = position.sequence > margin && position.sequence >= last + every;
    this.#latest = position;
    if (isDue || this.#bytes > this.#options.maxBytes / 8) this.#start();
    else this.#startLater();
  }

  /** Resolves when no purge is running. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#timer ?? undefined);
    await this.#running;
  }

  #start(): void {
    const position = this.#latest;
    if (position === null) return;
    this.#purgedAt = position;
    this.#bytes = 0;
    this.#running = this.#running.then(() => this.#purge(position));
  }

  /** PURGER-3 */
  #startLater(): void {
    if (this.#isStopping) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#start();
    }, DELAY_MS).unref();
  }

  async #purge(position: StreamPosition): Promise<void> {
    const { stream, log } = this.#options;
    try {
      await this.#freeUpTo(position);
      this.#hasReportedFailure = false;
    } catch (error) {
      const err = brokerError(error, `purge stream ${stream}`);
      if (!this.#hasReportedFailure) log.warn({ err }, 'settled posts cannot be purged; retrying');
      this.#hasReportedFailure = true;
      this.#startLater();
    }
  }

  async #freeUpTo(position: StreamPosition): Promise<void> {
    const { manager, stream, margin, maxBytes } = this.#options;
    for (let stay = margin; ; stay = Math.floor(stay / 2)) {
      const info = await findStream(manager, stream);
      if (info?.created !== position.stream || info.state.last_seq < position.sequence) return;
      if (stay < 1 || (stay < margin && !isHalfFull(info, maxBytes))) return; // PURGER-3
      const first = position.sequence - stay + 1; // PURGER-1: the oldest that stays
      if (info.state.first_seq < first) await manager.streams.purge(stream, { seq: first });
    }
  }
}

/** Without a limit, servers omit it or answer -1. */
function isHalfFull({ config, state }: StreamInfo, room: number): boolean {
  const most = config.max_msgs > 0 ? config.max_msgs : Number.POSITIVE_INFINITY;
  return state.bytes > room / 2 || state.messages > most / 2;
}
