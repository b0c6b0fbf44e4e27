import type { JetStreamManager, NatsConnection, StreamInfo } from 'nats';
import { ParleyError } from '../../kernel/index.ts';
import type {
  ApiHandler,
  Bus,
  BusLog,
  DeadLetters,
  Eraser,
  IngressLag,
  IngressOptions,
  OnLive,
  Sharing,
  TurnLine,
} from '../port.ts';
import type { StreamPosition } from '../post.ts';
import { ANY, type Subjects } from '../subjects.ts';
import { NatsSharing } from './cluster/sharing.ts';
import { type ConnectionWatch, closeConnection, watchConnection } from './connection/connection.ts';
import { createFeeds } from './feeds.ts';
import { Capacity, capacityIn } from './ingress/capacity.ts';
import { createDeadLetters, DeadLetterWriter } from './ingress/dead-letters.ts';
import { Ingress } from './ingress/ingress.ts';
import { beginReading, ingressStart, unsettledUntil } from './ingress/settled-keeper.ts';
import { type IngressSources, lastSequence } from './ingress/stored-posts.ts';
import { type RunningService, type StoreKind, startService } from './serving/service.ts';
import { isAgentConnected, NatsTurnLine } from './serving/turn-line.ts';
import { brokerError } from './streams/broker-error.ts';
import { NatsEraser } from './streams/eraser.ts';
import { ensureStreams, findStream, jetstreamManager, type StreamOptions } from './streams/streams.ts';

export interface NatsBusOptions extends StreamOptions {
  readonly subjects: Subjects;
  readonly log: BusLog;
  /** For the best-effort feeds, so that a flood of tokens never delays posts, acknowledgements and answers. */
  readonly feedConnection?: NatsConnection;
  /** The daemon's version, shown by `nats micro info`. */
  readonly version?: string;
  /** Where the daemon's logs are; default: its own files. */
  readonly store?: StoreKind;
  /** The byte limit for unprocessed posts; default: 1 GiB, at most a quarter of the account's storage. */
  readonly ingressBytes?: number;
  /** Settled posts that stay in the stream. */
  readonly purgeMargin?: number;
}

const CONNECTION_TIMEOUT_MS = 5_000;
const INGRESS_BYTES = 1024 ** 3;
const PURGE_MARGIN = 2_000;
const DEFAULT_MAX_PAYLOAD = 1024 ** 2;
/** Bytes for the answer around a dead letter, so that a client can get each letter unchanged. */
const LETTER_ROOM = 2_048;

/** The bus over NATS (contract: `port.ts`). Creates its streams and takes ownership of the connections. */
export async function createNatsBus(connection: NatsConnection, options: NatsBusOptions): Promise<Bus> {
  try {
    const manager = await jetstreamManager(connection);
    await ensureStreams(manager, options.subjects, options);
    const room = await capacityIn(manager, options.ingressBytes ?? INGRESS_BYTES, options.log);
    return new NatsBus(connection, manager, { ...options, ingressBytes: room });
  } catch (error) {
    throw brokerError(error, 'use JetStream');
  }
}

class NatsBus implements Bus {
  readonly url: string;
  readonly deadLetters: DeadLetters;
  readonly eraser: Eraser;
  readonly publishEntries: Bus['publishEntries'];
  readonly publishLive: Bus['publishLive'];
  readonly publishAudit: Bus['publishAudit'];
  readonly publishDead: Bus['publishDead'];
  readonly publishRefusedRuns: Bus['publishRefusedRuns'];
  readonly #connection: NatsConnection;
  readonly #manager: JetStreamManager;
  readonly #watch: ConnectionWatch;
  readonly #options: NatsBusOptions;
  readonly #closing = new AbortController();
  readonly #flushFeeds: () => void;
  #service: Promise<RunningService> | null = null;
  #ingress: Ingress | null = null;
  #sharing: NatsSharing | null = null;
  #closed: Promise<void> | null = null;

