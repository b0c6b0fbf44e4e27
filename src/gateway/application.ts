import { Hono, type Next } from 'hono';
import { compress } from 'hono/compress';
import { methodNotAllowed } from 'hono/method-not-allowed';
import { matchedRoutes } from 'hono/route';
import { monotonicClock, type OneTimeCodes, ParleyError, type Refusal, refusal } from '../kernel/index.ts';
import { addA2aRoutes } from './a2a/routes.ts';
import { addAgUiRoutes } from './ag-ui/routes.ts';
import { addConsoleRoutes } from './console.ts';
import type { Application, Request, RouteContext } from './context.ts';
import { addEventRoutes } from './events/routes.ts';
import { type Identity, identify, identityOf, requireRole } from './guard/access.ts';
import { allowOrigins, checkHost, checkOrigin, checkSite } from './guard/hosts.ts';
import { addSeats, createRateLimit, Turns } from './guard/limits.ts';
import { addSessionRoutes, sessionOf, withoutPlace } from './guard/session.ts';
import { addMcpRoutes } from './mcp/routes.ts';
import { addOpenAiRoutes, openAiError } from './openai/routes.ts';
import type { Measurements } from './port.ts';
import { httpStatus, problem, publicErrorOf } from './problem.ts';
import { addExportRoute, addFileRoutes, addRestRoutes } from './rest/handlers.ts';
import { roleOf } from './rest/routes.ts';

/**
 * All routes in order: health and the console's files, then the guard, then everything else.
 *
 * After the guard, headers forbid that an answer is rendered as a page or framed. The one cookie is that of `guard/session.ts`.
 */

export interface ApplicationOptions extends RouteContext {
  readonly codes: OneTimeCodes;
  readonly readiness: () => Promise<'ready' | 'starting' | 'disconnected' | 'unwritable'>;
}

const HEADERS = {
  'content-security-policy':
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
};
/** For every event stream of any route: keeps proxies from buffering or rewriting it. */
const STREAM_HEADERS = {
  'cache-control': 'no-store, no-cache, no-transform',
  'x-accel-buffering': 'no',
};
/** What browsers read over slow lines: the console and its API, except event streams. */
const COMPRESSED = /^\/(?:$|assets\/|api\/)/;
const shrink = compress();
const PATHS_HINT = "docs/guides/http.md lists the paths; the base URL of OpenAI's clients ends in /v1";
/** With `/v1`, and without it, as a client with the wrong base URL asks. */
const OPENAI_PATHS = /^\/(?:v1|chat\/completions|responses|models)(?:\/|$)/;
/** The router's path for `use('*')`. */
const EVERYTHING = '/*';

