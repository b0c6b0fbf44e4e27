import { setTimeout as pause } from 'node:timers/promises';
import type { StreamInfo } from 'nats';
import { messageOf } from '../../../kernel/index.ts';
import { logFault } from '../../api.ts';
import { LowWaterMark } from '../../low-water-mark.ts';
import type { IngressDelivery, IngressLag, IngressOptions } from '../../port.ts';
import { covers, type Settled, union } from '../../settled.ts';
import type { PostPlace } from './backlog.ts';
import type { Beginning } from './begin-reading.ts';
import { FairQueue, type QueuedPost } from './fair-queue.ts';
import type { IngressSources } from './ingress-sources.ts';
import { BodyMode, type Cursor, deliveryFrom, FloodWatch, RefusedTogether } from './reading.ts';
import { refusedRunsAfter } from './refused-posts.ts';
import { MOST_OPEN } from './settled-keeper.ts';
import { passOver, skipAhead } from './skip-ahead.ts';
import { StoredPosts, timeOf } from './stored-posts.ts';
import { type PullEnd, StreamConsumer } from './stream-consumer.ts';
import type { StreamMessage } from './stream-message.ts';

/**
 * Reads the ingress stream for one daemon.
 *
 * INGRESS-1 Deliveries of one publisher, and those into one conversation, come in stream order; none is skipped, none comes
 *    twice while this reader lives (BUS-PORT-1).
 * INGRESS-2 At most `maxInFlight` are unsettled, `maxInFlightPerPublisher` of one. While they hold `maxBytesInFlight`, no more
 *    are delivered. Reading goes on past what has to wait, and keeps its places and few bodies (`turnstile.ts`); with `maxParked`
 *    of those, the rest waits in the stream.
 * INGRESS-3 A break of any kind is followed by a new consumer behind the last delivery, for as long as it takes.
 * INGRESS-4 When the stream is not the one that was read before (made anew, or rolled back), reading begins at its first
 *    message: ids suppress what repeats, nothing suppresses what was skipped.
 * INGRESS-5 The position never passes a delivery that is not settled; a rejected one stays unsettled and comes again after
 *    a restart. While reading stops that is no fault: at the end one line says how many wait.
 * INGRESS-7 A flood of long posts that are refused is read without bodies; what is delivered then is read again by its place.
 * INGRESS-8 When reading falls far behind a publisher whose posts are refused, its unread posts are refused without reading them
 *    (`skip-ahead.ts`). The posts of all others are read, also those between.
 * INGRESS-6 What another store settled is read and not delivered (`../settled.ts`). What is settled here is kept on the server.
 */

