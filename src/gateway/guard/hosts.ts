import { isIP } from 'node:net';
import { ParleyError } from '../../kernel/index.ts';

/**
 * Against pages of other sites that make a browser talk to this daemon.
 *
 * S1 A name in `Host` that is not known is refused: a stranger's name may be bound to this address (DNS rebinding).
 *    A plain address cannot be rebound.
 * S2 A page of another origin is refused, unless it is configured.
 */

export interface KnownHosts {
  /** Names beside `localhost` and the one that is listened on. */
  readonly hosts: readonly string[];
  /** As `https://console.example.org`. */
  readonly origins: readonly string[];
}

export function checkHost(host: string | undefined, known: KnownHosts): void {
  const name = nameOf(host ?? '');
  if (name === 'localhost' || isIP(name) !== 0 || known.hosts.some((one) => one.toLowerCase() === name))
    return;
  throw new ParleyError('HOST_FORBIDDEN', `this daemon is not known as ${JSON.stringify(name)}`, {
    hint: 'use its address, or name the host in http.hosts of parley.yaml',
  }); // S1
}

export function checkOrigin(origin: string | undefined, host: string | undefined, known: KnownHosts): void {
  if (origin === undefined || known.origins.includes(origin)) return;
  if (URL.canParse(origin) && new URL(origin).host === host?.toLowerCase()) return;
  throw new ParleyError('ORIGIN_FORBIDDEN', `pages of ${JSON.stringify(origin)} may not use this daemon`, {
    hint: 'name the origin in http.origins of parley.yaml',
  }); // S2
}

/** Without port and brackets, in lower case. */
function nameOf(host: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(host)?.[1];
  return (bracketed ?? host.replace(/:\d+$/, '')).toLowerCase();
}
