import { createHmac } from 'node:crypto';
import { isSameSecret, type OneTimeCodes, ParleyError } from '../../kernel/index.ts';
import type { Application, Request } from '../context.ts';
import { digestOfToken, identify, type Token } from './access.ts';
import { isOwnOrigin } from './hosts.ts';

/**
 * A browser signs in once: it exchanges a token, or the one-time code of a printed address, for a cookie.
 *
 * SIGN-IN-1 The cookie holds a time and its signature with the token, never the token: it ends with both. The daemon keeps nothing,
 *    so a restart changes nothing.
 * SIGN-IN-2 It counts for requests of the daemon's own pages only. Other sites do not send it (`SameSite`), but other ports of this host
 *    do: their pages are refused by their origin, and a request without an origin may only read.
 * SIGN-IN-3 It is sent to `/api` alone: the other doors take a token. Its name has the port, since a browser shares the cookies of all
 *    ports of a host.
 * SIGN-IN-4 A browser sends cookies to every port of a host, so also to a server that an agent started. The console signs in at
 *    `/s/<place>/api/session`, with a place that it alone knows, and requests `/s/<place>/api/…`: the cookie is sent there only,
 *    and counts there only.
 */

const DAYS = 30;
const DAY_SECONDS = 86_400;
const PLACE = /^\/s\/([\w-]{1,64})(?=\/api\/)/;

export interface SessionRoutes {
  readonly tokens: readonly Token[];
  readonly codes: OneTimeCodes;
}

/** `POST` signs in, `DELETE` signs out. Neither needs more rights than it gives or takes. */
export function addSessionRoutes(app: Application, { tokens, codes }: SessionRoutes): void {
  app.post('/api/session', (context) => {
    const token = tokenOf(context.req.header('authorization'), tokens, codes);
    const expiry = secondsNow() + DAYS * DAY_SECONDS;
    if (token) setCookie(context, sealed(token.secret, expiry, placeOf(context)), DAYS * DAY_SECONDS);
    return context.body(null, 204);
  });
  app.delete('/api/session', (context) => {
    setCookie(context, '', 0);
    return context.body(null, 204);
  });
}

/** Undefined: this daemon needs no token. */
function tokenOf(
  authorization: string | undefined,
  tokens: readonly Token[],
  codes: OneTimeCodes,
): Token | undefined {
  const code = /^Code +(\S+)$/i.exec(authorization ?? '')?.[1];
  if (code === undefined) {
    const { caller } = identify(authorization, tokens);
    return tokens.find((token) => digestOfToken(token).toString('hex') === caller);
  }
  const token = tokens[codes.take(code) ?? -1];
  if (token) return token;
  throw new ParleyError('UNAUTHORIZED', 'this address was used already, or is of an earlier start', {
    hint: '`parley token --url` prints another one, `parley token NAME --url` one of a person',
  });
}

/** The token of the session that a request belongs to; undefined: it has none, or one that is over. */
export function sessionOf(
  context: Request,
  tokens: readonly Token[],
  publicUrl: string | null,
): Token | undefined {
  const { req } = context;
  const host = req.header('host');
  const origin = req.header('origin');
  const isOwn =
    origin === undefined ? ['GET', 'HEAD'].includes(req.method) : isOwnOrigin(origin, host, publicUrl);
  if (!isOwn) return undefined; // SIGN-IN-2
  const name = cookieName(host);
  const given = (req.header('cookie') ?? '').split(/; */).find((one) => one.startsWith(`${name}=`));
  const value = given?.slice(name.length + 1) ?? '';
  const expiry = Number(/^\d{1,12}(?=\.)/.exec(value)?.[0] ?? 0);
  if (expiry <= secondsNow()) return undefined;
  const place = placeOf(context);
  const [found] = tokens.filter(({ secret }) => isSameSecret(value, sealed(secret, expiry, place)));
  return found;
}

/** SIGN-IN-4: the path that the router sees. */
export function withoutPlace(path: string): string {
  return path.replace(PLACE, '');
}

/** SIGN-IN-4; empty: the request names none. */
function placeOf({ req }: Request): string {
  return PLACE.exec(new URL(req.url).pathname)?.[1] ?? '';
}

/** SIGN-IN-1 */
function sealed(secret: string, expiry: number, place: string): string {
  const claim = `parley session ${expiry} ${place}`;
  return `${expiry}.${createHmac('sha256', secret).update(claim).digest('base64url')}`;
}

/** Without a path, so that it is sent to the folder of this route alone (SIGN-IN-3), under any prefix of a proxy. */
function setCookie(context: Request, value: string, seconds: number): void {
  const isSecure = context.req.header('origin')?.startsWith('https:') === true;
  const cookie = `${cookieName(context.req.header('host'))}=${value}; Max-Age=${seconds}; HttpOnly; SameSite=Strict`;
  context.header('set-cookie', isSecure ? `${cookie}; Secure` : cookie);
}

function cookieName(host: string | undefined): string {
  return `parley-session-${/:(\d+)$/.exec(host ?? '')?.[1] ?? 'default'}`;
}

function secondsNow(): number {
  return Math.floor(Date.now() / 1_000);
}
