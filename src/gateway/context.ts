import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono } from 'hono';
import type { Identity } from './guard/access.ts';
import type { GatewayPort, Wire } from './port.ts';

/** Dependencies of every route. */
export interface RouteContext {
  /** For this request (SEATS-2); without one, for requests that many callers share. Throws `NOT_READY` while the daemon starts or stops. */
  daemon(request?: Request): GatewayPort;
  readonly wire: Wire;
  /** Limit of a request's body, as sent and as decoded. */
  readonly maxBodyBytes: number;
  /** The same, where a client sends a whole history. */
  readonly maxHistoryBytes: number;
  /** Interval of heartbeats on idle event streams. */
  readonly heartbeatMs: number;
  readonly version: string;
  readonly newId: () => string;
  /** Called with bugs; refusals are not reported. */
  readonly onFault: (error: unknown, path: string) => void;
  /** Aborted when the daemon stops: ends all readers. */
  readonly closing: AbortSignal;
}

/** Set by the guard for the handlers. */
interface Env {
  Variables: { identity: Identity };
  Bindings: HttpBindings;
}

export type Application = Hono<Env>;
export type Request = Context<Env>;
