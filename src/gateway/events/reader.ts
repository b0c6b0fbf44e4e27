import type { AnswerOf } from '../../bus/contract.ts';
import { type Entry, FollowedLog, READ_AGAIN_MS } from '../../conversation/index.ts';
import { ParleyError, type Refusal, sleep } from '../../kernel/index.ts';
import type { GatewayPort } from '../port.ts';
import { publicErrorOf } from '../problem.ts';
import type { Channel, Channels, Listener } from './channel.ts';
import { farewellFrame, GREETING, HEARTBEAT } from './frames.ts';

/**
 * One client that reads a conversation's events.
 *
 * EVENTS-READER-1 Entries have dense, rising indexes from the start index: none missing, none twice (`FollowedLog`).
 * EVENTS-READER-2 It subscribes before it reads the log, and switches to the feed when it has all entries up to then.
 * EVENTS-READER-3 The queue is bounded. A client that does not read is disconnected; it can reconnect and read the log.
 * EVENTS-READER-4 It wakes on data and on a heartbeat: only a write detects a broken connection.
 */

/** Maximum of queued bytes per reader. */
const MAX_QUEUED = 4_194_304;

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

export class Reader implements Listener {
  readonly #options: ReaderOptions;
  readonly #channel: Channel;
  readonly #heart: NodeJS.Timeout;
  readonly #log: FollowedLog;
  /** Frames to send. */
  #queued: Uint8Array[] = [GREETING];
  #bytes = 0;
  /** Entries must be read from the log before the feed is used. */
  #mustReadLog = true;
  /** Nothing was sent since the last heartbeat. */
  #isQuiet = false;
  #isOver = false;
  #wake: () => void = () => undefined;
  readonly #end = () => this.#finish('STOPPING', 'the daemon stops');

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.#log = new FollowedLog(options.from);
    this.#channel = options.channels.join(options.daemon, options.conversation, this); // EVENTS-READER-2
    this.#heart = setInterval(() => this.#beat(), options.heartbeatMs);
    options.closing.addEventListener('abort', this.#end, { once: true });
    if (options.closing.aborted) this.#end();
  }

  /** The next bytes to send; null: the end. */
  async take(): Promise<Uint8Array | null> {
    for (;;) {
      if (this.#queued.length > 0) return this.#taken();
      if (this.#isOver) return null;
      if (this.#mustReadLog) await this.#catchUp().catch((error: unknown) => this.#fail(error));
      else
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
    this.#channel.leave();
    this.#wake();
  }

  entries(append: readonly Entry[]): void {
    if (this.#mustReadLog) {
      this.#log.doubt(append); // EVENTS-READER-2: it is read from the log in its place
      return;
    }
    const entries = this.#log.fromFeed(append);
    if (entries) this.#put(entries);
    else this.#fallBehind();
  }

  /** Live text that arrives while the log is read is dropped. */
  live(frame: Uint8Array): void {
    if (!this.#mustReadLog) this.#send(frame);
  }

  async #catchUp(): Promise<void> {
    const { daemon, conversation } = this.#options;
    const body = { conversation, from: this.#log.from };
    const answer = await daemon.request({ endpoint: 'entries', publisher: null, body });
    if (this.#isOver) return;
    if (!answer.ok) return await this.#refused(answer.refusal);
    const read = this.#log.fromLog(answer.body as AnswerOf<'entries'>);
    if (read === null) return this.#finish('CONVERSATION_DELETED', 'this conversation was deleted');
    this.#put(read.entries);
    this.#mustReadLog = read.again !== 'no';
    if (read.again === 'later') await sleep(READ_AGAIN_MS);
  }

  /** A missing conversation was deleted if entries of it were read; otherwise wait for it. */
  async #refused({ code, message }: Refusal): Promise<void> {
    if (code !== 'NOT_FOUND') this.#finish(code, message);
    else if (this.#log.next > 0) this.#finish('CONVERSATION_DELETED', 'this conversation was deleted');
    else {
      this.#mustReadLog = this.#log.lacks(0);
      if (this.#mustReadLog) await sleep(READ_AGAIN_MS);
    }
  }

  #put(entries: readonly Entry[]): void {
    for (const entry of entries) this.#send(this.#channel.frameOf(entry));
  }

  #send(frame: Uint8Array): void {
    if (this.#isOver) return;
    this.#bytes += frame.length;
    this.#isQuiet = false;
    this.#queued.push(frame);
    if (!this.#mustReadLog && this.#bytes > MAX_QUEUED)
      this.close(); // EVENTS-READER-3
    else this.#wake();
  }

  #fallBehind(): void {
    this.#mustReadLog = true;
    this.#wake();
  }

  #taken(): Uint8Array {
    const frames = this.#queued;
    this.#queued = [];
    this.#bytes = 0;
    return frames.length === 1 && frames[0] ? frames[0] : Buffer.concat(frames);
  }

  #beat(): void {
    if (this.#queued.includes(HEARTBEAT))
      this.close(); // EVENTS-READER-3: it has taken nothing since the last one
    else if (this.#isQuiet || this.#queued.length > 0) this.#send(HEARTBEAT); // EVENTS-READER-4
    this.#isQuiet = true;
  }

  #fail(error: unknown): void {
    const { code, message } = publicErrorOf(error, this.#options.onFault);
    this.#finish(code, message);
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