/** What comes between two turns of a busy process is read at once: with less, a flood stands in front of everybody. */
const MAX_BATCH = 1_000;
/** As many as the stream holds: nobody waits unread behind a flood. Some 75 MB, twice that where each has a conversation of its own. */
const MAX_PARKED = 1_000_000;
/** Read once only: as much as may be under way. */
const MAX_KEPT_BYTES = 32 * 1_024 * 1_024;
const SHORTEST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/** Reading goes on with another kind of consumer (INGRESS-7). */
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
  /** Of lives of the stream that are over: what they let through is still to be settled. */
  readonly #turnstiles = new Set<FairQueue<StreamMessage>>();

  constructor(sources: IngressSources, options: IngressOptions, beginning: Beginning) {
    this.#sources = sources;
    this.#options = options;
    this.#beginning = beginning;
    this.#posts = new StoredPosts(sources, this.#stopping.signal);
    void sources.room.look(); // the last daemon may have left it closed
    this.#running = this.#run();
  }

  /** Says that the connection broke: what was asked for will not come. */
  interrupt(reason: string): void {
    this.#consumer?.interrupt(reason);
  }

  /** Takes no new deliveries; resolves when those under way are settled. */
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
    for (const turnstile of this.#turnstiles) turnstile.close();
    await this.#running;
    for (const turnstile of this.#turnstiles) while (turnstile.inFlight > 0) await turnstile.change();
    const posts = this.#cursor?.mark.underWay ?? 0;
    if (posts > 0) this.#sources.log.info({ posts }, 'posts wait for the next start'); // INGRESS-5
    const { purger, room } = this.#sources;
    await Promise.all([this.#beginning.keeper.stop(), purger.stop(), room.stop()]);
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
      log.warn({ reason, after: this.#cursor?.last ?? null }, 'reading posts was interrupted; going on');
      await pause(wait, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    }
  }

  /** Answers with what broke the reading. Does not reject. */
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
      // A consumer belongs to one life of its stream; only now is it certain that it is this one.
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
      const { turnstile } = cursor;
      if (turnstile.room <= 0) {
        await turnstile.change(); // INGRESS-2
        continue;
      }
      const end: PullEnd = await consumer.pull(Math.min(turnstile.room, MAX_BATCH), (message) =>
        this.#take(cursor, message),
      );
      if (end.kind === 'broken') return end.reason;
      const flooder = this.#watch.flooder(consumer.pending);
      if (flooder !== null && (await this.#skip(cursor, flooder))) return CHANGED;
    }
    return 'stopping';
  }

  #take(cursor: Cursor, message: StreamMessage): void {
    const { sequence } = message;
    cursor.last = sequence;
    cursor.lastTime = message.time;
    cursor.mark.open(sequence);
    this.#sources.purger.read(message.size);
    this.#sources.room.stir();
    if (cursor.isElsewhere(sequence)) this.#settled(cursor, [sequence]);
    else this.#decide(cursor, message);
  }

  /** INGRESS-8. True: the cursor is after the posts that were skipped. */
  async #skip(cursor: Cursor, publisher: string): Promise<boolean> {
    const { life: stream, last: read, lastTime } = cursor;
    const { onUnread } = this.#options;
    if (!onUnread || lastTime === null) return false;
    const skip = await skipAhead(this.#sources, publisher, { stream, sequence: read }).catch(() => null);
    if (skip === null || this.#stopping.signal.aborted) return false;
    const { last, to, count, bytes } = skip;
    const range = { first: read + 1, last, from: Number(lastTime / 1_000_000n), to };
    const kept = onUnread({ publisher, stream, count, bytes, ...range });
    if (kept === null) return false;
    const refuse = (sequence: number) => {
      cursor.mark.open(sequence);
      this.#refused.add(kept, sequence, (sequences) => this.#settled(cursor, sequences));
    };
    passOver(read + 1, skip, refuse, (message) => this.#take(cursor, message));
    this.#sources.purger.read(bytes);
    Object.assign(cursor, { last, lastTime: null });
    return true;
  }

  /** Also what is to be delivered is read without its body, and then again by its place (INGRESS-7). */
  #decide(cursor: Cursor, message: StreamMessage): void {
    const parcel = this.#parcel(message);
    const isBodiless = message.size > message.data.length;
    const { onRead } = this.#options;
    if (onRead) {
      const delivery = deliveryFrom(cursor.life, parcel);
      const { sequence, size: bytes, data } = message;
      if (cursor.wasRefused?.(delivery.publisher, sequence, delivery.takenAt)) {
        this.#settled(cursor, [sequence]);
        return;
      }
      const reading = onRead({ ...delivery, bytes, body: isBodiless ? null : data });
      if (reading.kind === 'refused') {
        this.#bodies.refused(bytes);
        this.#watch.read(delivery.publisher);
        this.#refused.add(reading.kept, sequence, (sequences) => this.#settled(cursor, sequences));
        return;
      }
      this.#watch.read(null);
      if (reading.waitMs > 0) cursor.waits.set(sequence, reading.waitMs);
    }
    const { message: _, ...place } = parcel;
    cursor.turnstile.offer(isBodiless ? place : parcel);
  }

  #parcel(message: StreamMessage): QueuedPost<StreamMessage> {
    // The stream takes two tokens only; should one be odd, the envelope refuses it by name.
    const names = this.#sources.subjects.parseIn(message.subject) ?? { publisher: '', conversation: '' };
    return { sequence: message.sequence, ...names, bytes: message.size, message };
  }

  /** A post that had to wait, read again. */
  async #fetch({ sequence }: PostPlace): Promise<QueuedPost<StreamMessage> | null> {
    const stored = await this.#posts.fetch(sequence);
    return stored && this.#parcel(stored);
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
    const turnstile: FairQueue<StreamMessage> = new FairQueue(limits, {
      handle: (parcel) => this.#handle(this.#delivery(cursor, parcel)),
      keep: (message) => ({ ...message, data: new Uint8Array(message.data) }),
      fetch: (place) => this.#fetch(place),
      settled: (sequence) => {
        cursor.waits.delete(sequence);
        this.#settled(cursor, [sequence]);
      },
    });
    const mark = new LowWaterMark(last);
    const isElsewhere = skip ? covers(skip) : () => false;
    const reading = { life, last, lastTime: null, wasRefused: null, waits: new Map() };
    const cursor: Cursor = { ...reading, mark, turnstile, skip, isElsewhere };
    this.#options.onSkip?.(({ stream, sequence }) => stream === life && isElsewhere(sequence));
    for (const before of this.#turnstiles) if (before.inFlight === 0) this.#turnstiles.delete(before);
    this.#turnstiles.add(turnstile);
    return cursor;
  }

  async #handle(delivery: IngressDelivery): Promise<boolean> {
    try {
      await this.#options.onDelivery(delivery);
      return true;
    } catch (error) {
      const { sequence } = delivery.position;
      const message = 'a post could not be taken; it comes again after a restart'; // INGRESS-5
      if (!this.#stopping.signal.aborted) logFault(this.#sources.log, error, { sequence }, message);
      return false;
    }
  }

  #settled(cursor: Cursor, sequences: readonly number[]): void {
    const before = cursor.mark.value;
    for (const sequence of sequences) cursor.mark.settle(sequence);
    const hasMoved = cursor.mark.value !== before;
    if (cursor !== this.#cursor) return; // of a stream that is gone
    if (hasMoved) this.#advance(cursor);
    this.#note(cursor);
  }

  /** INGRESS-6 */
  #note(cursor: Cursor): void {
    this.#beginning.keeper.note(() => ({
      stream: cursor.life,
      settled: union(cursor.mark.settled(MOST_OPEN), cursor.skip),
      last: cursor.lastTime === null ? null : { sequence: cursor.last, time: `${cursor.lastTime}` },
    }));
  }

  #advance(cursor: Cursor): void {
    const position = { stream: cursor.life, sequence: cursor.mark.value };
    this.#options.onPosition(position);
    this.#sources.purger.settledUpTo(position);
  }

  #delivery(cursor: Cursor, parcel: QueuedPost<StreamMessage>): IngressDelivery {
    const waitMs = cursor.waits.get(parcel.sequence) ?? (this.#options.onRead && 0);
    return { ...deliveryFrom(cursor.life, parcel), ...(waitMs !== undefined && { waitMs }) };
  }

  /** The cursor, made anew if the stream is not the one it was read from (INGRESS-4). */
  async #locate(): Promise<Cursor> {
    const info = await this.#sources.stream();
    const cursor = this.#cursor ?? this.#stored();
    if (cursor && (await this.#fits(cursor, info))) {
      if (!this.#cursor && cursor.last > 0) {
        // What is settled may fill the stream, so that no post would ever come to have it purged.
        this.#sources.purger.settledUpTo({ stream: cursor.life, sequence: cursor.last });
        this.#note(cursor); // a daemon that kept none may have settled them
      }
      this.#cursor = cursor;
      return cursor;
    }
    if (cursor) {
      const fields = { stream: info.config.name, known: cursor.life, created: info.created };
      const message = 'the ingress stream is not the one that was read; reading it from its start';
      this.#sources.log.warn({ ...fields, last: cursor.last }, message);
    }
    cursor?.turnstile.close();
    this.#beginning.keeper.forget();
    if (cursor?.life === info.created) await this.#lostEnd(info);
    this.#cursor = this.#newCursor(info.created, 0);
    return this.#cursor;
  }

  /** Nothing is settled before it is read again: what is in the places that were lost is not known. */
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
    // A stream that lost its tail in a crash gives the same sequences to other messages.
    const stored = await timeOf(manager, subjects.ingressStream, cursor.last);
    return stored === null || stored === cursor.lastTime;
  }
}
