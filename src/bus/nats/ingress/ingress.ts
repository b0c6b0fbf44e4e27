import { setTimeout as pause } from 'node:timers/promises';
import type { StreamInfo } from 'nats';
import { messageOf } from '../../../kernel/index.ts';
import { logFault } from '../../envelopes.ts';
import type { Delivery, IngressLag, IngressOptions } from '../../port.ts';
import { covers, LowWaterMark, type Settled, union } from '../../settled.ts';
import type { DeliveryRef } from './backlog.ts';
import type { Beginning } from './begin-reading.ts';
import { FairQueue, type QueuedDelivery } from './fair-queue.ts';
import type { IngressSources } from './ingress-sources.ts';
import { BodyMode, type Cursor, deliveryFrom, FloodWatch, RefusedTogether } from './reading.ts';
import { refusedRunsAfter } from './refused-posts.ts';
import { MOST_OPEN } from './settled-keeper.ts';
import { handOverSkipped, skipAhead } from './skip-ahead.ts';
import { StoredPosts, timeOf } from './stored-posts.ts';
import { type PullEnd, StreamConsumer } from './stream-consumer.ts';
import type { StreamMessage } from './stream-message.ts';

/**
 * Reads the ingress stream for one daemon.
 *
 * INGRESS-1 Deliveries of one publisher, and deliveries into one conversation, arrive in stream order. While this reader lives,
 *    none is skipped and none is repeated (BUS-PORT-1).
 * INGRESS-2 At most `maxInFlight` deliveries are unsettled, at most `maxInFlightPerPublisher` of one publisher. While these hold
 *    `maxBytesInFlight`, no more are delivered. Reading continues into a backlog of `maxParked` posts (`fair-queue.ts`).
 * INGRESS-3 After any break a new consumer is opened after the last post that was read; it retries until it succeeds.
 * INGRESS-4 When the stream is another one than before (created again, or rolled back), reading starts at its first message:
 *    ids suppress repeated posts, but nothing would recover skipped ones.
 * INGRESS-5 The position never passes an unsettled delivery. A rejected delivery stays unsettled and is repeated after a
 *    restart. Rejections while the reader stops are not logged one by one: one line gives their number.
 * INGRESS-6 Posts that another store settled are read and not delivered (`../settled.ts`). The server keeps what is settled here.
 * INGRESS-7 A flood of long refused posts is read without bodies. A post that is delivered then is read again by its sequence.
 * INGRESS-8 When reading is far behind because of posts that are refused, the unread posts of each publisher that is far over
 *    its rate are refused without reading them (`skip-ahead.ts`). The posts of all other publishers are read.
 */

/** A small batch would let a flood delay the other publishers, because a busy process pulls rarely. */
const MAX_BATCH = 1_000;
/** The message limit of the stream, so that a flood leaves no post unread. About 75 MB, 150 MB if each has its own conversation. */
const MAX_PARKED = 1_000_000;
/** The default of `maxBytesInFlight`. */
const MAX_KEPT_BYTES = 32 * 1_024 * 1_024;
const SHORTEST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/** Reading continues with another kind of consumer (INGRESS-7). */
const CHANGED = 'changed';

export class Ingress {
  readonly #sources: IngressSources;
  readonly #options: IngressOptions;
  readonly #beginning: Beginning;
  readonly #stopping = new AbortController();
  readonly #posts: StoredPosts;
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
    this.#posts = new StoredPosts(sources, this.#stopping.signal);
    void sources.capacityGuard.poll(); // the previous daemon may have closed the stream
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

