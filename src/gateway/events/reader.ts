import { Follower, type Received } from '../../bus/follower.ts';
import { ParleyError } from '../../kernel/index.ts';
import type { GatewayPort } from '../port.ts';
import { publicErrorOf } from '../problem.ts';
import { sourceOf } from '../progress/arrivals.ts';
import type { Channel, Channels } from './channel.ts';
import { farewellFrame, GREETING, HEARTBEAT } from './frames.ts';

/**
 * One client that reads a conversation's events (`Follower`), as bytes.
 *
 * EVENTS-READER-1 A client that does not read is disconnected; it can reconnect and read the log.
 * EVENTS-READER-2 It wakes on data and on a heartbeat: only a write detects a broken connection.
 */

export interface ReaderOptions {
  readonly daemon: GatewayPort;
  readonly channels: Channels;
  readonly conversation: string;
  /** The first index wanted. */
  readonly from: number;
  readonly heartbeatMs: number;
  readonly closing: AbortSignal;
  /** Called with bugs; the client sees only that there was one. */
  readonly onFault: (error: unknown) => void;
}

export class Reader {
  readonly #options: ReaderOptions;
  readonly #follower: Follower;
  readonly #heart: NodeJS.Timeout;
  #channel: Channel | null = null;
  /** Frames to send. */
  #queued: Uint8Array[] = [GREETING];
  /** Whether the follower was asked for the next arrival. */
  #isTaking = false;
  /** Nothing was sent since the last heartbeat. */
  #isQuiet = false;
  #isOver = false;
  #wake: () => void = () => undefined;
  readonly #end = () => this.#finish('STOPPING', 'the daemon stops');

  constructor(options: ReaderOptions) {
    const { daemon, channels, conversation, from } = options;
    this.#options = options;
    const source = sourceOf(daemon, conversation, (onArrival) => {
      this.#channel = channels.join(daemon, conversation, onArrival);
      return this.#channel.leave;
    });
    this.#follower = new Follower(source, { whenFull: 'end' });
    this.#follower.begin(from, from); // a client that reconnects has seen the entries before
    this.#heart = setInterval(() => this.#beat(), options.heartbeatMs);
    options.closing.addEventListener('abort', this.#end, { once: true });
    if (options.closing.aborted) this.#end();
  }

  /** The next bytes to send; null: the end. */
  async take(): Promise<Uint8Array | null> {
    for (;;) {
      if (this.#queued.length > 0) return this.#taken();
      if (this.#isOver) return null;
      if (!this.#isTaking) void this.#receive();
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
    this.#follower.close();
    this.#wake();
  }

  async #receive(): Promise<void> {
    this.#isTaking = true;
    try {
      let received = await this.#follower.take();
      for (; received; received = this.#follower.takeQueued()) this.#put(received);
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#isTaking = false;
      this.#wake();
    }
  }

  #put(received: Received): void {
    if (this.#isOver) return;
    this.#queued.push(...(this.#channel?.framesOf(received) ?? []));
    this.#isQuiet = false;
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
    if (this.#isQuiet || this.#queued.length > 0) this.#queued.push(HEARTBEAT); // EVENTS-READER-2
    this.#isQuiet = true;
    this.#wake();
  }

  #fail(error: unknown): void {
    const { code, message } = publicErrorOf(error, this.#options.onFault);
    if (code === 'TOO_SLOW')
      this.close(); // EVENTS-READER-1
    else this.#finish(code, message);
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

/** The start index: after the last seen event, else from the query, else 0. */
export function startOf(lastEventId: string | undefined, from: string | undefined): number {
  const lastSeen = lastEventId || undefined;
  const text = lastSeen ?? from ?? '0';
  if (!/^\d{1,15}$/.test(text)) {
    throw new ParleyError('BAD_REQUEST', `${JSON.stringify(text)} is not the index of an entry`, {
      hint: 'Last-Event-ID takes the id of an event, ?from= the first index wanted',
    });
  }
  return lastSeen === undefined ? Number(text) : Number(text) + 1;
}
