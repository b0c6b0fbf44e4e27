import { setTimeout as pause } from 'node:timers/promises';
import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  type Msg,
  nanos,
  ReplayPolicy,
  type StreamInfo,
} from 'nats';
import { messageOf } from '../../../kernel/index.ts';
import type { Delivery, IngressLag, StreamPosition } from '../../port.ts';
import { covers, union } from '../../settled.ts';
import type { SharedIngress, SharedIngressOptions, Token } from '../../sharing.ts';
import { ANY } from '../../subjects.ts';
import { type Beginning, beginReading, LOST_END, lastOf } from '../ingress/begin-reading.ts';
import { type IngressSources, SHARED_CONSUMER } from '../ingress/ingress-sources.ts';
import { refusedFrom } from '../ingress/refused-posts.ts';
import { isGone, readDelivery, timeOf } from '../ingress/stored-posts.ts';
import { parseAckSubject } from '../ingress/stream-consumer.ts';
import { senderOf } from '../ingress/stream-message.ts';
import { apiErrorCode, brokerError, CONSUMER_NOT_FOUND } from '../streams/broker-error.ts';
import { TokenPulls } from './token-pulls.ts';
import { TokenQueue } from './token-queue.ts';

/**
 * Reads the ingress stream together with other daemons: one durable consumer delivers each post to one of them, as a token
 * (`../sharing.ts`). The post itself, and earlier posts of its conversation, are read from the stream.
 *
 * SHARED-INGRESS-1 A missing consumer is created again. It starts after the newest position up to which all posts are settled.
 * SHARED-INGRESS-2 Only acknowledged posts are purged, and a margin of them stays. The fill level is queried each time, because
 *    other daemons read too. Messages are deleted one by one (`purger.ts`, PURGER-4).
 * SHARED-INGRESS-3 Tokens are received as fast as they arrive, also in a flood: in the stream a post follows all earlier posts,
 *    in the daemon only those of its conversation and publisher (`token-queue.ts`).
 * SHARED-INGRESS-4 Posts that another store settled are acknowledged and not processed (`../settled.ts`). The record on the
 *    server includes acknowledged posts, for other stores; while the consumer exists, its ack floor is newer.
 * SHARED-INGRESS-5 After the stream lost its newest posts in a crash, nothing is assumed about the posts that reuse their sequences.
 */

/** Tokens of one pull: few, because a frozen daemon keeps them until `ack_wait`; more while the pulls are full (SHARED-INGRESS-3). */
const FEWEST = 32;
const MOST = 512;
const SHORTEST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

export class NatsSharedIngress implements SharedIngress {
  readonly #sources: IngressSources;
  readonly #options: SharedIngressOptions;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #watching: Promise<void> = Promise.resolve();
  #pulls: TokenPulls | null = null;
  #life = '';
  #floor: StreamPosition | null;
  #beginning: Beginning | null = null;
  /** SHARED-INGRESS-4, for the stream with this creation time. */
  #elsewhere: { readonly life: string; readonly has: (sequence: number) => boolean } | null = null;
  readonly #queue: TokenQueue;

