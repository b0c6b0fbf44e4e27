import type { JetStreamManager, StreamInfo } from 'nats';
import { messageOf } from '../../../kernel/index.ts';
import type { BusLog } from '../../log.ts';
import { findStream } from '../streams/streams.ts';

/**
 * Keeps the posts that wait within their room, and drops none of them.
 *
 * CAPACITY-GUARD-1 The stream has no limit in bytes: nats-server before 2.10.5 takes a post that no longer fits such a limit, and drops
 *    the oldest ones for it, settled or not, in spite of its `discard: new` (nats-server issues 4771 and 4775).
 * CAPACITY-GUARD-2 Instead it is closed while it holds its room or more, and opened again when it holds `OPENS_AT` of that; one post alone,
 *    however large, closes nothing, since the newest settled one always stays. Closed, it refuses every post, by a
 *    `max_msg_size` that none fits (what is shorter is none), and removes none.
 * CAPACITY-GUARD-3 How full it is is looked at within `LOOK_MS` of anything that is read, and as often while it holds much or is closed; else
 *    each `IDLE_MS`, for what nobody has read yet. So it may hold more than its room: what comes within a look.
 * CAPACITY-GUARD-4 While no daemon runs, nobody closes it: then the number of posts that a stream takes is the limit (`streams.ts`, STREAMS-STREAMS-2).
 */

/** Milliseconds. */
const LOOK_MS = 1_000;
const IDLE_MS = 5_000;
const OPENS_AT = 0.75;
/** Of its room: with more, it may be full soon, also of what nobody has read yet. */
const MUCH = 1 / 16;
/** Bytes. A post is JSON with an id: none is as small. */
const CLOSED_SIZE = 1;

export interface CapacityGuardOptions {
  readonly manager: JetStreamManager;
  readonly stream: string;
  readonly log: BusLog;
  /** Bytes, as the stream counts them. */
  readonly room: number;
}

export class CapacityGuard {
  readonly #options: CapacityGuardOptions;
  #soon: { readonly timer: NodeJS.Timeout; readonly at: number } | null = null;
  #looking: Promise<void> | null = null;
  /** Of faults in a row the first is told. */
  #isTold = false;
  #isStopping = false;

  constructor(options: CapacityGuardOptions) {
    this.#options = options;
  }

  /** Something was read: it is looked at soon (CAPACITY-GUARD-3). */
  stir(): void {
    this.#lookIn(LOOK_MS);
  }

  #lookIn(milliseconds: number): void {
    const at = performance.now() + milliseconds;
    if (this.#isStopping || (this.#soon && this.#soon.at <= at)) return;
    clearTimeout(this.#soon?.timer);
    const timer = setTimeout(() => {
      this.#soon = null;
      void this.look();
    }, milliseconds).unref();
    this.#soon = { timer, at };
  }

  /** Looks, and closes or opens. Does not reject: what fails is tried again. */
  look(): Promise<void> {
    this.#looking ??= this.#look().then((again) => {
      this.#looking = null;
      this.#lookIn(again ? LOOK_MS : IDLE_MS);
    });
    return this.#looking;
  }

  /** Resolves when no look is under way. The stream stays closed, or open, until the next daemon looks. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#soon?.timer);
    await this.#looking;
  }

  /** True: again soon, though nothing is read (CAPACITY-GUARD-3). */
  async #look(): Promise<boolean> {
    const { manager, stream, log } = this.#options;
    try {
      const info = await findStream(manager, stream);
      this.#isTold = false;
      return info === null || (await this.#closeOrOpen(info));
    } catch (error) {
      if (!this.#isTold)
        log.warn({ error: messageOf(error) }, 'how full the stream of posts is cannot be seen; trying again');
      this.#isTold = true;
      return true;
    }
  }

  /** CAPACITY-GUARD-2 */
  async #closeOrOpen({ config, state }: StreamInfo): Promise<boolean> {
    const { manager, stream, log, room } = this.#options;
    const isClosed = config.max_msg_size === CLOSED_SIZE;
    const fields = { stream, bytes: state.bytes, room };
    if (!isClosed && state.bytes >= room && state.messages > 1) {
      await manager.streams.update(stream, { max_msg_size: CLOSED_SIZE });
      log.warn(fields, 'the stream of posts is full: it takes no more until some of them are settled');
      return true;
    }
    if (isClosed && (state.bytes <= room * OPENS_AT || state.messages <= 1)) {
      await manager.streams.update(stream, { max_msg_size: -1 });
      log.info(fields, 'the stream of posts takes posts again');
    }
    return state.bytes > room * MUCH;
  }
}

/** The account's storage is for the logs, too, where they are streams; and what is full is full for all of them. */
const SHARE_OF_ACCOUNT = 0.25;

/** How much may wait in this account: as much as is asked for, or less where the account has less. Bytes. */
export async function capacityIn(manager: JetStreamManager, asked: number, log: BusLog): Promise<number> {
  const { limits } = await manager.getAccountInfo();
  if (limits.max_storage <= 0) return asked; // none
  const room = Math.min(asked, Math.floor(limits.max_storage * SHARE_OF_ACCOUNT));
  if (room < asked) log.info({ asked, room }, 'the account may store little: less room for posts that wait');
  return room;
}
