import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { ParleyError } from '../../../kernel/index.ts';

/** The managed server listens here and nowhere else. */
export const LOOPBACK = '127.0.0.1';

/**
 * Below the ranges from which systems take the local ports of outgoing connections: a client that keeps trying to
 * reconnect to a port in there can end up connected to itself, and then the server cannot have it any more.
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
    `none of ${ATTEMPTS} ports tried between ${LOWEST_PORT} and ${HIGHEST_PORT} on ${LOOPBACK} can be listened on`,
    { hint: 'is listening on loopback allowed here? else join a server that runs already with --nats URL' },
  );
}

export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host: LOOPBACK, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
