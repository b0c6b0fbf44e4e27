import type { JetStreamManager, StreamInfo } from 'nats';
import { messageOf } from '../../../kernel/index.ts';
import type { BusLog } from '../../port.ts';
import { findStream } from '../streams/streams.ts';

/**
 * Closes the ingress stream before unprocessed posts exceed their byte limit. Never drops a post.
 *
 * CAPACITY-GUARD-1 The stream has no `max_bytes`: before 2.10.5 nats-server drops the oldest messages to make room, even with
 *    `discard: new` (nats-server issues 4771 and 4775).
 * CAPACITY-GUARD-2 At the limit the stream is closed by a `max_msg_size` of 1 byte, which refuses every post and removes none. It
 *    reopens at 75 % of the limit. One oversized post alone never closes it, because the newest settled post always stays.
 * CAPACITY-GUARD-3 Usage is polled within 1 s of a read, and every second while it is above 1/16 of the limit or the stream is
 *    closed; otherwise every 5 s. The limit can be exceeded by the posts that arrive between two polls.
 * CAPACITY-GUARD-4 While no daemon runs there is no guard: then the message count of the stream is the limit (BUS-STREAMS-2).
 */

const POLL_ACTIVE_MS = 1_000;
const POLL_IDLE_MS = 5_000;
const REOPEN_AT = 0.75;
const ACTIVE_ABOVE = 1 / 16;
/** Bytes. Smaller than any post, so a closed stream accepts none. */
const CLOSED_MAX_MSG_SIZE = 1;

export interface CapacityGuardOptions {
  readonly manager: JetStreamManager;
  readonly stream: string;
  readonly log: BusLog;
  /** As the stream counts them. */
  readonly maxBytes: number;
}

export class CapacityGuard {
  readonly #options: CapacityGuardOptions;
  #scheduled: { readonly timer: NodeJS.Timeout; readonly at: number } | null = null;
  #polling: Promise<void> | null = null;
  /** Only the first of several failures in a row is logged. */
  #hasReportedFailure = false;
  #isStopping = false;

  constructor(options: CapacityGuardOptions) {
    this.#options = options;
  }

  /** Schedules a poll soon after a read (CAPACITY-GUARD-3). */
  noteRead(): void {
    this.#schedule(POLL_ACTIVE_MS);
  }

  #schedule(milliseconds: number): void {
    const at = performance.now() + milliseconds;
    if (this.#isStopping || (this.#scheduled && this.#scheduled.at <= at)) return;
    clearTimeout(this.#scheduled?.timer);
    const timer = setTimeout(() => {
      this.#scheduled = null;
      void this.poll();
    }, milliseconds).unref();
    this.#scheduled = { timer, at };
  }

  /** Closes or reopens the stream by its usage. Does not reject: the next poll retries. */
  poll(): Promise<void> {
    this.#polling ??= this.#poll().then((isActive) => {
      this.#polling = null;
      this.#schedule(isActive ? POLL_ACTIVE_MS : POLL_IDLE_MS);
    });
    return this.#polling;
  }

  /** Resolves when no poll is running. The stream keeps its state until the next daemon polls. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#scheduled?.timer);
    await this.#polling;
  }

  /** True: poll again soon, even without a read (CAPACITY-GUARD-3). */
  async #poll(): Promise<boolean> {
    const { manager, stream, log } = this.#options;
    try {
      const info = await findStream(manager, stream);
      this.#hasReportedFailure = false;
      return info === null || (await this.#closeOrReopen(info));
    } catch (error) {
      if (!this.#hasReportedFailure)
        log.warn({ error: messageOf(error) }, 'the usage of the ingress stream cannot be read; retrying');
      this.#hasReportedFailure = true;
      return true;
    }
  }

  /** CAPACITY-GUARD-2 */
  async #closeOrReopen({ config, state }: StreamInfo): Promise<boolean> {
    const { manager, stream, log, maxBytes } = this.#options;
    const isClosed = config.max_msg_size === CLOSED_MAX_MSG_SIZE;
    const fields = { stream, bytes: state.bytes, room: maxBytes };
    if (!isClosed && state.bytes >= maxBytes && state.messages > 1) {
      await manager.streams.update(stream, { max_msg_size: CLOSED_MAX_MSG_SIZE });
      log.warn(fields, 'the ingress stream is full: it refuses posts until some are settled');
      return true;
    }
    if (isClosed && (state.bytes <= maxBytes * REOPEN_AT || state.messages <= 1)) {
      await manager.streams.update(stream, { max_msg_size: -1 });
      log.info(fields, 'the ingress stream accepts posts again');
    }
    return state.bytes > maxBytes * ACTIVE_ABOVE;
  }
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
