import { ErrorCode, type Msg, type NatsConnection, NatsError, type Subscription } from 'nats';
import type { Entry, LiveChunk } from '../../../conversation/index.ts';
import { jsonBytes, messageOf, sleep } from '../../../kernel/index.ts';
import type {
  BusLog,
  Feed,
  Heard,
  IngressLag,
  Peers,
  SharedIngress,
  SharedIngressOptions,
  Sharing,
} from '../../port.ts';
import type { Delivery, StreamPosition } from '../../post.ts';
import { markOf } from '../../settled.ts';
import { ANY, EVERY_DAEMON, type Subjects } from '../../subjects.ts';
import { Ingress } from '../ingress/ingress.ts';
import { beginReading, SettledKeeper } from '../ingress/settled-keeper.ts';
import { type IngressSources, readDelivery, timeOf } from '../ingress/stored-posts.ts';

/** Daemons set it on appends; messages without it are not from a daemon. */
const APPEND_HEADER = 'Parley-Append';

/** One daemon among others on the same server and prefix. */
export class NatsSharing implements Sharing {
  readonly peers: NatsPeers;
  ingress: SharedReader | null = null;
  readonly #sources: () => IngressSources;

  /** `sources`: new ones for each reader. */
  constructor(sources: () => IngressSources, daemon: string) {
    this.#sources = sources;
    const { connection, subjects, log } = sources();
    this.peers = new NatsPeers(connection, subjects, log, daemon);
  }

  async startIngress(options: SharedIngressOptions): Promise<SharedIngress> {
    this.ingress = new SharedReader(this.#sources, options);
    await this.ingress.start();
    return this.ingress;
  }

  follow(conversation: string, feed: Feed): { readonly ready: Promise<void>; stop(): void } {
    const { connection, subjects } = this.#sources();
    const subscribe = (subject: string, pass: (message: Msg) => void): Subscription =>
      connection.subscribe(subject, {
        callback: (error, message) => {
          try {
            if (!error) pass(message);
          } catch {
            // Not published by a daemon.
          }
        },
      });
    const following = [
      subscribe(subjects.log(conversation), (message) => {
        if (message.headers?.has(APPEND_HEADER)) feed.entries(message.json<{ entries: Entry[] }>().entries);
      }),
      subscribe(subjects.live(conversation, ANY), (message) => {
        feed.live(message.subject.slice(message.subject.lastIndexOf('.') + 1), message.json<LiveChunk>());
      }),
    ];
    return {
      ready: connection.flush().catch(() => undefined), // a new connection subscribes again by itself
      stop() {
        if (!connection.isClosed()) for (const one of following) one.unsubscribe();
      },
    };
  }
}

/**
 * Messages between daemons over core NATS: `parley.control.<daemon>.<verb>`.
 *
 * PEERS-1 Messages that are not JSON are ignored: other clients may publish on these subjects.
 * PEERS-2 When a handler fails, no answer is sent and the process continues; the asking daemon sees a timeout.
 * PEERS-3 When the connection is lost, pending requests end at once, because no answer can arrive.
 * PEERS-4 What exceeds a message is not sent. Instead of such an answer, its size is: `{tooLarge}`.
 */
class NatsPeers implements Peers {
  readonly #connection: NatsConnection;
  readonly #subjects: Subjects;
  readonly #log: BusLog;
  readonly #self: string;
  #lost: () => void = () => undefined;
  /** Ends the pending requests (PEERS-3). */
  readonly #asking = new Set<() => void>();

  constructor(connection: NatsConnection, subjects: Subjects, log: BusLog, self: string) {
    this.#connection = connection;
    this.#subjects = subjects;
    this.#log = log;
    this.#self = self;
  }

