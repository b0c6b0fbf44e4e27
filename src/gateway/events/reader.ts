import { farewellFrame, GREETING, HEARTBEAT } from './frames.ts';

/**
 * One client of an event stream: the frames of its feeds, as bytes.
 *
 * EVENTS-READER-1 A client that does not read is disconnected; it can reconnect and read the log.
 * EVENTS-READER-2 It wakes on data and on a heartbeat: only a write detects a broken connection.
 * EVENTS-READER-3 A feed is asked for its next frames only after the frames before were taken.
 */

export interface Feed {
  /** The next frames; null: nothing more comes. `too-slow`: frames were lost (EVENTS-READER-1). */
  take(): Promise<readonly Uint8Array[] | 'too-slow' | null>;
  /** Idempotent. */
  close(): void;
}

export interface ReaderOptions {
  readonly feeds: readonly Feed[];
  readonly heartbeatMs: number;
  readonly closing: AbortSignal;
}

export class Reader {
  readonly #options: ReaderOptions;
  readonly #heart: NodeJS.Timeout;
  /** Feeds that were not asked for their next frames. */
  readonly #idle: Set<Feed>;
  /** The number of feeds from which more may come. */
  #open: number;
  /** Frames to send. */
  #queued: Uint8Array[] = [GREETING];
  /** Nothing was sent since the last heartbeat. */
  #isQuiet = false;
  #isOver = false;
  #wake: () => void = () => undefined;
  readonly #end = () => this.#finish('STOPPING', 'the daemon stops');

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.#idle = new Set(options.feeds);
    this.#open = options.feeds.length;
    this.#heart = setInterval(() => this.#beat(), options.heartbeatMs);
    options.closing.addEventListener('abort', this.#end, { once: true });
    if (options.closing.aborted) this.#end();
  }

  /** The next bytes to send; null: the end. */
  async take(): Promise<Uint8Array | null> {
    for (;;) {
      if (this.#queued.length > 0) return this.#taken();
      if (this.#isOver) return null;
      for (const feed of this.#idle) void this.#receive(feed);
      await new Promise<void>((wake) => {
        this.#wake = wake;
      });
    }
  }

  /** Idempotent. The client has disconnected or must be disconnected. */
  close(): void {
    this.#isOver = true;
    clearInterval(this.#heart);
    this.#options.closing.removeEventListener('abort', this.#end);
    for (const feed of this.#options.feeds) feed.close();
    this.#wake();
  }

  async #receive(feed: Feed): Promise<void> {
    this.#idle.delete(feed);
    const frames = await feed.take();
    if (this.#isOver) return;
    if (frames === 'too-slow') return this.close();
    if (frames === null) this.#open--;
    else this.#put(frames, feed);
    if (this.#open === 0) return this.close();
    this.#wake();
  }

  #put(frames: readonly Uint8Array[], feed: Feed): void {
    this.#idle.add(feed);
    this.#queued.push(...frames);
    if (frames.length > 0) this.#isQuiet = false;
  }

  #taken(): Uint8Array {
    const frames = this.#queued;
    this.#queued = [];
    return frames.length === 1 && frames[0] ? frames[0] : Buffer.concat(frames);
  }

  #beat(): void {
    if (this.#queued.includes(HEARTBEAT)) {
      this.close(); // EVENTS-READER-1: it has taken nothing since the last one
      return;
    }
    if (this.#isQuiet || this.#queued.length > 0) this.#queued.push(HEARTBEAT);
    this.#isQuiet = true;
    this.#wake();
  }

  #finish(code: string, message: string): void {
    if (this.#isOver) return;
    this.#queued.push(farewellFrame(code, message));
    this.close();
  }
}

/** A reader as a response body: pulled when the client has space. */
export function bodyOf(reader: Reader): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const bytes = await reader.take();
        if (bytes) controller.enqueue(bytes);
        else controller.close();
      },
      cancel: () => reader.close(),
    },
    { highWaterMark: 0 },
  );
}
