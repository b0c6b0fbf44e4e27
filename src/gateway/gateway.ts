import { timingSafeEqual } from 'node:crypto';
import { type ServerType, serve } from '@hono/node-server';
import { Hono } from 'hono';
import { messageOf, ParleyError } from '../kernel/index.ts';

/**
 * The HTTP server.
 *
 * H1 Loopback needs no token; any other address refuses to start without one.
 * H2 Tokens are compared in constant time.
 */

export interface GatewayOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Asked of every request but health, if set. */
  readonly token: string | null;
  /** The daemon takes posts. */
  readonly isReady: () => boolean;
  readonly version: string;
}

export interface Gateway {
  readonly url: string;
  close(): Promise<void>;
}

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);

export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { host, port, token } = options;
  if (!LOOPBACK.has(host) && !token) {
    throw new ParleyError('HTTP_TOKEN_MISSING', `refusing to serve HTTP on ${host} without a token`, {
      hint: 'set PARLEY_HTTP_TOKEN, or listen on 127.0.0.1',
    }); // H1
  }
  const server = await listen(application(options), host, port);
  const address = server.address();
  const boundPort = typeof address === 'object' && address ? address.port : port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${boundPort}`,
    close: () => close(server),
  };
}

function application({ token, isReady, version }: GatewayOptions): Hono {
  const app = new Hono();
  app.get('/healthz', (context) => context.json({ status: 'ok', version }));
  app.get('/readyz', (context) =>
    isReady() ? context.json({ status: 'ready' }) : context.json({ status: 'starting' }, 503),
  );
  app.use('*', async (context, next) => {
    if (token && !sameToken(context.req.header('authorization'), token)) {
      return problem(401, 'Unauthorized', 'send the header Authorization: Bearer <token>');
    }
    return next();
  });
  app.notFound((context) => problem(404, 'Not Found', `there is nothing at ${context.req.path}`));
  return app;
}

/** RFC 9457. */
function problem(status: number, title: string, detail: string): Response {
  return new Response(JSON.stringify({ type: 'about:blank', title, status, detail }), {
    status,
    headers: { 'content-type': 'application/problem+json' },
  });
}

function sameToken(header: string | undefined, token: string): boolean {
  const given = Buffer.from(header ?? '');
  const wanted = Buffer.from(`Bearer ${token}`);
  return given.length === wanted.length && timingSafeEqual(given, wanted); // H2
}

function listen(app: Hono, hostname: string, port: number): Promise<ServerType> {
  return new Promise((resolve, reject) => {
    const server = serve({ fetch: app.fetch, hostname, port }, () => resolve(server));
    server.once('error', (error) => reject(cannotListen(error, hostname, port)));
  });
}

function cannotListen(error: Error, host: string, port: number): ParleyError {
  const taken = 'code' in error && error.code === 'EADDRINUSE';
  const why = taken ? 'another program listens there' : messageOf(error);
  return new ParleyError(
    taken ? 'HTTP_PORT_IN_USE' : 'HTTP_UNAVAILABLE',
    `cannot serve HTTP on ${host}:${port}: ${why}`,
    {
      hint: 'choose another with --http HOST:PORT (port 0: any free one), or --http off',
      cause: error,
    },
  );
}

function close(server: ServerType): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    if ('closeAllConnections' in server) server.closeAllConnections();
  });
}
