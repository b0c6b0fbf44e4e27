import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono } from 'hono';
import type { Identity } from './guard/access.ts';
import type { GatewayPort, Wire } from './port.ts';

/** What every door is given. */
export interface RouteContext {
  /** Throws `NOT_READY` while nothing can be asked. */
  door(): GatewayPort;
  readonly wire: Wire;
  /** Of a request's body, as sent and as decoded. */
  readonly maxBodyBytes: number;
  readonly version: string;
  readonly newId: () => string;
  /** Called with bugs; refusals are not reported. */
  readonly onFault: (error: unknown, path: string) => void;
  /** Aborted when the daemon stops: whoever still reads is let go. */
  readonly closing: AbortSignal;
}

/** What the guard leaves for the handlers. */
interface Env {
  Variables: { identity: Identity };
  Bindings: HttpBindings;
}

export type Application = Hono<Env>;
export type Request = Context<Env>;