  constructor(sources: IngressSources, options: SharedIngressOptions) {
    this.#sources = sources;
    this.#options = options;
    this.#floor = options.after;
    const { maxInFlight, failureTimeoutMs, onToken } = options;
    this.#queue = new TokenQueue({
      ...{ maxInFlight, failureTimeoutMs, onToken },
      keep: (token) => this.keep(token),
      giveBack: (token, afterMs) => this.giveBack(token, afterMs),
    });
  }

  get life(): string {
    return this.#life;
  }

  /** Resolves when the consumer exists. */
  async start(): Promise<void> {
    await this.#begin();
    const isNew = await this.#ensureConsumer();
    if (isNew) await this.#beginning?.warnOfSkipped();
    if (this.#floor?.stream === this.#life) await this.#noteFloor(this.#floor);
    void this.#sources.capacityGuard.poll(); // the last daemon may have left it closed
    this.#running = this.#run();
    this.#watching = this.#watchFloor();
  }

  async #begin(): Promise<void> {
    const { manager, subjects } = this.#sources;
    const { owner, after, isReplay = false } = this.#options;
    if (isReplay)
      await manager.consumers.delete(subjects.ingressStream, SHARED_CONSUMER).catch((error: unknown) => {
        if (apiErrorCode(error) !== CONSUMER_NOT_FOUND) throw brokerError(error, 'restart the consumer');
      });
    this.#beginning = await beginReading(this.#sources, { owner, after, isReplay, isShared: true });
    const { position, skip } = this.#beginning.start;
    this.#floor = position;
    if (position && position !== after) this.#setFloor(position);
    if (position && skip) this.#elsewhere = { life: position.stream, has: covers(skip) };
    this.#options.onSkip?.((post) => this.#isElsewhere(post));
  }

  interrupt(reason: string): void {
    this.#pulls?.interrupt(reason);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.interrupt('stopping');
    this.#queue.close();
    await this.#running;
    await this.#queue.drain();
    await this.#watching;
    const { purger, capacityGuard, watch } = this.#sources;
    if (await watch.connected(0)) await this.#pollFloor(); // acknowledgements since the last poll
    await Promise.all([this.#beginning?.keeper.stop(), purger.stop(), capacityGuard.stop()]);
  }

  async next(conversation: string, after: number, upTo: number): Promise<Delivery | null> {
    const filter = this.#sources.subjects.in(ANY, conversation);
    for (let from = after; ; ) {
      const query = { seq: Math.max(1, from + 1), next_by_subj: filter };
      const found = await readDelivery(this.#sources, this.#life, query, upTo);
      if (found === null || !this.#isElsewhere(found.position)) return found;
      from = found.position.sequence;
    }
  }

  #isElsewhere({ stream, sequence }: StreamPosition): boolean {
    return this.#elsewhere?.life === stream && this.#elsewhere.has(sequence);
  }

  async at(sequence: number): Promise<Delivery | null> {
    const found = await readDelivery(this.#sources, this.#life, { seq: sequence }, sequence);
    const { manager, subjects } = this.#sources;
    if (found === null && !(await isGone(manager, subjects.ingressStream, sequence)))
      throw new Error(`the server has post ${sequence} and cannot read it`);
    return found;
  }

  refusedFrom(delivery: Delivery): Promise<ReadonlyMap<number, number>> {
    return refusedFrom(this.#sources, delivery);
  }

  keep(token: Token): void {
    this.#respond(token, '+WPI');
  }

  acknowledge(token: Token): void {
    this.#respond(token, '+ACK');
  }

  giveBack(token: Token, afterMs = 0): void {
    this.#respond(token, afterMs > 0 ? `-NAK ${JSON.stringify({ delay: nanos(afterMs) })}` : '-NAK');
  }

  /** Best effort. Without a connection the response is lost and the token is delivered again, which is harmless. */
  #respond({ handle }: Token, response: string): void {
    try {
      this.#sources.connection.publish(handle, response);
    } catch {
      // Closed or draining.
    }
  }

  async #run(): Promise<void> {
    const { watch, log } = this.#sources;
    const { signal } = this.#stopping;
    let wait = SHORTEST_PAUSE_MS;
    const onProgress = () => {
      wait = SHORTEST_PAUSE_MS;
    };
    let isReady = true; // `start` created the consumer
    while (!signal.aborted) {
      if (!(await watch.connected(LONGEST_PAUSE_MS, signal))) continue;
      isReady ||= await this.#isReady();
      if (isReady) {
        const reason = await this.#pullUntilBroken(onProgress);
        isReady = false;
        if (signal.aborted) return;
        log.warn({ reason }, 'reading posts was interrupted; reading again');
      }
      await pause(wait, undefined, { signal }).catch(() => undefined);
      wait = Math.min(wait * 2, LONGEST_PAUSE_MS);
    }
  }

  /** True: the consumer exists and reading may start (SHARED-INGRESS-1, SHARED-INGRESS-5). */
  async #isReady(): Promise<boolean> {
    try {
      await this.#ensureConsumer();
      return true;
    } catch (error) {
      const reason = messageOf(error);
      this.#sources.log.warn({ reason }, 'the consumer of the ingress stream could not be created; retrying');
      return false;
    }
  }

  /** Returns the reason why reading ended. Does not reject. */
  async #pullUntilBroken(onProgress: () => void): Promise<string> {
    const { connection, subjects } = this.#sources;
    const pulls = new TokenPulls(connection, subjects.ingressStream, SHARED_CONSUMER, (message) =>
      this.#receive(message),
    );
    this.#pulls = pulls;
    let batch = FEWEST;
    try {
      while (!this.#stopping.signal.aborted) {
        const { capacity } = this.#queue;
        if (capacity <= 0) {
          await this.#queue.change();
          continue;
        }
        const end = await pulls.pull(Math.min(capacity, batch));
        if (typeof end === 'object') return end.broken;
        batch = end === 'filled' ? Math.min(MOST, batch * 2) : FEWEST;
        onProgress();
      }
      return 'stopping';
    } finally {
      pulls.close();
      this.#pulls = null;
    }
  }

  #receive(message: Msg): void {
    const ack = parseAckSubject(message.reply);
    if (!ack || !message.reply) return;
    this.#sources.capacityGuard.noteRead();
    const { publisher, conversation } = senderOf(this.#sources.subjects, message);
    const position = { stream: this.#life, sequence: ack.sequence };
    const takenAt = Number(ack.time / 1_000_000n);
    const isRepeated = ack.deliveries > 1;
    const token = { ...position, conversation, handle: message.reply, isRepeated, takenAt };
    if (this.#stopping.signal.aborted) this.giveBack(token);
    else if (this.#isElsewhere(position)) this.acknowledge(token);
    else this.#queue.offer(publisher, token);
  }

  /** SHARED-INGRESS-1. True: it was missing. */
  async #ensureConsumer(): Promise<boolean> {
    const info = await this.#sources.stream();
    this.#life = info.created;
    await this.#detectLoss(info);
    await this.#options.onBegin?.();
    const behind = this.#floor?.stream === info.created ? this.#floor.sequence : 0;
    const { owner, failureTimeoutMs } = this.#options;
    return ensureSharedConsumer(this.#sources, { logs: owner.id, failureTimeoutMs, behind });
  }

  /** SHARED-INGRESS-5. True: the stream lost its end. */
  async #detectLoss(info: StreamInfo): Promise<boolean> {
    const { created: stream, state, config } = info;
    const isBeyond = this.#floor?.stream === stream && this.#floor.sequence > state.last_seq;
    if (!(await this.#beginning?.keeper.hasLostEnd(info)) && !isBeyond) return false;
    this.#sources.log.warn({ stream: config.name }, LOST_END);
    this.#elsewhere = null;
    this.#setFloor({ stream, sequence: 0 });
    return true;
  }

  async #hasLostEnd(): Promise<boolean> {
    const info = await this.#sources.stream();
    return info.created === this.#life && this.#detectLoss(info);
  }

  async #watchFloor(): Promise<void> {
    const { signal } = this.#stopping;
    const every = Math.min(5_000, this.#options.failureTimeoutMs / 2);
    while (!signal.aborted) {
      await pause(every, undefined, { signal }).catch(() => undefined);
      if (!signal.aborted) await this.#pollFloor();
    }
  }

  async #pollFloor(): Promise<void> {
    const { manager, subjects, purger } = this.#sources;
    const life = this.#life;
    const info = await manager.consumers.info(subjects.ingressStream, SHARED_CONSUMER).catch(() => null);
    if (await this.#hasLostEnd().catch(() => false)) {
      this.interrupt('the stream lost its newest posts'); // `#isReady` handles the loss before reading starts again
      return;
    }
    const sequence = info?.ack_floor.stream_seq ?? 0;
    if (sequence === 0 || life !== this.#life) return;
    if (this.#floor?.stream !== life || this.#floor.sequence < sequence) {
      this.#setFloor({ stream: life, sequence });
      await this.#noteFloor({ stream: life, sequence });
    }
    purger.noteRead(Number.POSITIVE_INFINITY);
    if (this.#floor) purger.settledUpTo(this.#floor);
  }

  #setFloor(floor: StreamPosition): void {
    this.#floor = floor;
    this.#options.onFloor(floor);
  }

  async #noteFloor({ stream, sequence }: StreamPosition): Promise<void> {
    const { keeper, start } = this.#beginning ?? {};
    const last = await lastOf(this.#sources, sequence).catch(() => null);
    const skipped = this.#elsewhere?.life === stream ? (start?.skip ?? null) : null;
    keeper?.note(() => ({ stream, settled: union({ upTo: sequence, open: [] }, skipped), last }));
  }
}

const MOST_PENDING = 50_000;

interface SharedConsumerOptions {
  /** The id of the logs that it reads for (`begin-reading.ts`). */
  readonly logs: string;
  /** A post without acknowledgement or keep-alive is delivered again after this time. */
  readonly failureTimeoutMs: number;
  /** A new consumer starts after this sequence. */
  readonly behind: number;
}

/**
 * Creates the consumer that daemons share if it is missing (then returns true). A consumer beyond the end of the stream has
 * survived posts that the stream lost. It would skip the posts that reuse their sequences, so it is created again.
 */
async function ensureSharedConsumer(
  { manager, subjects, stream }: IngressSources,
  { logs, failureTimeoutMs, behind }: SharedConsumerOptions,
): Promise<boolean> {
  const config: Partial<ConsumerConfig> = {
    durable_name: SHARED_CONSUMER,
    description: logs,
    ack_policy: AckPolicy.Explicit,
    replay_policy: ReplayPolicy.Instant,
    ack_wait: nanos(failureTimeoutMs),
    max_deliver: -1,
    max_ack_pending: MOST_PENDING,
  };
  const name = subjects.ingressStream;
  let known = await manager.consumers.info(name, SHARED_CONSUMER).catch(() => null);
  try {
    const { state } = await stream(); // read after the consumer, so that its end is not older
    if (known !== null && known.delivered.stream_seq > state.last_seq) {
      await manager.consumers.delete(name, SHARED_CONSUMER);
      known = null;
    }
    // The daemon that created it chose its start. `ack_wait` may change.
    if (known === null) {
      const from = { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: behind + 1 };
      await manager.consumers.add(name, { ...config, ...from });
      return true;
    }
    if (known.config.ack_wait !== config.ack_wait || known.config.description !== config.description)
      await manager.consumers.update(name, SHARED_CONSUMER, config);
  } catch (error) {
    const isThere = await manager.consumers.info(name, SHARED_CONSUMER).catch(() => null);
    if (isThere === null) throw brokerError(error, `read stream ${name}`);
  }
  return false;
}

/** The posts that no daemon has acknowledged. */
export async function sharedLag({ manager, subjects }: IngressSources): Promise<IngressLag> {
  const name = subjects.ingressStream;
  const { num_pending, num_ack_pending, ack_floor } = await manager.consumers.info(name, SHARED_CONSUMER);
  const messages = num_pending + num_ack_pending;
  const time = messages === 0 ? null : await timeOf(manager, name, ack_floor.stream_seq + 1);
  return { messages, oldestTakenAt: time === null ? null : Number(time / 1_000_000n) };
}
