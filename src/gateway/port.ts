import type { Arrival as FeedArrival } from '../bus/follower.ts';
import type { ApiAnswer, ApiRequest } from '../bus/port.ts';
import type { FilePart } from '../conversation/index.ts';
import type { Refusal } from '../kernel/index.ts';
import type { FetchOptions } from './fetch.ts';
import type { Token } from './guard/access.ts';

/**
 * What the routes need of the daemon. Routes keep no state: requests take the same path as on the bus, and only durable
 * entries are shown.
 */
export interface GatewayPort {
  /** Calls one verb of the request API. A refusal is a value. */
  request(request: ApiRequest): Promise<ApiAnswer>;
  /** Stores a file. Throws the refusal; nothing of it is kept then. */
  keepFile(
    content: AsyncIterable<Uint8Array>,
    about: { readonly name?: string | undefined; readonly publisher: string },
    expected: { readonly sha256?: string | undefined; readonly size?: number | undefined },
  ): Promise<FilePart>;
  /** A file that the log of this conversation names. Throws `NOT_FOUND`. */
  findFile(conversation: string, sha256: string): Promise<FoundFile>;
  /** Calls back synchronously, in order, for everything published of this conversation from now on. */
  subscribe(conversation: string, onArrival: (arrival: Arrival) => void): () => void;
  /** The live text of messages that are being written, without what `subscribe` gives from now on. */
  liveSoFar(conversation: string): readonly Arrival[];
  measure(): Promise<Measurements>;
  /** False while NATS is unreachable: no post is accepted. */
  readonly isConnected: boolean;
  /** False while logs cannot be written, for example on a full disk: no post becomes durable. */
  isWritable(): Promise<boolean>;
}

export interface FoundFile {
  readonly mediaType: string;
  readonly size: number;
  /** Null: it was erased meanwhile. */
  read(): Promise<AsyncIterable<Uint8Array> | null>;
}

/** The daemon's own feed is never interrupted. */
export type Arrival = Exclude<FeedArrival, { kind: 'reconnected' }>;

/** The encoding of requests, the same for all routes and the bus. */
export interface Wire {
  decode(bytes: Uint8Array): { ok: true; body: unknown } | { ok: false; refusal: Refusal };
  /** The HTTP status of a refusal's code. */
  statusOf(code: string): number;
}

/** A metric in the terms of Prometheus. */
export interface Measurement {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly samples: readonly {
    /** The values of a histogram have `_bucket`, `_sum` or `_count`. */
    readonly suffix?: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly value: number;
  }[];
}
export type Measurements = readonly Measurement[];

/** The names and origins of this server. */
export interface KnownHosts {
  /** Names beside `localhost` and the one that is listened on. */
  readonly hosts: readonly string[];
  /** As `https://console.example.org`. */
  readonly origins: readonly string[];
  /** Public URL without a trailing slash; null: use the checked `Host`. */
  readonly publicUrl: string | null;
}

export interface GatewayOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** If there are any, every request except health needs one. */
  readonly tokens: readonly Token[];
  readonly known: KnownHosts;
  /** Limit of a request's body, as sent and as decoded. */
  readonly maxBodyBytes: number;
  /** The same, where a client sends a whole history, or files in base64. */
  readonly maxHistoryBytes: number;
  /** Limit of one file that is fetched. */
  readonly maxFileBytes: number;
  /** Where files are fetched that clients name by URL. */
  readonly fetch: Pick<FetchOptions, 'hosts' | 'network'>;
  /** Per caller. */
  readonly requestsPerSecond: number;
  /** Maximum of open event streams and waiting requests: in all, and per caller. */
  readonly readers: number;
  readonly readersPerCaller: number;
  /** Interval of heartbeats on idle event streams, and of the checks of GATEWAY-4. */
  readonly heartbeatMs: number;
  /** Folder of the console's built files. */
  readonly consoleFolder: string;
  readonly wire: Wire;
  readonly version: string;
  /** Called with bugs; refusals are not reported. */
  readonly onFault: (error: unknown, path: string) => void;
}
