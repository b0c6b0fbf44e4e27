import type { Arrival as FeedArrival } from '../bus/follower.ts';
import type { ApiAnswer, ApiRequest } from '../bus/port.ts';
import type { Refusal } from '../kernel/index.ts';

/**
 * What the routes need of the daemon. Routes keep no state: requests take the same path as on the bus, and only durable
 * entries are shown.
 */
export interface GatewayPort {
  /** Calls one verb of the request API. A refusal is a value. */
  request(request: ApiRequest): Promise<ApiAnswer>;
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
