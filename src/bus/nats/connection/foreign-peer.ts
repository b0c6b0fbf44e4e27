import { readFileSync, statSync } from 'node:fs';
import type { Authenticator } from 'nats';
import { ParleyError } from '../../../kernel/index.ts';

/**
 * Another user of this machine may take the port of a managed server that died. A server without users takes every login, and
 * what it passes on would be executed. So no login is sent, and nothing is subscribed, where the other end of a connection
 * is a program of another user. Only Linux tells.
 */

/** `refuse` ends the attempt; before the first connection it answers false, and this throws. */
export function onlyToOwnServer(
  seed: string,
  port: number,
  refuse: () => boolean,
  login: Authenticator,
): Authenticator {
  return (nonce) => {
    if (
      isForeign(port, [0, process.getuid?.() ?? 0, statSync(seed, { throwIfNoEntry: false })?.uid ?? 0]) &&
      !refuse()
    ) {
      const message = `the program on port ${port} belongs to another user; it is not the managed nats-server`;
      throw new ParleyError('NATS_PORT_IN_USE', message, {
        hint: 'end that program, and start the daemon again',
      });
    }
    return login(nonce);
  };
}

const ESTABLISHED = '01';
/** 127.0.0.1, and the same as an IPv6 address. */
const LOOPBACK = /^(0{16}FFFF0000)?0100007F:/;

/** Whether a connection that was made to this port of 127.0.0.1 belongs to another user than these. */
function isForeign(port: number, users: readonly number[]): boolean {
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap(linesOf).some((line) => {
    const [, local = '', , state, , , , user] = line.trim().split(/\s+/);
    const isHere = LOOPBACK.test(local) && Number.parseInt(local.split(':')[1] ?? '', 16) === port;
    return isHere && state === ESTABLISHED && !users.includes(Number(user));
  });
}

function linesOf(table: string): string[] {
  try {
    return readFileSync(table, 'utf8').split('\n').slice(1);
  } catch {
    return []; // not on this system
  }
}
