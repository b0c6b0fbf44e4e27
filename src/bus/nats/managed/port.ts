import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { ParleyError } from '../../../kernel/index.ts';

/** The only address of the managed server. */
export const LOOPBACK = '127.0.0.1';

/**
 * Below the ranges of ephemeral ports: a client that keeps reconnecting to an ephemeral port can connect to itself, and
 * then the server cannot listen there.
 */
const LOWEST_PORT = 20_000;
const HIGHEST_PORT = 30_000;
const ATTEMPTS = 50;

export async function choosePort(isFree: (port: number) => Promise<boolean> = isPortFree): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = randomInt(LOWEST_PORT, HIGHEST_PORT);
    if (await isFree(port)) return port;
  }
  throw new ParleyError(
    'NATS_NO_FREE_PORT',
    `none of ${ATTEMPTS} ports tried between ${LOWEST_PORT} and ${HIGHEST_PORT} on ${LOOPBACK} is free`,
    { hint: 'check that this process may listen on loopback, or use a running server with --nats URL' },
  );
}

export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host: LOOPBACK, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
