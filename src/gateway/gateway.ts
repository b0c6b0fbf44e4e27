import { setMaxListeners } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { serve } from '@hono/node-server';
import { createIdSource, messageOf, ParleyError } from '../kernel/index.ts';
import { createApplication } from './application.ts';
import type { Application } from './context.ts';
import type { Token } from './guard/access.ts';
import type { KnownHosts } from './guard/hosts.ts';
import type { GatewayPort, Wire } from './port.ts';

/**
 * The HTTP server.
 *
 * GATEWAY-1 Loopback needs no token; any other address refuses to start without one.
 * GATEWAY-2 Nobody is listened to for longer than the daemon lives: readers are let go before the server closes.
 * GATEWAY-3 Who is refused while he still sends reads why.
 * GATEWAY-4 A connection whose other side takes nothing between two looks is cut off, whatever waits for it: else a peer that stopped
 *    reading would hold it for ever, and its seat.
 */

export interface GatewayOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Asked of every request but health, if there is any. */
  readonly tokens: readonly Token[];
  /** The token of `tokens` that codes of the console's address stand for; null: there are no codes. */
  readonly ownToken: string | null;
  readonly known: KnownHosts;
  readonly maxBodyBytes: number;
  /** Of one address. */
  readonly requestsPerSecond: number;
  /** Event streams and requests that wait, open at once: of all, and of one caller. */
  readonly readers: number;
  readonly readersPerCaller: number;
  /** Between signs of life to readers to whom nothing else is said, and between two looks at a connection (GATEWAY-4). */
  readonly heartbeatMs: number;
  /** Where the console's built files are; without them its page says what to do. */
  readonly consoleFolder: string;
  readonly wire: Wire;
  readonly version: string;
  readonly onFault: (error: unknown, path: string) => void;
}

export interface Gateway {
  readonly url: string;
  /** The daemon takes requests from now on; null: no more. */
  open(door: GatewayPort | null): void;
  /** Ends everything that is read continuously. */
  dismissReaders(): void;
  close(): Promise<void>;
}

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);

export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { host, port, tokens } = options;
  if (!LOOPBACK.has(host) && tokens.length === 0) {
    throw new ParleyError('HTTP_TOKEN_MISSING', `refusing to serve HTTP on ${host} without a token`, {
      hint: 'set PARLEY_HTTP_TOKEN, or listen on 127.0.0.1',
    }); // GATEWAY-1
  }
  let door: GatewayPort | null = null;
  const closing = new AbortController();
  setMaxListeners(0, closing.signal); // one for each reader, gone with him
  const application = createApplication({
    ...options,
    known: { ...options.known, hosts: [...options.known.hosts, host] },
    newId: createIdSource(),
    closing: closing.signal,
    readiness: () => (door === null ? 'starting' : door.isConnected ? 'ready' : 'disconnected'),
    door() {
      if (door) return door;
      throw new ParleyError('NOT_READY', 'the daemon is starting or stopping', { hint: 'try again soon' });
    },
  });
  const server = await listen(application, host, port);
  server.on('connection', (socket) => cutWhenStalled(socket, options.heartbeatMs));
  const address = server.address();
  const boundPort = typeof address === 'object' && address ? address.port : port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${boundPort}`,
    open(opened) {
      door = opened;
    },
    dismissReaders: () => closing.abort(), // GATEWAY-2
    close() {
      closing.abort();
      return close(server);
    },
  };
}

function listen(app: Application, hostname: string, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const options = { fetch: app.fetch, hostname, port, autoCleanupIncoming: false };
    const server = serve(options, () => resolve(server)) as Server;
    server.prependListener('request', lingerAfterAnswer); // GATEWAY-3
    server.once('error', (error) => reject(cannotListen(error, hostname, port)));
  });
}

/** GATEWAY-4 */
function cutWhenStalled(socket: Socket, everyMs: number): void {
  let before = -1;
  const look = setInterval(() => {
    const { writableLength: waiting } = socket;
    const taken = socket.bytesWritten - waiting;
    if (waiting > 0 && taken === before) socket.destroy();
    before = taken;
  }, everyMs);
  socket.once('close', () => clearInterval(look));
}

function cannotListen(error: Error, host: string, port: number): ParleyError {
  const taken = 'code' in error && error.code === 'EADDRINUSE';
  const why = taken ? 'another program listens there' : messageOf(error);
  return new ParleyError(
    taken ? 'HTTP_PORT_IN_USE' : 'HTTP_UNAVAILABLE',
    `cannot serve HTTP on ${host}:${port}: ${why}`,
    {
      hint: 'choose another with --http HOST:PORT (port 0: any free one), or --http off',
      cause: error,
    },
  );
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/**
 * What is still sent when the answer is already out: the body of a request that was refused by its head or its size.
 *
 * GATEWAY-N-1 It is read and thrown away, so that the sender comes to reading the answer. To close at once would reset the
 *    connection, and a reset takes from the sender what he had not read yet.
 * GATEWAY-N-2 But not for ever: what is more, or takes longer, is cut off.
 */

const MOST_MS = 30_000;
const MOST_BYTES = 268_435_456;

/** Is to be told of a request before anybody else. */
export function lingerAfterAnswer(incoming: IncomingMessage, outgoing: ServerResponse): void {
  outgoing.prependOnceListener('finish', () => {
    if (incoming.complete || incoming.destroyed) return;
    const { socket } = incoming;
    // Where the connection is not kept, the server closes it next: only our side of it, then (GATEWAY-N-1).
    socket.destroySoon = () => void socket.end();
    const cut = () => void socket.destroy(); // GATEWAY-N-2
    const timer = setTimeout(cut, MOST_MS).unref();
    let read = 0;
    incoming.removeAllListeners('data'); // whoever stopped in the middle of it would pause it again
    incoming.on('data', (chunk: Buffer) => {
      read += chunk.length;
      if (read > MOST_BYTES) cut();
    });
    incoming.once('close', () => {
      clearTimeout(timer);
      Reflect.deleteProperty(socket, 'destroySoon');
    });
    incoming.resume();
  });
}
