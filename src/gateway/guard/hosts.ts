import { isIP } from 'node:net';
import type { MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import { ParleyError } from '../../kernel/index.ts';

/**
 * Against pages of other sites that make a browser talk to this daemon.
 *
 * HOSTS-1 A name in `Host` that is not known is refused: a stranger's name may be bound to this address (DNS rebinding).
 *    A plain address cannot be rebound.
 * HOSTS-2 A page of another origin is refused, unless it is configured. The daemon speaks HTTP: a page that came by HTTPS has
 *    the origin that `publicUrl` says, which a proxy serves. A request that names no origin (an image, a script, a `fetch` of
 *    the mode `no-cors`) has what the browser says of its site; to follow a link is no such request.
 * HOSTS-3 Where the daemon names its own address, it is the configured one, else the checked `Host`: neither the target of a
 *    request nor a header of a proxy is believed.
 * HOSTS-4 A page of a configured origin may read every answer, errors and event streams included, and may send any header. No
 *    other page gets a header that allows anything. Credentials of the browser are never allowed: none are used.
 */

/** What pages may read of an answer, besides the headers that browsers always show. */
const EXPOSED_HEADERS = [
  ...['allow', 'location', 'retry-after', 'www-authenticate', 'x-should-retry'],
  ...['x-parley-conversation', 'x-parley-unused', 'mcp-session-id', 'mcp-protocol-version', 'a2a-version'],
];
/** For which a browser may remember what it is allowed. */
const PREFLIGHT_SECONDS = 600;

export interface KnownHosts {
  /** Names beside `localhost` and the one that is listened on. */
  readonly hosts: readonly string[];
  /** As `https://console.example.org`. */
  readonly origins: readonly string[];
  /** Under which others reach it, without a slash at the end; null: as whoever asks has reached it. */
  readonly publicUrl: string | null;
}

export function checkHost(host: string | undefined, known: KnownHosts): void {
  const name = nameOf(host ?? '');
  const own = known.publicUrl === null ? [] : [new URL(known.publicUrl).hostname];
  const isKnown = [...known.hosts, ...own].some((one) => one.toLowerCase() === name);
  if (name === 'localhost' || isIP(name) !== 0 || isKnown) return;
  throw new ParleyError('HOST_FORBIDDEN', `this daemon is not known as ${JSON.stringify(name)}`, {
    hint: 'use its address, or name the host in http.hosts of parley.yaml',
  }); // HOSTS-1
}

export function checkOrigin(origin: string | undefined, host: string | undefined, known: KnownHosts): void {
  if (origin === undefined || known.origins.includes(origin)) return;
  const own = [`http://${host}`, known.publicUrl ?? ''].map(originOf);
  if (own.some((one) => one !== null && one === originOf(origin))) return;
  throw new ParleyError('ORIGIN_FORBIDDEN', `pages of ${JSON.stringify(origin)} may not use this daemon`, {
    hint: 'name the origin in http.origins of parley.yaml; where a proxy serves HTTPS, set http.publicUrl',
  }); // HOSTS-2
}

/** HOSTS-2, without an origin. `site`, `destination`: Fetch Metadata, which no page can change. */
export function checkSite(site: string | undefined, destination: string | undefined): void {
  if ((site !== 'cross-site' && site !== 'same-site') || destination === 'document') return;
  throw new ParleyError('ORIGIN_FORBIDDEN', 'pages of other origins may not use this daemon', {
    hint: 'name the origin in http.origins of parley.yaml, and let the page use `fetch` in the mode `cors`',
  });
}

/** S4. Runs before the guard: a preflight carries no token, and a page must be able to read what the guard refuses. */
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
    // `cors` answers every OPTIONS: one that is no preflight is not for it.
    if (isAllowed && (isPreflight || req.method !== 'OPTIONS')) return allow(context, next);
    await next();
    context.res.headers.append('vary', 'Origin');
  };
}

/** HOSTS-3: where this daemon is, for whoever asked there. The host was checked. */
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