export function createApplication(options: ApplicationOptions): Application {
  const app: Application = new Hono({ strict: false });
  const { getPath } = app; // as an option, it has no effect beside `strict: false`
  const pathOf = (...request: Parameters<typeof getPath>) => withoutPlace(getPath(...request));
  Object.assign(app, { getPath: pathOf });
  app.onError((error, context) => {
    const shown = publicErrorOf(error, (fault) => options.onFault(fault, context.req.path));
    return refuse(context, httpStatus(shown.code, options.wire.statusOf), shown);
  });
  app.notFound((context) =>
    refuse(context, 404, refusal('NOT_FOUND', `there is nothing at ${context.req.path}`, PATHS_HINT)),
  );
  app.use('*', setHeaders);
  if (options.known.origins.length > 0) app.use('*', allowOrigins(options.known));
  app.use('*', (context, next) => (COMPRESSED.test(context.req.path) ? shrink(context, next) : next()));
  app.get('/healthz', (context) => context.json({ status: 'ok', version: options.version }));
  app.get('/readyz', async (context) => {
    const status = await options.readiness();
    return context.json({ status }, status === 'ready' ? 200 : 503);
  });
  addConsoleRoutes(app, options);
  addGuard(app, options);
  addSessionRoutes(app, options);
  const turns = new Turns();
  const routes: RouteContext = {
    ...options,
    daemon: (request) => (request ? turns.daemonFor(options.daemon(), request) : options.daemon()),
  };
  app.use('*', (context, next) => {
    context.set('routes', routes);
    return next();
  });
  addRestRoutes(app, routes);
  addExportRoute(app, routes);
  addFileRoutes(app, routes);
  addEventRoutes(app, options);
  app.get('/metrics', async (context) => {
    const text = exposition(await options.daemon().measure());
    return context.body(text, 200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
  });
  addOpenAiRoutes(app);
  addAgUiRoutes(app);
  addA2aRoutes(app);
  addMcpRoutes(app, routes);
  return app;
}

/** Set on the answer: headers set by `context.header()` are missing from answers that a route builds itself. */
async function setHeaders(context: Request, next: Next): Promise<void> {
  await next();
  const { headers } = context.res;
  const isStream = headers.get('content-type')?.startsWith('text/event-stream') === true;
  if (isStream) for (const [name, value] of Object.entries(STREAM_HEADERS)) headers.set(name, value);
  for (const [name, value] of Object.entries(HEADERS)) if (!headers.has(name)) headers.set(name, value);
  if (isStream && context.req.method === 'HEAD') await context.res.body?.cancel(); // not sent for HEAD
}

function addGuard(app: Application, options: ApplicationOptions): void {
  const { tokens, known, requestsPerSecond } = options;
  const rate = createRateLimit(requestsPerSecond, monotonicClock);
  app.use('*', async (context, next) => {
    const host = context.req.header('host');
    const origin = context.req.header('origin');
    checkHost(host, known);
    checkOrigin(origin, host, known);
    if (origin === undefined)
      checkSite(context.req.header('sec-fetch-site'), context.req.header('sec-fetch-dest'));
    const identity = isPublic(context) ? null : identifyOf(context, tokens, known.publicUrl);
    const caller = identity !== null && !(identity instanceof ParleyError) ? identity.caller : '';
    if (!rate.take(caller || (context.env?.incoming?.socket.remoteAddress ?? ''))) {
      throw new ParleyError('RATE_LIMITED', 'too many requests', {
        hint: 'wait a second, or raise http.requestsPerSecond',
      });
    }
    if (identity === null) return next();
    if (identity instanceof ParleyError) throw identity;
    const traceparent = context.req.header('traceparent');
    context.set('identity', traceparent === undefined ? identity : { ...identity, traceparent });
    requireRoles(context, identity);
    return next();
  });
  addSeats(app, options); // before the body is read, which takes time
  app.use('*', methodNotAllowed({ app, onMethodNotAllowed: wrongMethod }));
}

/** Clients look for the metadata of OAuth here before they send a token: it is missing, not forbidden. */
const WELL_KNOWN = /^(?:\/mcp)?\/\.well-known\//;

/** Whether every matching route is public. A path without a route is not, except where clients look for metadata. */
function isPublic(context: Request): boolean {
  const routes = matchedRoutes(context).filter(({ path }) => path !== EVERYTHING);
  if (routes.length === 0) return WELL_KNOWN.test(context.req.path);
  return routes.length > 0 && routes.every((route) => roleOf(route) === null);
}

/** Checks the role of every matching route, except middleware such as this guard. */
function requireRoles(context: Request, identity: Identity): void {
  for (const route of matchedRoutes(context)) {
    const role = route.path === EVERYTHING ? null : roleOf(route);
    if (role !== null) requireRole(identity, role);
  }
}

/** The identity for the rate limit: valid tokens count per token, invalid ones per address. */
function identifyOf(
  context: Request,
  tokens: ApplicationOptions['tokens'],
  publicUrl: string | null,
): Identity | ParleyError {
  const authorization = context.req.header('authorization');
  try {
    const session = authorization === undefined ? sessionOf(context, tokens, publicUrl) : undefined;
    return session ? { ...identityOf(session), isSession: true } : identify(authorization, tokens);
  } catch (error) {
    if (error instanceof ParleyError) return error;
    throw error;
  }
}

/** The path exists, but not with this method. */
function wrongMethod(context: Request, methods: readonly string[]): Response {
  const { method, path } = context.req;
  const allow = [...methods, 'OPTIONS'].join(', ');
  if (method === 'OPTIONS') return new Response(null, { status: 204, headers: { allow } });
  const hint = `use ${methods.join(' or ')}`;
  const refused = refuse(
    context,
    405,
    refusal('METHOD_NOT_ALLOWED', `${path} does not take ${method}`, hint),
  );
  refused.headers.set('allow', allow);
  return refused;
}

/** In the error format of the route's protocol. */
function refuse(context: Request, status: number, refused: Refusal): Response {
  const answer = OPENAI_PATHS.test(context.req.path)
    ? openAiError(status, refused)
    : problem(status, refused);
  if (status === 401) answer.headers.set('www-authenticate', 'Bearer');
  void context.res; // once it exists, the router merges it into the answer: what `context.header()` has set is kept
  return answer;
}

/** The text format of Prometheus, version 0.0.4. */
function exposition(measurements: Measurements): string {
  const lines = measurements.flatMap(({ name, help, type, samples }) => [
    `# HELP ${name} ${escaped(help)}`,
    `# TYPE ${name} ${type}`,
    ...samples.map(({ suffix = '', labels, value }) => `${name}${suffix}${labelled(labels)} ${value}`),
  ]);
  return `${lines.join('\n')}\n`;
}

function labelled(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${escaped(value).replaceAll('"', '\\"')}"`,
  );
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}