  constructor(connection: NatsConnection, manager: JetStreamManager, options: NatsBusOptions) {
    this.#connection = connection;
    this.#manager = manager;
    this.#options = options;
    const { subjects, log } = options;
    this.deadLetters = createDeadLetters(manager, subjects);
    this.eraser = new NatsEraser(manager, subjects);
    this.url = `nats://${connection.getServer()}`;
    const feeds = createFeeds(options.feedConnection ?? connection, subjects, () => this.maxPayload);
    this.publishEntries = feeds.publishEntries;
    this.publishLive = feeds.publishLive;
    this.publishAudit = feeds.publishAudit;
    this.#flushFeeds = feeds.flush;
    this.#watch = watchConnection(connection, log, () => {
      this.#ingress?.interrupt('the connection was lost');
      this.#sharing?.ingress?.interrupt('the connection was lost');
      this.#sharing?.peers.lost();
    });
    const letters = new DeadLetterWriter({
      ...{ connection, manager, subjects, log, watch: this.#watch, closing: this.#closing.signal },
      maxPayload: () => this.maxPayload - LETTER_ROOM,
      ensureStreams: () => this.#ensureStreams(),
    });
    this.publishDead = letters.publishDead;
    this.publishRefusedRuns = letters.publishRefusedRuns;
  }

  get isConnected(): boolean {
    return this.#watch.isConnected;
  }

  get maxPayload(): number {
    return this.#connection.info?.max_payload ?? DEFAULT_MAX_PAYLOAD;
  }

  ingressStart: Bus['ingressStart'] = (store) => ingressStart(this.#ingressSources(), store);

  unsettledUntil: Bus['unsettledUntil'] = (store, until) =>
    unsettledUntil(this.#ingressSources(), store, until);

  async startIngress(ingress: IngressOptions): Promise<void> {
    this.#refuseWhenClosed();
    const sources = this.#ingressSources();
    const beginning = await beginReading(sources, ingress);
    this.#refuseWhenClosed();
    if (this.#ingress) throw new ParleyError('INGRESS_RUNNING', 'the ingress stream is already being read');
    this.#ingress = new Ingress(sources, ingress, beginning);
    await beginning.report(ingress.onPosition);
  }

  share(daemon: string): Sharing {
    this.#refuseWhenClosed();
    this.#sharing ??= new NatsSharing(() => this.#ingressSources(), daemon);
    return this.#sharing;
  }

  #ingressSources(): IngressSources {
    const {
      subjects,
      log,
      ingressBytes: maxBytes = INGRESS_BYTES,
      purgeMargin: margin = PURGE_MARGIN,
    } = this.#options;
    const [connection, manager, watch] = [this.#connection, this.#manager, this.#watch];
    return {
      connection,
      manager,
      subjects,
      log,
      watch,
      capacity: new Capacity({ manager, stream: subjects.ingressStream, log, maxBytes, margin }),
      stream: () => this.#ingressStream(),
      ensureStreams: () => this.#ensureStreams(),
    };
  }

  async stopIngress(): Promise<void> {
    const ingress = this.#ingress;
    await ingress?.stop();
    if (this.#ingress === ingress) this.#ingress = null;
  }

  async ingressLag(): Promise<IngressLag | null> {
    return (await this.#ingress?.lag()) ?? (await this.#sharing?.ingress?.lag()) ?? null;
  }

  async lastPost(conversation: string): Promise<StreamPosition> {
    const { subjects } = this.#options;
    const filter = subjects.in(ANY, conversation);
    return this.#position(() => lastSequence(this.#manager, subjects.ingressStream, filter));
  }

  async ingressEnd(): Promise<StreamPosition> {
    return this.#position(({ state }) => state.last_seq);
  }

  async #position(sequenceIn: (stream: StreamInfo) => number | Promise<number>): Promise<StreamPosition> {
    try {
      await this.#watch.connected(CONNECTION_TIMEOUT_MS, this.#closing.signal);
      const stream = await this.#ingressStream();
      return { stream: stream.created, sequence: await sequenceIn(stream) };
    } catch (error) {
      throw brokerError(error, `read stream ${this.#options.subjects.ingressStream}`);
    }
  }

  async register(): Promise<void> {
    await (await this.#theService()).register();
  }

  async serve(endpoints: readonly string[], handler: ApiHandler): Promise<void> {
    await (await this.#theService()).listen(endpoints, handler);
  }

  #theService(): Promise<RunningService> {
    this.#refuseWhenClosed();
    const { subjects, log, version = '0.0.0', store = 'file' } = this.#options;
    const [connection, maxPayload] = [this.#connection, () => this.maxPayload];
    this.#service ??= startService({ connection, subjects, log, version, maxPayload, store });
    return this.#service;
  }

  openTurn(agent: string, onLive?: OnLive): TurnLine {
    const [connection, watch, { subjects }] = [this.#connection, this.#watch, this.#options];
    const [maxPayload, closing] = [() => this.maxPayload, this.#closing.signal];
    return new NatsTurnLine({ connection, subjects, watch, maxPayload, agent, onLive, closing });
  }

  isAgentConnected(agent: string): Promise<boolean> {
    return isAgentConnected(this.#connection, this.#options.subjects.turn(agent));
  }

  close(): Promise<void> {
    this.#closed ??= this.#end();
    return this.#closed;
  }

  async #end(): Promise<void> {
    this.#closing.abort();
    this.#flushFeeds();
    const { feedConnection } = this.#options;
    await Promise.all([
      closeConnection(this.#connection, async () => {
        await Promise.all([
          this.stopIngress(),
          this.#sharing?.ingress?.stop(),
          this.#service?.then((service) => service.stop()),
        ]);
      }),
      feedConnection && closeConnection(feedConnection),
    ]);
  }

  async #ingressStream(): Promise<StreamInfo> {
    const { ingressStream } = this.#options.subjects;
    return (await findStream(this.#manager, ingressStream)) ?? (await this.#ensureStreams());
  }

  #ensureStreams(): Promise<StreamInfo> {
    return ensureStreams(this.#manager, this.#options.subjects, this.#options);
  }

  #refuseWhenClosed(): void {
    if (this.#closed)
      throw new ParleyError('BUS_CLOSED', 'the bus is closed', { hint: 'start the daemon again' });
  }
}
