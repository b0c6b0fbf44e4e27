import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { type IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * Requests to URLs of strangers. Imported directly: most commands load no `ipaddr.js`.
 *
 * ADDRESS-1 The addresses of a host are resolved, checked by the caller and then connected to, so that DNS cannot change in between.
 *           A host that is an address itself is checked too: Node calls no `lookup` for it.
 * ADDRESS-2 Size and time are limited while waiting and reading.
 */

/** 2000::/3. `ipaddr.js` also takes the old IPv4-compatible addresses for public ones. */
const GLOBAL_IPV6 = /^[23][0-9a-f]{3}:/;

/** `public`, or the kind of another range: `loopback`, `private`, `linkLocal`, `ipv4Mapped` and others. */
export function reachOf(text: string): string {
  const address = ipaddr.parse(text);
  const range = address.range();
  if (range !== 'unicast') return range;
  return address.kind() === 'ipv4' || GLOBAL_IPV6.test(address.toString()) ? 'public' : 'reserved';
}

export type Addresses = readonly LookupAddress[];
export type Resolve = (hostname: string) => Promise<Addresses>;

/** The addresses of a host (ADDRESS-1), which is written as `URL` writes it: normalized, IPv6 in brackets. */
export async function addressesOf(
  hostname: string,
  resolve: Resolve = (name) => lookup(name, { all: true }),
): Promise<Addresses> {
  const literal = hostname.replace(/^\[(.*)\]$/, '$1');
  const family = isIP(literal);
  return family === 0 ? resolve(hostname) : [{ address: literal, family }];
}

/** Connects to one of `addresses`, which the caller has checked. Follows no redirect. */
export function requestAt(
  url: URL,
  addresses: Addresses,
  options: Pick<RequestOptions, 'method' | 'headers' | 'signal'>,
  body?: string,
): Promise<IncomingMessage> {
  const request: typeof requestHttp = url.protocol === 'https:' ? requestHttps : requestHttp;
  const [first] = addresses;
  return new Promise((resolve, reject) => {
    const agent = false; // a kept connection might lead to another address
    const sent = request(url, {
      ...options,
      agent,
      lookup: (_hostname, { all }, callback) =>
        all ? callback(null, [...addresses]) : callback(null, first?.address ?? '', first?.family),
    });
    sent.on('response', resolve).on('error', reject).end(body);
  });
}

/** Throws `tooLarge()`, and closes the connection, after more than `maxBytes` (ADDRESS-2). */
export async function readAtMost(
  response: IncomingMessage,
  maxBytes: number,
  tooLarge: () => Error,
): Promise<Buffer> {
  if (Number(response.headers['content-length'] ?? 0) > maxBytes) {
    response.destroy();
    throw tooLarge();
  }
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of response as AsyncIterable<Uint8Array>) {
    size += piece.length;
    if (size > maxBytes) throw tooLarge(); // leaving the loop closes the connection
    pieces.push(piece);
  }
  return Buffer.concat(pieces, size);
}