  async lag(): Promise<IngressLag> {
    const { manager, subjects } = this.#sources;
    const { state, created } = await this.#sources.stream();
    const known = this.#cursor;
    const cursor = known?.life === created ? known : null;
    const read = cursor?.last ?? 0;
    const unread = Math.max(0, state.last_seq - Math.max(read, state.first_seq - 1));
    const messages = unread + (cursor?.mark.underWay ?? 0);
    if (messages === 0) return { messages, oldestTakenAt: null };
    const oldest = cursor?.mark.oldest ?? Math.max(read + 1, state.first_seq);
    const time = await timeOf(manager, subjects.ingressStream, oldest);
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
    const { purger, capacityGuard } = this.#sources;
    await Promise.all([this.#beginning.keeper.stop(), purger.stop(), capacityGuard.stop()]);
  }

  /** INGRESS-3 */
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
      await pause(wait, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    }
  }

  /** Returns the reason why reading ended. Does not reject. */
  async #readUntilBroken(): Promise<string> {
    try {
      await this.#options.onBegin?.();
      const cursor = await this.#locate();
      if (this.#options.onRead)
        cursor.wasRefused ??= await refusedRunsAfter(this.#sources, {
          stream: cursor.life,
          sequence: cursor.last,
        });
      const { connection, manager, subjects } = this.#sources;
      const consumer = await StreamConsumer.open(
        connection,
        manager,
        subjects.ingressStream,
        cursor.last + 1,
        { isHeadersOnly: this.#bodies.isHeadersOnly },
      );
      this.#consumer = consumer;
      // The stream may have been replaced before the consumer was created.
      if ((await this.#locate()) !== cursor) return 'the stream was replaced';
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
        await queue.change(); // INGRESS-2
        continue;
      }
      const end: PullEnd = await consumer.pull(Math.min(queue.capacity, MAX_BATCH), (message) =>
        this.#take(cursor, message),
      );
      if (end.kind === 'broken') return end.reason;
      if (this.#watch.isSkipDue(consumer.pending) && (await this.#skip(cursor))) return CHANGED;
    }
    return 'stopping';
  }

  #take(cursor: Cursor, message: StreamMessage): void {
    const { sequence } = message;
    cursor.last = sequence;
    cursor.lastTime = message.time;
    cursor.mark.open(sequence);
    this.#sources.purger.noteRead(message.size);
    this.#sources.capacityGuard.noteRead();
    if (cursor.isSettledElsewhere(sequence)) this.#settled(cursor, [sequence]);
    else this.#decide(cursor, message);
  }

  /** INGRESS-8. True: the cursor is after the posts that were skipped. */
  async #skip(cursor: Cursor): Promise<boolean> {
    const { life: stream, last: sequence, lastTime } = cursor;
    const { isFlood, onUnread } = this.#options;
    if (!isFlood || !onUnread || lastTime === null) return false;
    const after = { stream, sequence, time: Number(lastTime / 1_000_000n) };
    const skip = await skipAhead(this.#sources, after, isFlood).catch(() => null);
    if (skip === null || this.#stopping.signal.aborted) return false;
    cursor.unsettledSkips += 1;
    const kept = Promise.all(skip.floods.map(onUnread)).then(() => {
      cursor.unsettledSkips -= 1;
    });
    const refuse = (end: number) => {
      cursor.mark.open(end);
      this.#refused.add(kept, end, (sequences) => this.#settled(cursor, sequences));
    };
    handOverSkipped(sequence + 1, skip, refuse, (message) => this.#take(cursor, message));
    for (const { bytes } of skip.floods) this.#sources.purger.noteRead(bytes);
    Object.assign(cursor, { last: skip.last, lastTime: null });
    return true;
  }

  /** Refuses the post or offers it to the queue, without its message if the body was not read (INGRESS-7). */
  #decide(cursor: Cursor, message: StreamMessage): void {
    const post = this.#postOf(message);
    const isBodiless = message.size > message.data.length;
    const { onRead } = this.#options;
    if (onRead) {
      const delivery = deliveryFrom(cursor.life, post);
      const { sequence, size: bytes, data } = message;
      if (cursor.wasRefused?.(delivery.publisher, sequence, delivery.takenAt)) {
        this.#settled(cursor, [sequence]);
        return;
      }
      const reading = onRead({ ...delivery, bytes, body: isBodiless ? null : data });
      if (reading.kind === 'refused') {
        this.#bodies.refused(bytes);
        this.#watch.read(true);
        this.#refused.add(reading.kept, sequence, (sequences) => this.#settled(cursor, sequences));
        return;
      }
      this.#watch.read(false);
      if (reading.waitMs > 0) cursor.waits.set(sequence, reading.waitMs);
    }
    const { message: _, ...ref } = post;
    cursor.queue.offer(isBodiless ? ref : post);
  }

  #postOf(message: StreamMessage): QueuedDelivery<StreamMessage> {
    // The stream's subject filter guarantees two tokens. The envelope refuses invalid names.
    const names = this.#sources.subjects.parseIn(message.subject) ?? { publisher: '', conversation: '' };
    return { sequence: message.sequence, ...names, bytes: message.size, message };
  }

  /** Reads a post of the backlog again. */
  async #fetch({ sequence }: DeliveryRef): Promise<QueuedDelivery<StreamMessage> | null> {
    const stored = await this.#posts.fetch(sequence);
    return stored && this.#postOf(stored);
  }

  #newCursor(life: string, last: number, skip: Settled | null = null): Cursor {
    const { maxInFlight, maxInFlightPerPublisher, maxConversationsPerPublisher } = this.#options;
    const { maxBytesInFlight, maxParked, maxKeptBytes } = this.#options;
    const limits = {
      maxInFlight,
      perPublisher: maxInFlightPerPublisher ?? maxInFlight,
      conversationsPerPublisher: maxConversationsPerPublisher ?? Number.POSITIVE_INFINITY,
      maxBytes: maxBytesInFlight ?? Number.POSITIVE_INFINITY,
      maxParked: maxParked ?? MAX_PARKED,
      maxKept: maxKeptBytes ?? MAX_KEPT_BYTES,
    };
    const queue: FairQueue<StreamMessage> = new FairQueue(limits, {
      handle: (post) => this.#handle(this.#delivery(cursor, post)),
      keep: (message) => ({ ...message, data: new Uint8Array(message.data) }),
      fetch: (ref) => this.#fetch(ref),
      settled: (sequence) => {
        cursor.waits.delete(sequence);
        this.#settled(cursor, [sequence]);
      },
    });
    const mark = new LowWaterMark(last);
    const isSettledElsewhere = skip ? covers(skip) : () => false;
    const reading = { life, last, lastTime: null, wasRefused: null, unsettledSkips: 0, waits: new Map() };
    const cursor: Cursor = { ...reading, mark, queue, skip, isSettledElsewhere };
    this.#options.onSkip?.(({ stream, sequence }) => stream === life && isSettledElsewhere(sequence));
    for (const before of this.#queues) if (before.inFlight === 0) this.#queues.delete(before);
    this.#queues.add(queue);
    return cursor;
  }

  async #handle(delivery: Delivery): Promise<boolean> {
    try {
      await this.#options.onDelivery(delivery);
      return true;
    } catch (error) {
      const { sequence } = delivery.position;
      const message = 'a post could not be processed; it is read again after a restart'; // INGRESS-5
      if (!this.#stopping.signal.aborted) logFault(this.#sources.log, error, { sequence }, message);
      return false;
    }
  }

  #settled(cursor: Cursor, sequences: readonly number[]): void {
    const before = cursor.mark.value;
    for (const sequence of sequences) cursor.mark.settle(sequence);
    const hasMoved = cursor.mark.value !== before;
    if (cursor !== this.#cursor) return; // the stream was replaced
    if (hasMoved) this.#advance(cursor);
    this.#note(cursor);
  }

  /** INGRESS-6 */
  #note(cursor: Cursor): void {
    this.#beginning.keeper.note(() => ({
      stream: cursor.life,
      settled: union(cursor.mark.settled(cursor.unsettledSkips > 0 ? 0 : MOST_OPEN), cursor.skip),
      last: cursor.lastTime === null ? null : { sequence: cursor.last, time: `${cursor.lastTime}` },
    }));
  }

  #advance(cursor: Cursor): void {
    const position = { stream: cursor.life, sequence: cursor.mark.value };
    this.#options.onPosition(position);
    this.#sources.purger.settledUpTo(position);
  }

  #delivery(cursor: Cursor, post: QueuedDelivery<StreamMessage>): Delivery {
    const waitMs = cursor.waits.get(post.sequence) ?? (this.#options.onRead && 0);
    return { ...deliveryFrom(cursor.life, post), ...(waitMs !== undefined && { waitMs }) };
  }

  /** The cursor; a new one at the start if the stream is another one (INGRESS-4). */
  async #locate(): Promise<Cursor> {
    const info = await this.#sources.stream();
    const cursor = this.#cursor ?? this.#stored();
    if (cursor && (await this.#fits(cursor, info))) {
      if (!this.#cursor && cursor.last > 0) {
        // Settled posts may fill the stream: then no new post could arrive to trigger a purge.
        this.#sources.purger.settledUpTo({ stream: cursor.life, sequence: cursor.last });
        this.#note(cursor); // a daemon without the rights to the record may have settled posts
      }
      this.#cursor = cursor;
      return cursor;
    }
    if (cursor) {
      const fields = { stream: info.config.name, known: cursor.life, created: info.created };
      const message = 'the ingress stream is another one than before; reading it from its start';
      this.#sources.log.warn({ ...fields, last: cursor.last }, message);
    }
    cursor?.queue.close();
    this.#beginning.keeper.forget();
    if (cursor?.life === info.created) await this.#lostEnd(info);
    this.#cursor = this.#newCursor(info.created, 0);
    return this.#cursor;
  }

  /** The lost sequences may belong to other posts now, so nothing counts as settled until it is read again. */
  async #lostEnd(info: StreamInfo): Promise<void> {
    await this.#beginning.keeper.hasLostEnd(info);
    this.#options.onPosition({ stream: info.created, sequence: 0 });
  }

  #stored(): Cursor | null {
    const { position, skip } = this.#beginning.start;
    return position && this.#newCursor(position.stream, position.sequence, skip);
  }

  async #fits(cursor: Cursor, info: StreamInfo): Promise<boolean> {
    const { manager, subjects } = this.#sources;
    if (cursor.life !== info.created || cursor.last > info.state.last_seq) return false;
    if (cursor.lastTime === null || cursor.last < info.state.first_seq) return true;
    // A stream that lost its tail in a crash reuses the sequences for other messages.
    const stored = await timeOf(manager, subjects.ingressStream, cursor.last);
    return stored === null || stored === cursor.lastTime;
  }
}