  async ask(daemon: string, verb: string, body: unknown, timeoutMs: number): Promise<Heard> {
    const request = encode(body);
    if (request.length > this.#room) return tooLarge('request', request.length, this.#room);
    let giveUp = () => {};
    const lost = new Promise<null>((resolve) => {
      giveUp = () => resolve(null);
    });
    this.#asking.add(giveUp);
    try {
      const subject = this.#subjects.control(daemon, verb);
      const asked = this.#connection.request(subject, request, { timeout: timeoutMs });
      const answer = await Promise.race([asked, lost]);
      if (!answer) return { kind: 'silent' };
      const found = answer.json<{ readonly tooLarge?: number } | null>();
      const bytes = found?.tooLarge;
      return bytes === undefined ? { kind: 'answered', body: found } : tooLarge('answer', bytes, this.#room);
    } catch (error) {
      const isGone = error instanceof NatsError && error.code === ErrorCode.NoResponders;
      return { kind: isGone ? 'no-responder' : 'silent' };
    } finally {
      this.#asking.delete(giveUp);
    }
  }

  tell(daemon: string, verb: string, body: unknown): void {
    try {
      this.#connection.publish(this.#subjects.control(daemon, verb), encode(body));
    } catch {
      // Closed or draining: messages may be lost.
    }
  }

  tellAll(verb: string, body: unknown): void {
    this.tell(EVERY_DAEMON, verb, body);
  }

  async listen(handler: (verb: string, body: unknown) => Promise<unknown>): Promise<void> {
    for (const to of [this.#self, EVERY_DAEMON]) {
      this.#connection.subscribe(this.#subjects.control(to, '*'), {
        callback: (error, message) => {
          if (!error) void this.#answer(handler, message);
        },
      });
    }
    await this.#connection.flush(); // the server has the subscriptions before this daemon announces itself
  }

  get #room(): number {
    return this.#connection.info?.max_payload ?? Number.POSITIVE_INFINITY;
  }

  onLost(listener: () => void): void {
    this.#lost = listener;
  }

  lost(): void {
    this.#lost();
    for (const giveUp of this.#asking) giveUp();
  }

  async #answer(handler: (verb: string, body: unknown) => Promise<unknown>, message: Msg): Promise<void> {
    const verb = message.subject.slice(message.subject.lastIndexOf('.') + 1);
    try {
      const answer = await handler(verb, message.json());
      if (answer === undefined || !message.reply) return;
      const body = encode(answer);
      message.respond(body.length > this.#room ? encode({ tooLarge: body.length }) : body);
    } catch (error) {
      this.#log.warn({ verb, reason: messageOf(error) }, 'a request of another daemon failed');
    }
  }
}

function tooLarge(what: string, bytes: number, room: number): Heard {
  return { kind: 'too-large', reason: `the ${what} has ${bytes} bytes; the broker carries ${room}` };
}

const encode = (body: unknown) => jsonBytes(body ?? {});

const CHECK_MS = 1_000;

/**
 * One of the daemons that share their logs reads the ingress stream, with the reader of a daemon that is alone.
 *
 * SHARED-READER-1 The reader is the daemon that the record of settled posts names (KEEPER-6). The others read the record at
 *    intervals, and claim it when the reader released it, or does not run any more as far as they know.
 * SHARED-READER-2 Two daemons may read for a moment: a frozen one resumes. Both hand over the same posts, whose ids suppress
 *    repetitions. The one that lost the claim stops at its next write, its next check, or before its next dead letter.
 * SHARED-READER-3 A daemon that does not read learns from the record which posts are settled. After an outage of its connection,
 *    or a record that went back, the stream may have lost its newest posts (`onBegin`).
 */
class SharedReader {
  readonly #sources: () => IngressSources;
  readonly #options: SharedIngressOptions;
  readonly #stopping = new AbortController();
  #ingress: Ingress | null = null;
  #keeper: SettledKeeper | null = null;
  /** As the record says, while another daemon reads. */
  #floor: StreamPosition | null;
  #isReplay: boolean;
  #running: Promise<void> = Promise.resolve();
  /** `onBegin` is due before this daemon decides on a post (SHARED-READER-3). */
  #isStale = false;

  constructor(sources: () => IngressSources, options: SharedIngressOptions) {
    this.#sources = sources;
    this.#options = options;
    this.#floor = options.after;
    this.#isReplay = options.isReplay ?? false;
  }

  /** Resolves when this daemon reads, or another one does. */
  async start(): Promise<void> {
    await this.#options.onBegin?.();
    await this.#claimIfFree();
    this.#running = this.#run();
  }

  interrupt(reason: string): void {
    this.#isStale = true;
    this.#ingress?.interrupt(reason);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#ingress?.stop();
  }

