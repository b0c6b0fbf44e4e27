import type { ApiAnswer, ApiRequest, LiveChunk } from '../bus/port.ts';
import type { Entry } from '../conversation/index.ts';
import type { Refusal } from '../kernel/index.ts';

/**
 * What the doors need of the daemon behind them. They hold no state of their own: whatever is asked goes the way that
 * a request on the bus goes, and whatever is shown was durable first.
 */
export interface GatewayPort {
  /** One verb of the request API. Never rejects for a refusal. */
  request(request: ApiRequest): Promise<ApiAnswer>;
  /** Calls back at once, in order, for everything that is published of this conversation from now on. */
  subscribe(conversation: string, onArrival: (arrival: Arrival) => void): () => void;
  measure(): Promise<Measurements>;
  /** False while the daemon cannot reach NATS: no post is accepted. */
  readonly isConnected: boolean;
}

export type Arrival =
  | { readonly kind: 'entries'; readonly entries: readonly Entry[] }
  | { readonly kind: 'live'; readonly agent: string; readonly chunk: LiveChunk };

/** How requests are written down; the same on every door and on the bus. */
export interface Wire {
  decode(bytes: Uint8Array): { ok: true; body: unknown } | { ok: false; refusal: Refusal };
  /** The HTTP-like number of a refusal's code. */
  statusOf(code: string): number;
}

/** One measured quantity, as Prometheus names it. */
export interface Measurement {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge';
  readonly samples: readonly {
    readonly labels: Readonly<Record<string, string>>;
    readonly value: number;
  }[];
}
export type Measurements = readonly Measurement[];
