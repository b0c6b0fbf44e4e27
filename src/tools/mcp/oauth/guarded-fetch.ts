import type { FetchLike } from '@modelcontextprotocol/client';
import { ParleyError } from '../../../kernel/index.ts';
import {
  type Addresses,
  addressesOf,
  reachOf,
  readAtMost,
  requestAt,
} from '../../../kernel/public-address.ts';

/**
 * Requests to URLs that an MCP server names: its metadata, its authorization server.
 *
 * OAUTH-FETCH-1 Only https is requested, or http at a loopback name.
 * OAUTH-FETCH-2 An address is public, or of the same kind (loopback, private) as all of the MCP server, or its host is
 *               named in the configuration. The addresses that were checked are connected to.
 * OAUTH-FETCH-3 Size and time are limited. No redirect is followed here; the SDK follows those within an origin.
 */

const MOST_BYTES = 1024 * 1024;
const MOST_MS = 20_000;
const LOOPBACK_NAME = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;
/** Statuses without a body, which `Response` refuses to have one. */
const EMPTY: ReadonlySet<number> = new Set([204, 205, 304]);

export interface Guard {
  readonly fetch: FetchLike;
  /** Rejects for a URL that must not be requested, or opened by a person. */
  check(url: URL): Promise<void>;
  /** The first refusal: the SDK goes on without what it could not fetch. */
  readonly refusal: ParleyError | null;
}

/** `server`: the URL of the MCP server. `named`: URLs of the configuration whose hosts are trusted. */
export function guardFor(server: string, named: readonly string[]): Guard {
  const hosts = new Set(named.map((url) => new URL(url).hostname));
  let refusal: ParleyError | null = null;
  const refuse = (message: string, hint: string): never => {
    refusal ??= new ParleyError('MCP_LOGIN_REFUSED', message, { hint });
    throw refusal;
  };

  async function checkedAddressesOf(url: URL) {
    const { hostname, origin } = url;
    const isSafe = url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK_NAME.test(hostname));
    if (!isSafe || url.username !== '' || url.password !== '')
      refuse(
        `${shown(url)} takes no part in a login: it is neither https nor at a loopback address, or it has a password`,
        'the operator of the MCP server must name https addresses',
      );
    const found = await addressesOf(hostname);
    if (hosts.has(hostname)) return found;
    const foreign = found.map(({ address }) => reachOf(address)).filter((reach) => reach !== 'public');
    if (foreign.length === 0) return found;
    const own = (await addressesOf(new URL(server).hostname)).map(({ address }) => reachOf(address));
    if (foreign.some((reach) => own.some((one) => one !== reach)))
      refuse(
        `${origin}, which the MCP server names, has no public address`,
        'if it is your authorization server, name it in oauth.authorizationServer of that MCP server',
      );
    return found;
  }

  return {
    fetch: async (url, init) => {
      const target = new URL(url);
      return send(target, await checkedAddressesOf(target), init);
    },
    check: async (url) => void (await checkedAddressesOf(url)),
    get refusal() {
      return refusal;
    },
  };
}

async function send(url: URL, addresses: Addresses, init: RequestInit = {}): Promise<Response> {
  const { method = 'GET', body } = init;
  const timeout = AbortSignal.timeout(MOST_MS);
  const signal = init.signal ? AbortSignal.any([init.signal, timeout]) : timeout;
  const headers = Object.fromEntries(new Headers(init.headers));
  const sent = body === undefined || body === null ? undefined : String(body);
  const response = await requestAt(url, addresses, { method, headers, signal }, sent);
  const tooLarge = () => new Error(`${url.origin} answered with more than 1 MiB`);
  const bytes = await readAtMost(response, MOST_BYTES, tooLarge);
  const { statusCode: status = 502 } = response;
  const given = Object.entries(response.headers).map(([name, value]): [string, string] => [
    name,
    String(value),
  ]);
  return new Response(EMPTY.has(status) ? null : bytes, { status, headers: given });
}

/** Without a query, which may have secrets. */
export function shown({ protocol, host, pathname }: URL): string {
  return host === '' ? `an address of the kind ${protocol}` : `${protocol}//${host}${pathname}`;
}
