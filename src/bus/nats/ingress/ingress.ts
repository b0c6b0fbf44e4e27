import type { StreamInfo } from 'nats';
import { messageOf, sleep } from '../../../kernel/index.ts';
import { logFault } from '../../envelopes.ts';
import type { IngressLag, IngressOptions } from '../../port.ts';
import type { Delivery, Fate } from '../../post.ts';
import { covers, LowWaterMark, type Settled, union } from '../../settled.ts';
import { type LetterOf, refusedAfter } from './dead-letters.ts';
import { FairQueue, type FairQueueLimits, type QueuedDelivery } from './fair-queue.ts';
import { BodyMode, FloodWatch, handOverSkipped, RefusedTogether, skipAhead } from './flood.ts';
import { type Beginning, MOST_OPEN } from './settled-keeper.ts';
import {
  deliveryOf,
  fetchPost,
  type IngressSources,
  type PullEnd,
  StreamConsumer,
  type StreamMessage,
  senderOf,
  timeOf,
} from './stored-posts.ts';

/**
 * Reads the ingress stream for one daemon.
 *
 * INGRESS-1 Deliveries of one publisher, and deliveries into one conversation, arrive in stream order, each once (BUS-PORT-1).
 * INGRESS-2 At most `maxInFlight` deliveries are unsettled, at most `maxInFlightPerPublisher` of one publisher. While these hold
 *    `maxBytesInFlight`, no more are delivered. Reading continues into a backlog of `maxParked` posts (`fair-queue.ts`).
 * INGRESS-3 After any break a new consumer is opened after the last post that was read; it retries until it succeeds.
 * INGRESS-4 When the stream is another one than before (created again, or rolled back), reading starts at its first message.
 * INGRESS-5 The position never passes an unsettled delivery. A rejected delivery stays unsettled and is repeated after a restart.
 * INGRESS-6 Posts that another store settled, or that were refused, are read and not delivered (`Fate`). The server keeps
 *    what is settled here.
 * INGRESS-7 A flood of long refused posts is read without bodies. A post that is delivered then is read again by its sequence.
 * INGRESS-8 When reading is far behind because of posts that are refused, the unread posts of each publisher that is far over
 *    its rate are refused without reading them (`flood.ts`). The posts of all other publishers are read.
 */

/** A small batch would let a flood delay the other publishers, because a busy process pulls rarely. */
const MAX_BATCH = 1_000;
const SHORTEST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;
/** Reading continues with another kind of consumer (INGRESS-7). */
const CHANGED = 'changed';

export class Ingress {
  readonly #sources: IngressSources;
  readonly #options: IngressOptions;
  readonly #beginning: Beginning;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  #cursor: Cursor | null = null;
  #consumer: StreamConsumer | null = null;
  #stopped: Promise<void> | null = null;
  readonly #refused = new RefusedTogether();
  readonly #bodies = new BodyMode();
  readonly #watch = new FloodWatch();
  /** Includes the queues of earlier streams whose deliveries are not settled. */
  readonly #queues = new Set<FairQueue<StreamMessage>>();

  constructor(sources: IngressSources, options: IngressOptions, beginning: Beginning) {
    this.#sources = sources;
    this.#options = options;
    this.#beginning = beginning;
    void sources.capacity.look(); // the previous daemon may have closed the stream
    this.#running = this.#run();
  }

  /** Ends the current pull after the connection broke. */
  interrupt(reason: string): void {
    this.#consumer?.interrupt(reason);
  }