  /** Resolves when this daemon knows the deletions as they are after an outage. */
  async ready(): Promise<void> {
    if (!this.#isStale) return;
    await this.#options.onBegin?.();
    this.#isStale = false;
  }

  /** Whether this daemon still reads, according to an answer of the server that is not old. Rejects without an answer. */
  async holdsClaim(): Promise<boolean> {
    for (;;) {
      const keeper = this.#keeper;
      const askedAt = performance.now();
      await keeper?.check();
      if (keeper === null || keeper !== this.#keeper) return false;
      if (performance.now() - askedAt < this.#options.failureTimeoutMs / 2) return true;
    }
  }

  /** Null: it is not known. */
  async lag(): Promise<IngressLag | null> {
    if (this.#ingress) return this.#ingress.lag();
    const { manager, subjects, stream } = this.#sources();
    const { created, state } = await stream();
    if (this.#floor && this.#floor.stream !== created) return null;
    const oldest = Math.max(state.first_seq, (this.#floor?.sequence ?? 0) + 1);
    const messages = Math.max(0, state.last_seq - oldest + 1);
    const time = messages === 0 ? null : await timeOf({ manager, subjects }, oldest);
    return { messages, oldestTakenAt: time === null ? null : Number(time / 1_000_000n) };
  }

  /** Null: the stream does not have it. */
  async at(sequence: number): Promise<Delivery | null> {
    const sources = this.#sources();
    const { created } = await sources.stream();
    return readDelivery(sources, created, sequence);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    let isTold = false;
    for (;;) {
      const every = Math.min(CHECK_MS, this.#options.failureTimeoutMs / 4);
      await sleep(every, signal);
      if (signal.aborted) return;
      const { watch, log } = this.#sources();
      if (!(await watch.connected(every, signal))) continue;
      try {
        if (this.#keeper) await this.#keeper.check();
        else await this.#claimIfFree();
        isTold = false;
      } catch (error) {
        const reason = messageOf(error);
        if (!isTold) log.warn({ reason }, 'the claim of the ingress stream could not be read; retrying');
        isTold = true;
      }
    }
  }

  async #claimIfFree(): Promise<void> {
    const { daemon, owner, mayTakeOver, onClaim } = this.#options;
    const sources = this.#sources();
    const keeper = new SettledKeeper(sources, owner, { daemon, onLost: () => this.#lost(keeper) });
    await keeper.read();
    const reader = keeper.reader;
    const { created } = await sources.stream();
    await this.#follow(created, keeper);
    const isFree = reader === null || reader === daemon || (await mayTakeOver(reader));
    if (!isFree || this.#stopping.signal.aborted) return;
    const after = this.#floor;
    const beginning = await beginReading(sources, { owner, after, isReplay: this.#isReplay }, keeper);
    if (keeper.reader !== reader || !(await keeper.claim(created, after))) return; // another one was faster
    onClaim(reader === daemon ? null : reader);
    this.#isReplay = false;
    this.#keeper = keeper;
    const onPosition: SharedIngressOptions['onPosition'] = (settled) => {
      this.#floor = settled;
      if (this.#keeper === keeper) this.#options.onPosition(settled);
    };
    this.#ingress = new Ingress(sources, { ...this.#options, onPosition }, beginning);
    await beginning.report(onPosition);
  }

  async #follow(created: string, { record }: SettledKeeper): Promise<void> {
    this.#options.onIngressStream(created);
    await this.ready();
    if (record?.by.id !== this.#options.owner.id || record.stream !== created) return;
    const floor = { stream: created, sequence: markOf(record.settled) };
    const known = this.#floor?.stream === created ? this.#floor.sequence : 0;
    if (floor.sequence === known) return;
    if (floor.sequence < known) await this.#options.onBegin?.();
    this.#floor = floor;
    if (floor.sequence < known) this.#options.onFloor({ stream: created, sequence: 0 });
    this.#options.onFloor(floor);
  }

  /** SHARED-READER-2 */
  #lost(keeper: SettledKeeper): void {
    if (this.#keeper !== keeper) return;
    const { log } = this.#sources();
    if (!this.#stopping.signal.aborted) log.warn({}, 'another daemon reads the ingress stream by now');
    const ingress = this.#ingress;
    this.#keeper = null;
    this.#ingress = null;
    void ingress?.stop();
  }
}
