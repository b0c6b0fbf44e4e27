import type { JetStreamManager, StreamInfo } from 'nats';
import { messageOf } from '../../../kernel/index.ts';
import type { BusLog } from '../../port.ts';
import type { StreamPosition } from '../../post.ts';
import { findStream } from '../streams/streams.ts';

/**
 * Keeps the ingress stream within its limits: removes settled posts, and closes the stream before unprocessed posts exceed their
 * byte limit. Looks every second while posts are read.
 *
 * CAPACITY-1 The stream has no `max_bytes`: before 2.10.5 nats-server drops the oldest messages to make room, even with
 *    `discard: new` (nats-server issues 4771 and 4775).
 * CAPACITY-2 At the limit the stream is closed by a `max_msg_size` of 1 byte, which refuses every post and removes none. It
 *    reopens at 75 % of the limit. One oversized post alone never closes it, because the newest settled post always stays. The
 *    limit can be exceeded by the posts that arrive between two looks.
 * CAPACITY-3 While no daemon runs, the message count of the stream is the limit (BUS-STREAMS-1).
 * CAPACITY-4 Only settled posts are purged, and the last `margin` of them stay (BUS-PORT-2): on some server versions a stream that
 *    was purged to its end reuses old sequences after a crash. Nothing is purged after the stream was created again.
 * CAPACITY-5 Settled posts never fill the stream: while it is more than half full, in bytes or in posts, fewer of them stay; the
 *    newest one always stays. (Reused sequences are detected by INGRESS-4. A full stream would never be purged again.)
 */

const EVERY_MS = 1_000;
const REOPEN_AT = 0.75;
/** Bytes. Smaller than any post, so a closed stream accepts none. */
const CLOSED_MAX_MSG_SIZE = 1;

interface CapacityOptions {
  readonly manager: JetStreamManager;
  readonly stream: string;
  readonly log: BusLog;
  /** As the stream counts them. */
  readonly maxBytes: number;
  /** Settled sequences that stay. */
  readonly margin: number;
}

export class Capacity {
  readonly #options: CapacityOptions;
  #settled: StreamPosition | null = null;
  #looking: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;
  /** Only the first of several failures in a row is logged. */
  #hasReportedFailure = false;
  #isStopping = false;

  constructor(options: CapacityOptions) {
    this.#options = options;
  }

  settledUpTo(position: StreamPosition): void {
    this.#settled = position;
  }

  /** Looks now, and from then on every second. Does not reject: the next look retries. */
  look(): Promise<void> {
    clearTimeout(this.#timer);
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
      if (!this.#isStopping) this.#timer = setTimeout(() => void this.look(), EVERY_MS).unref();
    });
    return this.#looking;
  }

  /** Resolves when no look is under way. The stream stays open or closed until the next daemon looks. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#timer);
    await this.#looking;
  }

  async #look(): Promise<void> {
    try {
      const info = await this.#free();
      if (info !== null) await this.#closeOrReopen(info);
      this.#hasReportedFailure = false;
    } catch (error) {
      if (!this.#hasReportedFailure)
        this.#options.log.warn(
          { error: messageOf(error) },
          'the ingress stream cannot be kept within its limits; retrying',
        );
      this.#hasReportedFailure = true;
    }
  }

  /** CAPACITY-4, CAPACITY-5. Returns the stream as it is then. */
  async #free(): Promise<StreamInfo | null> {
    const { manager, stream, margin, maxBytes } = this.#options;
    const settled = this.#settled;
    let info = await findStream(manager, stream);
    for (let stay = margin; stay >= 1 && settled && info; stay = Math.floor(stay / 2)) {
      if (info.created !== settled.stream || info.state.last_seq < settled.sequence) break;
      if (stay < margin && !isHalfFull(info, maxBytes)) break;
      const first = settled.sequence - stay + 1; // the oldest that stays
      if (info.state.first_seq >= first) continue;
      await manager.streams.purge(stream, { seq: first });
      info = await findStream(manager, stream);
    }
    return info;
  }

  /** CAPACITY-2 */
  async #closeOrReopen({ config, state }: StreamInfo): Promise<void> {
    const { manager, stream, log, maxBytes } = this.#options;
    const isClosed = config.max_msg_size === CLOSED_MAX_MSG_SIZE;
    const fields = { stream, bytes: state.bytes, room: maxBytes };
    if (!isClosed && state.bytes >= maxBytes && state.messages > 1) {
      await manager.streams.update(stream, { max_msg_size: CLOSED_MAX_MSG_SIZE });
      log.warn(fields, 'the ingress stream is full: it refuses posts until some are settled');
    } else if (isClosed && (state.bytes <= maxBytes * REOPEN_AT || state.messages <= 1)) {
      await manager.streams.update(stream, { max_msg_size: -1 });
      log.info(fields, 'the ingress stream accepts posts again');
    }
  }
}

/** Without a limit, servers omit it or answer -1. */
function isHalfFull({ config, state }: StreamInfo, room: number): boolean {
  const most = config.max_msgs > 0 ? config.max_msgs : Number.POSITIVE_INFINITY;
  return state.bytes > room / 2 || state.messages > most / 2;
}

/** The rest of the account's storage is for the logs (in streams); an account that is full is full for both. */
const SHARE_OF_ACCOUNT = 0.25;

/** The byte limit for unprocessed posts: `asked`, or a quarter of the account's storage if that is less. */
export async function capacityIn(manager: JetStreamManager, asked: number, log: BusLog): Promise<number> {
  const { limits } = await manager.getAccountInfo();
  if (limits.max_storage <= 0) return asked; // no limit
  const room = Math.min(asked, Math.floor(limits.max_storage * SHARE_OF_ACCOUNT));
  if (room < asked)
    log.info({ asked, room }, 'the NATS account has little storage: the ingress limit is lower');
  return room;
}
