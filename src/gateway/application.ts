import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { matchedRoutes } from 'hono/route';
import { monotonicClock, ParleyError, type Refusal, refusal } from '../kernel/index.ts';
import { addA2aDoors } from './a2a/doors.ts';
import { addAgUiDoors } from './ag-ui/doors.ts';
import { addConsoleDoors } from './console.ts';
import type { Application, DoorContext, Request } from './context.ts';
import { addEventDoors } from './events/doors.ts';
import { type Identity, identify, requireRole, type Token } from './guard/access.ts';
import { checkHost, checkOrigin, type KnownHosts } from './guard/hosts.ts';
import { createRateLimit } from './guard/rate.ts';
import { roleOf } from './guard/roles.ts';
import { addSeats } from './guard/seats.ts';
import { addMcpDoors } from './mcp/doors.ts';
import { addMetricsDoor } from './metrics.ts';
import { addOpenAiDoors, openAiError } from './openai/doors.ts';
import { httpStatus, problem } from './problem.ts';
import { addRestDoors } from './rest/doors.ts';

/**
 * The doors in order: health and the console's files, then the guard, then everything else.
 *
 * Behind the guard nothing leaves that a page could be made of: the headers forbid it to load or to be framed. No cookie
 * is read or set anywhere, so a browser brings no rights of its own.
 */

export interface ApplicationOptions extends DoorContext {
  readonly tokens: readonly Token[];
  readonly known: KnownHosts;
  readonly maxBodyBytes: number;
  readonly requestsPerSecond: number;
  readonly readers: number;
  readonly readersPerCaller: number;
  readonly heartbeatMs: number;
  /** Where the console's built files are. */
  readonly consoleFolder: string;
  readonly isReady: () => boolean;
  /** Told of bugs; what was refused is no news. */
  readonly onFault: (error: unknown, path: string) => void;
}

const HEADERS = {
  'content-security-policy':
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
};
/** As the router writes what `use('*')` is for. */
const EVERYTHING = '/*';
const ALLOWED_HEADERS =
  'authorization, content-type, last-event-id, x-parley-conversation, a2a-version, mcp-protocol-version';

export function createApplication(options: ApplicationOptions): Application {
  const app: Application = new Hono();
  app.onError((error, context) => failure(error, context, options));
  app.notFound((context) =>
    refuse(context.req.path, 404, refusal('NOT_FOUND', `there is nothing at ${context.req.path}`)),
  );
  app.use('*', async (context, next) => {
    await next();
    for (const [name, value] of Object.entries(HEADERS)) {
      if (!context.res.headers.has(name)) context.res.headers.set(name, value);
    }
  });
  app.get('/healthz', (context) => context.json({ status: 'ok', version: options.version }));
  app.get('/readyz', (context) =>
    options.isReady() ? context.json({ status: 'ready' }) : context.json({ status: 'starting' }, 503),
  );
  addConsoleDoors(app, options);
  addGuard(app, options);
  addRestDoors(app, options);
  addEventDoors(app, options, options.heartbeatMs);
  addMetricsDoor(app, options);
  addOpenAiDoors(app, options, options.heartbeatMs);
  addAgUiDoors(app, options, options.heartbeatMs);
  addA2aDoors(app, { ...options, needsToken: options.tokens.length > 0 });
  addMcpDoors(app, options, options);
  return app;
}

function addGuard(app: Application, options: ApplicationOptions): void {
  const { tokens, known, maxBodyBytes, requestsPerSecond } = options;
  const rate = createRateLimit(requestsPerSecond, monotonicClock);
  app.use('*', async (context, next) => {
    const host = context.req.header('host');
    const origin = context.req.header('origin');
    checkHost(host, known);
    checkOrigin(origin, host, known);
    if (origin !== undefined && known.origins.includes(origin)) {
      allowOrigin(context, origin);
      if (context.req.method === 'OPTIONS') return context.body(null, 204);
    }
    if (!rate.take(callerOf(context))) {
      throw new ParleyError('RATE_LIMITED', 'too many requests', {
        hint: 'wait a second, or raise http.requestsPerSecond',
      });
    }
    const identity = identify(context.req.header('authorization'), tokens);
    context.set('identity', identity);
    requireRoles(context, identity);
    return next();
  });
  addSeats(app, options); // reading a body takes time, too
  const refuseBody = () => {
    throw new ParleyError('TOO_LARGE', `a body may have ${maxBodyBytes} bytes`, {
      hint: 'send less at once',
    });
  };
  app.use('*', bodyLimit({ maxSize: maxBodyBytes, onError: refuseBody }));
}

/** Of every route that may answer this: what is there for all of them, such as this guard, needs nothing. */
function requireRoles(context: Request, identity: Identity): void {
  for (const route of matchedRoutes(context)) {
    const role = route.path === EVERYTHING ? null : roleOf(route);
    if (role !== null) requireRole(identity, role);
  }
}

function allowOrigin(context: Request, origin: string): void {
  context.header('access-control-allow-origin', origin);
  context.header('access-control-allow-headers', ALLOWED_HEADERS);
  context.header('access-control-allow-methods', 'GET, POST, DELETE');
  context.header('vary', 'origin');
}

/** The address it comes from; the token is not looked at, so guessing tokens is slowed down too. */
function callerOf(context: Request): string {
  return context.env?.incoming?.socket.remoteAddress ?? '';
}

function failure(error: Error, context: Request, options: ApplicationOptions): Response {
  if (error instanceof ParleyError) {
    const { code, message, hint } = error;
    return refuse(context.req.path, httpStatus(code, options.wire.statusOf), refusal(code, message, hint));
  }
  options.onFault(error, context.req.path);
  const fault = refusal('INTERNAL', 'the daemon failed at this request', 'its log says why');
  return refuse(context.req.path, 500, fault);
}

/** In the form that who asks there understands. */
function refuse(path: string, status: number, refused: Refusal): Response {
  return path.startsWith('/v1/') ? openAiError(status, refused) : problem(status, refused);
}