  /** Delivers no more posts; resolves when the deliveries in flight are settled. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  /** The posts that are unread or unsettled. A cursor of an earlier stream counts nothing. */
  async lag(): Promise<IngressLag> {
    const cursor = this.#cursor;
    const { state, created } = await this.#sources.stream();
    const current = cursor?.created === created ? cursor : null;
    const read = current?.last ?? 0;
    const unread = Math.max(0, state.last_seq - Math.max(read, state.first_seq - 1));
    const messages = unread + (current?.mark.underWay ?? 0);
    if (messages === 0) return { messages, oldestTakenAt: null };
    const oldest = current?.mark.oldest ?? Math.max(read + 1, state.first_seq);
    const time = await timeOf(this.#sources, oldest);
    return { messages, oldestTakenAt: time === null ? null : Number(time / 1_000_000n) };
  }

  async #stop(): Promise<void> {
    this.#stopping.abort();
    this.interrupt('stopping');
    for (const queue of this.#queues) queue.close();
    await this.#running;
    for (const queue of this.#queues) while (queue.inFlight > 0) await queue.change();
    const posts = this.#cursor?.mark.underWay ?? 0;
    if (posts > 0) this.#sources.log.info({ posts }, 'unsettled posts are read again at the next start'); // INGRESS-5
    await Promise.all([this.#beginning.keeper.stop(), this.#sources.capacity.stop()]);
  }

  async #run(): Promise<void> {
    const { log, watch } = this.#sources;
    let wait = SHORTEST_PAUSE_MS;
    while (!this.#stopping.signal.aborted) {
      if (!(await watch.connected(LONGEST_PAUSE_MS, this.#stopping.signal))) continue;
      const before = this.#cursor?.last;
      const reason = await this.#readUntilBroken();
      if (this.#stopping.signal.aborted) return;
      if (reason === CHANGED) continue;
      const progressed = this.#cursor?.last !== before;
      wait = progressed ? SHORTEST_PAUSE_MS : Math.min(wait * 2, LONGEST_PAUSE_MS);
      log.warn({ reason, after: this.#cursor?.last ?? null }, 'reading posts was interrupted; reading again');
      await sleep(wait, this.#stopping.signal);
    }
  }

  /** Returns the reason why reading ended. Does not reject. */
  async #readUntilBroken(): Promise<string> {
    try {
      await this.#options.onBegin?.();
      const cursor = await this.#locate();
      const position = { stream: cursor.created, sequence: cursor.last };
      cursor.letterOf ??= await refusedAfter(this.#sources, position, this.#options.isReplay);
      const { connection, manager, subjects } = this.#sources;
      const name = subjects.ingressStream;
      const consumer = await StreamConsumer.open(connection, manager, name, cursor.last + 1, this.#bodies);
      this.#consumer = consumer;
      if ((await this.#locate()) !== cursor) return 'the stream was replaced'; // before the consumer was created
      return await this.#read(consumer, cursor);
    } catch (error) {
      return messageOf(error);
    } finally {
      this.#consumer?.close();
      this.#consumer = null;
    }
  }

  async #read(consumer: StreamConsumer, cursor: Cursor): Promise<string> {
    while (!this.#stopping.signal.aborted) {
      this.#bodies.update();
      if (this.#bodies.isHeadersOnly !== consumer.isHeadersOnly) return CHANGED;
      const { queue } = cursor;
      if (queue.capacity <= 0) {
        await queue.change();
        continue;
      }
      const most = Math.min(queue.capacity, MAX_BATCH);
      const end: PullEnd = await consumer.pull(most, (message) => this.#offerOrSettle(cursor, message));
      if (end.kind === 'broken') return end.reason;
      if (this.#watch.isSkipDue(consumer.pending) && (await this.#skip(cursor))) return CHANGED;
    }
    return 'stopping';
  }

  #offerOrSettle(cursor: Cursor, message: StreamMessage): void {
    const { sequence } = message;
    cursor.last = sequence;
    cursor.lastTime = message.time;
    cursor.mark.open(sequence);
    const delivery = deliveryOf(cursor.created, senderOf(this.#sources.subjects, message), message);
    const fate = fateWhenRead(cursor, delivery);
    const isReadAgain = fate.kind === 'refused' && fate.letter === 'own' && this.#options.isReplay;
    if (fate.kind === 'new' || isReadAgain) this.#offer(cursor, message, delivery);
    else this.#settled(cursor, [sequence]);
  }

  /** INGRESS-8. True: the cursor is after the posts that were skipped. */
  async #skip(cursor: Cursor): Promise<boolean> {
    const { created: stream, last: sequence, lastTime } = cursor;
    const { isFlood, onUnread } = this.#options;
    if (!isFlood || !onUnread || lastTime === null) return false;
    const after = { stream, sequence, time: Number(lastTime / 1_000_000n) };
    const skip = await skipAhead(this.#sources, after, isFlood).catch(() => null);
    if (skip === null || this.#stopping.signal.aborted) return false;
    cursor.unsettledSkips += 1;
    const kept = Promise.all(skip.floods.map(onUnread)).then(() => void cursor.unsettledSkips--);
    const refuse = (end: number) => {
      cursor.mark.open(end);
      this.#refused.add(kept, end, (sequences) => this.#settled(cursor, sequences));
    };
    handOverSkipped(sequence + 1, skip, refuse, (message) => this.#offerOrSettle(cursor, message));
    Object.assign(cursor, { last: skip.last, lastTime: null });
    return true;
  }

  /** Offers it to the queue without its message if the body was not read (INGRESS-7). */
  #offer(cursor: Cursor, message: StreamMessage, delivery: Delivery): void {
    const queued = this.#queuedOf(message);
    const isBodiless = message.size > message.data.length;
    const { onRead } = this.#options;
    if (onRead) {
      const { sequence, size: bytes } = message;
      const reading = onRead({ ...delivery, bytes });
      this.#watch.read(reading.kind === 'refused');
      if (reading.kind === 'refused') {
        this.#bodies.refused(bytes);
        this.#refused.add(reading.kept, sequence, (sequences) => this.#settled(cursor, sequences));
        return;
      }
      if (reading.waitMs > 0) cursor.waits.set(sequence, reading.waitMs);
    }
    const { message: _, ...ref } = queued;
    cursor.queue.offer(isBodiless ? ref : queued);
  }

  #queuedOf(message: StreamMessage): QueuedDelivery<StreamMessage> {
    const { sequence, size: bytes } = message;
    return { sequence, ...senderOf(this.#sources.subjects, message), bytes, message };
  }

  #newCursor(created: string, last: number, skip: Settled | null = null): Cursor {
    const queue: FairQueue<StreamMessage> = new FairQueue(queueLimits(this.#options), {
      deliver: (queued) => this.#deliver(cursor, queued),
      keep: (message) => ({ ...message, data: new Uint8Array(message.data) }),
      fetch: async ({ sequence }) => {
        const stored = await fetchPost(this.#sources, sequence, this.#stopping.signal);
        return stored && this.#queuedOf(stored);
      },
      settled: (sequence) => {
        cursor.waits.delete(sequence);
        this.#settled(cursor, [sequence]);
      },
    });
    const isElsewhere = skip ? covers(skip) : () => false;
    const unread = { lastTime: null, letterOf: null, unsettledSkips: 0, waits: new Map() };
    const mark = new LowWaterMark(last);
    const cursor: Cursor = { created, last, mark, queue, skip, isElsewhere, ...unread };
    this.#options.onSkip?.((post) => post.stream === created && cursor.isElsewhere(post.sequence));
    for (const before of this.#queues) if (before.inFlight === 0) this.#queues.delete(before);
    this.#queues.add(queue);
    return cursor;
  }

  async #deliver(cursor: Cursor, queued: QueuedDelivery<StreamMessage>): Promise<boolean> {
    const { sequence, message: stored } = queued;
    const waitMs = cursor.waits.get(sequence) ?? (this.#options.onRead && 0);
    const delivery = deliveryOf(cursor.created, queued, stored);
    const wait = waitMs !== undefined && { waitMs };
    const letter = fateWhenRead(cursor, delivery).kind === 'refused' && { hasLetter: true };
    try {
      await this.#options.onDelivery({ ...delivery, ...wait, ...letter });
      return true;
    } catch (error) {
      const message = 'a post could not be processed; it is read again after a restart'; // INGRESS-5
      if (!this.#stopping.signal.aborted) logFault(this.#sources.log, error, { sequence }, message);
      return false;
    }
  }

  #settled(cursor: Cursor, sequences: readonly number[]): void {
    const before = cursor.mark.value;
    for (const sequence of sequences) cursor.mark.settle(sequence);
    if (cursor !== this.#cursor) return; // the stream was replaced
    const position = { stream: cursor.created, sequence: cursor.mark.value };
    if (position.sequence !== before) {
      this.#options.onPosition(position);
      this.#sources.capacity.settledUpTo(position);
    }
    this.#beginning.keeper.note(() => settledBy(cursor));
  }

  /** Whether the cursor belongs to the stream as it is now: it was neither created again nor rolled back. */
  async #isOfStream(cursor: Cursor, { created, state }: StreamInfo): Promise<boolean> {
    if (cursor.created !== created || cursor.last > state.last_seq) return false;
    if (cursor.lastTime === null || cursor.last < state.first_seq) return true;
    // A stream that lost its tail in a crash reuses the sequences for other messages.
    const stored = await timeOf(this.#sources, cursor.last);
    return stored === null || stored === cursor.lastTime;
  }

  /** The cursor; a new one at the start if the stream is another one (INGRESS-4). */
  async #locate(): Promise<Cursor> {
    const info = await this.#sources.stream();
    const { position, skip } = this.#beginning.start;
    const cursor = this.#cursor ?? (position && this.#newCursor(position.stream, position.sequence, skip));
    if (cursor && (await this.#isOfStream(cursor, info))) {
      if (!this.#cursor && cursor.last > 0) {
        // Settled posts may fill the stream: then no new post could arrive to trigger a purge.
        this.#sources.capacity.settledUpTo({ stream: cursor.created, sequence: cursor.last });
        this.#beginning.keeper.note(() => settledBy(cursor)); // a daemon without the rights to the record may have settled posts
      }
      this.#cursor = cursor;
      return cursor;
    }
    if (cursor) {
      const fields = {
        stream: info.config.name,
        known: cursor.created,
        created: info.created,
        last: cursor.last,
      };
      this.#sources.log.warn(
        fields,
        'the ingress stream is another one than before; reading it from its start',
      );
      cursor.queue.close();
    }
    this.#beginning.keeper.forget();
    if (cursor?.created === info.created) {
      // The lost sequences may belong to other posts now, so nothing counts as settled until it is read again.
      await this.#beginning.keeper.hasLostEnd(info);
    }
    if (this.#cursor || cursor?.created === info.created)
      this.#options.onPosition({ stream: info.created, sequence: 0 });
    this.#cursor = this.#newCursor(info.created, 0);
    return this.#cursor;
  }
}

/** The read position in one stream. */
interface Cursor {
  /** The creation time of the stream: a stream that is created again has another one. */
  readonly created: string;
  /** The last sequence that was read. */
  last: number;
  /** When the stream stored that message; null if this process did not read it. */
  lastTime: bigint | null;
  readonly mark: LowWaterMark;
  readonly queue: FairQueue<StreamMessage>;
  readonly skip: Settled | null;
  /** `skip` covers it. */
  readonly isElsewhere: (sequence: number) => boolean;
  /** The letters of posts that were refused before this process read them; null: not read yet. */
  letterOf: LetterOf | null;
  /** Skipped parts whose letters are not stored: the mark has only the ends of each. */
  unsettledSkips: number;
  /** The `waitMs` from `onRead`, by sequence, of posts in flight that exceed the rate. */
  readonly waits: Map<number, number>;
}

/** As far as it is known when a post is read. */
function fateWhenRead(cursor: Cursor, { position: { sequence }, publisher, takenAt }: Delivery): Fate {
  if (cursor.isElsewhere(sequence)) return { kind: 'elsewhere' };
  const letter = cursor.letterOf?.(publisher, sequence, takenAt) ?? null;
  return letter === null ? { kind: 'new' } : { kind: 'refused', letter };
}

/** INGRESS-6: what the server records. */
function settledBy({ created: stream, mark, skip, unsettledSkips, last: sequence, lastTime }: Cursor) {
  const settled = union(mark.settled(unsettledSkips > 0 ? 0 : MOST_OPEN), skip);
  return { stream, settled, last: lastTime === null ? null : { sequence, time: `${lastTime}` } };
}

/** The message limit of the stream, so that a flood leaves no post unread. About 75 MB, 150 MB if each has its own conversation. */
const MAX_PARKED = 1_000_000;
/** The default of `maxKeptBytes`. */
const MAX_KEPT_BYTES = 32 * 1_024 * 1_024;

function queueLimits(options: IngressOptions): FairQueueLimits {
  const { maxInFlight, maxInFlightPerPublisher, maxConversationsPerPublisher } = options;
  const { maxBytesInFlight, maxParked, maxKeptBytes } = options;
  return {
    maxInFlight,
    perPublisher: maxInFlightPerPublisher ?? maxInFlight,
    conversationsPerPublisher: maxConversationsPerPublisher ?? Number.POSITIVE_INFINITY,
    maxBytes: maxBytesInFlight ?? Number.POSITIVE_INFINITY,
    maxParked: maxParked ?? MAX_PARKED,
    maxKept: maxKeptBytes ?? MAX_KEPT_BYTES,
  };
}
