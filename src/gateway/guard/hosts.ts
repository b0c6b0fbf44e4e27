import { isIP } from 'node:net';
import type { MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import { ParleyError } from '../../kernel/index.ts';
import type { KnownHosts } from '../port.ts';

/**
 * Protects against pages of other sites that make a browser send requests to this daemon.
 *
 * HOSTS-1 An unknown name in `Host` is refused: it may be bound to this address by an attacker (DNS rebinding). A plain IP
 *    address cannot be rebound.
 * HOSTS-2 Pages of other origins are refused unless configured. The daemon speaks HTTP: a page loaded by HTTPS has the origin
 *    `publicUrl`, which a proxy serves. Requests without an origin (images, scripts, `fetch` with `no-cors`) are checked by
 *    Fetch Metadata; navigation is allowed.
 * HOSTS-3 The daemon's own address in answers is the configured one, else the checked `Host`; never the request target or a
 *    proxy header.
 * HOSTS-4 A page of a configured origin may read every answer, including errors and event streams, and send any header. Other
 *    pages get no header that allows anything. Pages of other origins may not use cookies: those are for the console (SIGN-IN-2).
 */

/** Headers that pages may read, besides those that browsers always expose. */
const EXPOSED_HEADERS = [
  ...['allow', 'location', 'retry-after', 'www-authenticate', 'x-should-retry'],
  ...['x-parley-conversation', 'x-parley-unused', 'x-parley-unknown-mentions'],
  ...['mcp-session-id', 'mcp-protocol-version', 'a2a-version'],
];
/** How long a browser may cache a preflight. */
const PREFLIGHT_SECONDS = 600;

export function checkHost(host: string | undefined, known: KnownHosts): void {
  const name = nameOf(host ?? '');
  const own = known.publicUrl === null ? [] : [new URL(known.publicUrl).hostname];
  const isKnown = [...known.hosts, ...own].some((one) => one.toLowerCase() === name);
  if (name === 'localhost' || isIP(name) !== 0 || isKnown) return;
  throw new ParleyError('HOST_FORBIDDEN', `this daemon is not known as ${JSON.stringify(name)}`, {
    hint: 'use its address, or name the host in http.hosts of parley.yaml',
  });
}

export function checkOrigin(origin: string | undefined, host: string | undefined, known: KnownHosts): void {
  if (origin === undefined || known.origins.includes(origin)) return;
  if (isOwnOrigin(origin, host, known.publicUrl)) return;
  throw new ParleyError('ORIGIN_FORBIDDEN', `pages of ${JSON.stringify(origin)} may not use this daemon`, {
    hint: 'name the origin in http.origins of parley.yaml; where a proxy serves HTTPS, set http.publicUrl',
  });
}

/** Whether the page is one of this daemon. */
export function isOwnOrigin(origin: string, host: string | undefined, publicUrl: string | null): boolean {
  const own = [`http://${host}`, publicUrl ?? ''].map(originOf);
  return own.some((one) => one !== null && one === originOf(origin));
}

/** HOSTS-2, without an origin. `site`, `destination`: Fetch Metadata, which no page can change. */
export function checkSite(site: string | undefined, destination: string | undefined): void {
  if ((site !== 'cross-site' && site !== 'same-site') || destination === 'document') return;
  throw new ParleyError('ORIGIN_FORBIDDEN', 'pages of other origins may not use this daemon', {
    hint: 'name the origin in http.origins of parley.yaml, and let the page use `fetch` in the mode `cors`',
  });
}

/** HOSTS-4. Runs before the guard: a preflight carries no token, and a page must be able to read what the guard refuses. */
export function allowOrigins({ origins }: KnownHosts): MiddlewareHandler {
  const allow = cors({
    origin: (origin) => origin,
    exposeHeaders: EXPOSED_HEADERS,
    maxAge: PREFLIGHT_SECONDS,
  });
  return async (context, next) => {
    const { req } = context;
    const isPreflight = req.header('access-control-request-method') !== undefined;
    const isAllowed = origins.includes(req.header('origin') ?? '');
    // `cors` answers every OPTIONS, also those that are not preflights.
    if (isAllowed && (isPreflight || req.method !== 'OPTIONS')) return allow(context, next);
    await next();
    context.res.headers.append('vary', 'Origin');
  };
}

/** HOSTS-3: the URL of this daemon for the client. `host` must be checked. */
export function ownUrl(host: string | undefined, { publicUrl }: KnownHosts): string {
  return publicUrl ?? `http://${host}`;
}

/** Scheme, name and port, as browsers compare them. */
function originOf(url: string): string | null {
  return URL.canParse(url) ? new URL(url).origin : null;
}

/** Without port and brackets, in lower case. */
function nameOf(host: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(host)?.[1];
  return (bracketed ?? host.replace(/:\d+$/, '')).toLowerCase();
}
