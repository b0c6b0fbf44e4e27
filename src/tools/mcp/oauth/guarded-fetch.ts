import { lookup } from 'node:dns/promises';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { FetchLike } from '@modelcontextprotocol/client';
import { ParleyError } from '../../../kernel/index.ts';
import { reachOf } from '../../../kernel/public-address.ts';

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

  async function addressesOf(url: URL) {
    const { hostname, origin } = url;
    const isSafe = url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK_NAME.test(hostname));
    if (!isSafe || url.username !== '' || url.password !== '')
      refuse(
        `${shown(url)} takes no part in a login: it is neither https nor at a loopback address, or it has a password`,
        'the operator of the MCP server must name https addresses',
      );
    const found = await resolved(hostname);
    if (hosts.has(hostname)) return found;
    const foreign = found.map(({ address }) => reachOf(address)).filter((reach) => reach !== 'public');
    if (foreign.length === 0) return found;
    const own = (await resolved(new URL(server).hostname)).map(({ address }) => reachOf(address));
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
      return send(target, await addressesOf(target), init);
    },
    check: async (url) => void (await addressesOf(url)),
    get refusal() {
      return refusal;
    },
  };
}

type Addresses = readonly { readonly address: string; readonly family: number }[];

async function resolved(hostname: string): Promise<Addresses> {
  const literal = hostname.replace(/^\[(.*)\]$/, '$1');
  const family = isIP(literal);
  return family === 0 ? lookup(hostname, { all: true }) : [{ address: literal, family }];
}

/** OAUTH-FETCH-2 */
function lookupIn(addresses: Addresses): LookupFunction {
  return (_hostname, { all }, callback) => {
    const [first] = addresses;
    if (all) callback(null, [...addresses]);
    else callback(null, first?.address ?? '', first?.family);
  };
}

function send(url: URL, addresses: Addresses, init: RequestInit = {}): Promise<Response> {
  const { method = 'GET', body } = init;
  const request = url.protocol === 'https:' ? requestHttps : requestHttp;
  const timeout = AbortSignal.timeout(MOST_MS);
  const signal = init.signal ? AbortSignal.any([init.signal, timeout]) : timeout;
  const headers = Object.fromEntries(new Headers(init.headers));
  const options = { method, headers, signal, lookup: lookupIn(addresses), agent: false };
  return new Promise((resolve, reject) => {
    const sent = request(url, options, async (response) => {
      try {
        const pieces: Uint8Array[] = [];
        let size = 0;
        for await (const piece of response as AsyncIterable<Uint8Array>) {
          size += piece.length;
          if (size > MOST_BYTES) throw new Error(`${url.origin} answered with more than 1 MiB`);
          pieces.push(piece);
        }
        const { statusCode: status = 502 } = response;
        const given = Object.entries(response.headers).map(([name, value]): [string, string] => [
          name,
          String(value),
        ]);
        resolve(new Response(EMPTY.has(status) ? null : Buffer.concat(pieces), { status, headers: given }));
      } catch (error) {
        reject(error);
      }
    });
    sent.on('error', reject).end(body === undefined || body === null ? undefined : String(body));
  });
}

/** Without a query, which may have secrets. */
export function shown({ protocol, host, pathname }: URL): string {
  return host === '' ? `an address of the kind ${protocol}` : `${protocol}//${host}${pathname}`;
}
