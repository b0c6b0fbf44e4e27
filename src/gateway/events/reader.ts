import type { AnswerOf } from '../../bus/contract.ts';
import { type Entry, FollowedLog, READ_AGAIN_MS } from '../../conversation/index.ts';
import { ParleyError, type Refusal, sleep } from '../../kernel/index.ts';
import type { GatewayPort } from '../port.ts';
import { toldOf } from '../problem.ts';
import type { Channel, Channels, Listener } from './channel.ts';
import { farewellFrame, GREETING, HEARTBEAT } from './frames.ts';

/**
 * One reader of a conversation's events.
 *
 * EVENTS-READER-1 Entries come with dense, rising indexes from where it began: none missing, none twice (`FollowedLog`).
 * EVENTS-READER-2 It listens before it reads the log, and takes over from the log only when it has everything up to then.
 * EVENTS-READER-3 What waits for it is bounded. One that does not read is let go; the log has what it lacks, and it may come again.
 * EVENTS-READER-4 It is woken by what it waits for, and by a heartbeat: a connection that broke is found by writing to it.
 */

/** Bytes that wait for one reader, at most. */
const MOST_WAITING = 4_194_304;

export interface ReaderOptions {
  readonly door: GatewayPort;
  readonly channels: Channels;
  readonly conversation: string;
  /** The first index wanted. */
  readonly from: number;
  readonly heartbeatMs: number;
  readonly closing: AbortSignal;
  /** Called with bugs; the reader is told only that there was one. */
  readonly onFault: (error: unknown) => void;
}

export class Reader implements Listener {
  readonly #options: ReaderOptions;
  readonly #channel: Channel;
  readonly #heart: NodeJS.Timeout;
  readonly #log: FollowedLog;
  /** Written, not yet taken. */
  #waiting: Uint8Array[] = [GREETING];
  #bytes = 0;
  /** The log has entries that were not read yet. */
  #isBehind = true;
  /** Has heard nothing since the last heartbeat. */
  #isQuiet = false;
  #isOver = false;
  #wake: () => void = () => undefined;
  readonly #end = () => this.#finish('STOPPING', 'the daemon stops');

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.#log = new FollowedLog(options.from);
    this.#channel = options.channels.join(options.door, options.conversation, this); // EVENTS-READER-2
    this.#heart = setInterval(() => this.#beat(), options.heartbeatMs);
    options.closing.addEventListener('abort', this.#end, { once: true });
    if (options.closing.aborted) this.#end();
  }

  /** What is to be sent next; null: nothing more comes. */
  async take(): Promise<Uint8Array | null> {
    for (;;) {
      if (this.#waiting.length > 0) return this.#taken();
      if (this.#isOver) return null;
      if (this.#isBehind) await this.#catchUp().catch((error: unknown) => this.#fail(error));
      else
        await new Promise<void>((wake) => {
          this.#wake = wake;
        });
    }
  }

  /** The other side is gone, or is to be. Again is fine. */
  close(): void {
    this.#isOver = true;
    clearInterval(this.#heart);
    this.#options.closing.removeEventListener('abort', this.#end);
    this.#channel.leave();
    this.#wake();
  }

  entries(append: readonly Entry[]): void {
    if (this.#isBehind) {
      this.#log.doubt(append); // EVENTS-READER-2: it is read from the log in its place
      return;
    }
    const entries = this.#log.fromFeed(append);
    if (entries) this.#put(entries);
    else this.#fallBehind();
  }

  /** Live text is for those who are there: what comes while the log is read is passed over. */
  live(frame: Uint8Array): void {
    if (!this.#isBehind) this.#send(frame);
  }

  async #catchUp(): Promise<void> {
    const { door, conversation } = this.#options;
    const body = { conversation, from: this.#log.from };
    const answer = await door.request({ endpoint: 'entries', publisher: null, body });
    if (this.#isOver) return;
    if (!answer.ok) return await this.#refused(answer.refusal);
    const read = this.#log.fromLog(answer.body as AnswerOf<'entries'>);
    if (read === null) return this.#finish('CONVERSATION_DELETED', 'this conversation was deleted');
    this.#put(read.entries);
    this.#isBehind = read.again !== 'no';
    if (read.again === 'later') await sleep(READ_AGAIN_MS);
  }

  /** One that was read and is gone was deleted; one that never was is waited for. */
  async #refused({ code, message }: Refusal): Promise<void> {
    if (code !== 'NOT_FOUND') this.#finish(code, message);
    else if (this.#log.next > 0) this.#finish('CONVERSATION_DELETED', 'this conversation was deleted');
    else {
      this.#isBehind = this.#log.lacks(0);
      if (this.#isBehind) await sleep(READ_AGAIN_MS);
    }
  }

  #put(entries: readonly Entry[]): void {
    for (const entry of entries) this.#send(this.#channel.frameOf(entry));
  }

  #send(frame: Uint8Array): void {
    if (this.#isOver) return;
    this.#bytes += frame.length;
    this.#isQuiet = false;
    this.#waiting.push(frame);
    if (!this.#isBehind && this.#bytes > MOST_WAITING)
      this.close(); // EVENTS-READER-3
    else this.#wake();
  }

  #fallBehind(): void {
    this.#isBehind = true;
    this.#wake();
  }

  #taken(): Uint8Array {
    const frames = this.#waiting;
    this.#waiting = [];
    this.#bytes = 0;
    return frames.length === 1 && frames[0] ? frames[0] : Buffer.concat(frames);
  }

  #beat(): void {
    if (this.#waiting.includes(HEARTBEAT))
      this.close(); // EVENTS-READER-3: it has taken nothing since the last one
    else if (this.#isQuiet || this.#waiting.length > 0) this.#send(HEARTBEAT); // EVENTS-READER-4
    this.#isQuiet = true;
  }

  #fail(error: unknown): void {
    const { code, message } = toldOf(error, this.#options.onFault);
    this.#finish(code, message);
  }

  #finish(code: string, message: string): void {
    if (this.#isOver) return;
    this.#waiting.push(farewellFrame(code, message));
    this.close();
  }
}

/** A reader as the body of a response: it is asked when the other side has room. */
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

/** Where to begin: behind the last event that was seen, else where the query says, else at the first entry. */
export function startOf(lastEventId: string | undefined, from: string | undefined): number {
  const said = lastEventId || undefined;
  const text = said ?? from ?? '0';
  if (!/^\d{1,15}$/.test(text)) {
    throw new ParleyError('BAD_REQUEST', `${JSON.stringify(text)} is not the index of an entry`, {
      hint: 'Last-Event-ID takes the id of an event, ?from= the first index wanted',
    });
  }
  return said === undefined ? Number(text) : Number(text) + 1;
}
