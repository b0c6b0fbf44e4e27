import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono } from 'hono';
import type { Identity } from './guard/access.ts';
import type { GatewayOptions, GatewayPort } from './port.ts';

/** Dependencies of every route. */
export interface RouteContext extends Omit<GatewayOptions, 'host' | 'port'> {
  /** For this request (SEATS-2); without one, for requests that many callers share. Throws `NOT_READY` while the daemon starts or stops. */
  daemon(request?: Request): GatewayPort;
  readonly newId: () => string;
  /** Aborted when the daemon stops: ends all readers. */
  readonly closing: AbortSignal;
}

/** Set by the guard, and then by the application, for the handlers. */
interface Env {
  Variables: { identity: Identity; routes: RouteContext };
  Bindings: HttpBindings;
}

export type Application = Hono<Env>;
export type Request = Context<Env>;

/** The daemon for this request (SEATS-2). */
export const daemonOf = (context: Request): GatewayPort => context.var.routes.daemon(context);

/** Reports bugs in answering this request. */
export const faultsOf =
  ({ req, var: { routes } }: Request) =>
  (error: unknown): void =>
    routes.onFault(error, req.path);
