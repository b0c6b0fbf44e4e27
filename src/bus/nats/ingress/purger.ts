import type { JetStreamManager, StreamInfo } from 'nats';
import type { BusLog } from '../../log.ts';
import type { StreamPosition } from '../../port.ts';
import { apiErrorCode, brokerError } from '../streams/broker-error.ts';
import { findStream } from '../streams/streams.ts';

/**
 * Frees the room of settled posts.
 *
 * PURGER-1 Nothing is purged that is not settled, and `margin` sequences behind that stay (BUS-PORT-2): on some versions a
 *    stream that was purged to its end once gave out old sequences again after a crash.
 * PURGER-2 Nothing is purged from another life of the stream.
 * PURGER-3 Settled posts never fill the stream: while it holds more than half of what it may, in bytes or in posts, fewer of them
 *    stay, the newest settled one always. That a stream gave out old sequences again is noticed when it is read (INGRESS-4), and ids suppress
 *    what repeats; a full stream takes no post, so it would never be purged again.
 *    Whatever was settled is looked at within `LOOK_MS`, and again after a fault: who waits for room brings nothing on.
 * PURGER-4 Where a consumer keeps what was handed out and not acknowledged, messages are deleted one by one: a server that
 *    purges (2.9.10, whatever the limits of the purge) makes every consumer forget all of that, of messages that stay, too.
 */

const LOOK_MS = 1_000;
/** Deleted side by side, and before the next look at where the stream begins: others may delete the same. */
const AT_ONCE = 32;
const BEFORE_LOOKING = 1_024;

export interface PurgerOptions {
  readonly manager: JetStreamManager;
  readonly stream: string;
  readonly log: BusLog;
  /** Settled sequences that stay. */
  readonly margin: number;
  /** Purges once per so many settled sequences. */
  readonly every: number;
  /** PURGER-4 */
  readonly oneByOne: boolean;
  /** For all posts that wait (`room.ts`). Bytes. */
  readonly room: number;
}

export class Purger {
  readonly #options: PurgerOptions;
  #purgedAt: StreamPosition | null = null;
  #running: Promise<void> = Promise.resolve();
  /** Bytes read since the last purge; the first look is due at once. */
  #bytes = Number.POSITIVE_INFINITY;
  #latest: StreamPosition | null = null;
  #soon: NodeJS.Timeout | null = null;
  /** Of faults in a row the first is told: while the server is away there is one each second. */
  #isTold = false;
  #isStopping = false;

  constructor(options: PurgerOptions) {
    this.#options = options;
  }

  /** A post of so many bytes was read. */
  read(bytes: number): void {
    this.#bytes += bytes;
  }

  settledUpTo(position: StreamPosition): void {
    const { margin, every } = this.#options;
    const last = this.#purgedAt?.stream === position.stream ? this.#purgedAt.sequence : 0;
    const isDue = position.sequence > margin && position.sequence >= last + every;
    this.#latest = position;
    if (isDue || this.#bytes > this.#options.room / 8) this.#look();
    else this.#lookSoon();
  }

  /** Resolves when no purge is under way; one that goes step by step is left where it is. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#soon ?? undefined);
    await this.#running;
  }

  #look(): void {
    const position = this.#latest;
    if (position === null) return;
    this.#purgedAt = position;
    this.#bytes = 0;
    this.#running = this.#running.then(() => this.#purge(position));
  }

  /** PURGER-3 */
  #lookSoon(): void {
    if (this.#isStopping) return;
    this.#soon ??= setTimeout(() => {
      this.#soon = null;
      this.#look();
    }, LOOK_MS).unref();
  }

  async #purge(position: StreamPosition): Promise<void> {
    const { stream, log } = this.#options;
    try {
      await this.#freeUpTo(position);
      this.#isTold = false;
    } catch (error) {
      const err = brokerError(error, `purge stream ${stream}`);
      if (!this.#isTold) log.warn({ err }, 'settled posts cannot be purged; trying again');
      this.#isTold = true;
      this.#lookSoon();
    }
  }

  async #freeUpTo(position: StreamPosition): Promise<void> {
    const { manager, stream, margin, room } = this.#options;
    for (let stay = margin; ; stay = Math.floor(stay / 2)) {
      const info = await findStream(manager, stream);
      if (info?.created !== position.stream || info.state.last_seq < position.sequence) return; // PURGER-2
      if (stay < 1 || (stay < margin && !isHalfFull(info, room))) return; // PURGER-3
      const first = position.sequence - stay + 1; // PURGER-1: the oldest that stays
      await this.#free(info.state.first_seq, first);
    }
  }

  /** What stands before `first`. */
  async #free(oldest: number, first: number): Promise<void> {
    const { manager, stream, oneByOne } = this.#options;
    if (oldest >= first) return;
    if (!oneByOne) return void (await manager.streams.purge(stream, { seq: first }));
    let from = oldest;
    while (from < first && !this.#isStopping) {
      const to = Math.min(first, from + BEFORE_LOOKING);
      for (let next = from; next < to; next += AT_ONCE) {
        const count = Math.min(AT_ONCE, to - next);
        await Promise.all(Array.from({ length: count }, (_, place) => this.#delete(next + place)));
      }
      from = Math.max(to, (await findStream(manager, stream))?.state.first_seq ?? first);
    }
  }

  async #delete(sequence: number): Promise<void> {
    const { manager, stream } = this.#options;
    try {
      await manager.streams.deleteMessage(stream, sequence, false);
    } catch (error) {
      if (apiErrorCode(error) === null) throw error; // else it is gone: another daemon frees the same room
    }
  }
}

/** Servers leave a limit out, or say -1, where there is none. */
function isHalfFull({ config, state }: StreamInfo, room: number): boolean {
  const most = config.max_msgs > 0 ? config.max_msgs : Number.POSITIVE_INFINITY;
  return state.bytes > room / 2 || state.messages > most / 2;
}
