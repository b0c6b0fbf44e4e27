import { setMaxListeners } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { serve } from '@hono/node-server';
import { createIdSource, messageOf, OneTimeCodes, ParleyError } from '../kernel/index.ts';
import { createApplication } from './application.ts';
import type { Application } from './context.ts';
import type { GatewayOptions, GatewayPort } from './port.ts';

/**
 * The HTTP server.
 *
 * GATEWAY-1 Loopback needs no token; on any other address the server refuses to start without one.
 * GATEWAY-2 On stop, readers are disconnected before the server closes.
 * GATEWAY-3 A client that is refused while it still sends can read the refusal.
 * GATEWAY-4 A connection with queued data whose peer reads nothing between two checks is closed: a stalled peer would keep
 *    its connection and its place forever.
 * GATEWAY-5 A connection that closes closes all its responses. Node closes only the one that it writes: those of pipelined requests,
 *    which wait for it, would keep their places and readers forever.
 */

export interface Gateway {
  readonly url: string;
  /** Makes one-time codes of the console (`oneTimeCode`) for a token, by its place among them. */
  readonly codeKey: string;
  /** The daemon accepts requests from now on; null: no more. */
  open(daemon: GatewayPort | null): void;
  /** Ends all event streams. */
  dismissReaders(): void;
  close(): Promise<void>;
}

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);

export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { host, port, tokens } = options;
  if (!LOOPBACK.has(host) && tokens.length === 0) {
    throw new ParleyError('HTTP_TOKEN_MISSING', `refusing to serve HTTP on ${host} without a token`, {
      hint: 'set PARLEY_HTTP_TOKEN, or listen on 127.0.0.1',
    });
  }
  let daemon: GatewayPort | null = null;
  const closing = new AbortController();
  setMaxListeners(0, closing.signal); // one listener per reader
  const codes = new OneTimeCodes();
  const application = createApplication({
    ...options,
    codes,
    known: { ...options.known, hosts: [...options.known.hosts, host] },
    newId: createIdSource(),
    closing: closing.signal,
    async readiness() {
      if (daemon === null) return 'starting';
      if (!daemon.isConnected) return 'disconnected';
      return (await daemon.isWritable()) ? 'ready' : 'unwritable';
    },
    daemon() {
      if (daemon) return daemon;
      throw new ParleyError('NOT_READY', 'the daemon is starting or stopping', { hint: 'try again soon' });
    },
  });
  const server = await listen(application, host, port);
  server.on('connection', (socket) => cutWhenStalled(socket, options.heartbeatMs));
  const address = server.address();
  const boundPort = typeof address === 'object' && address ? address.port : port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${boundPort}`,
    codeKey: codes.key,
    open(opened) {
      daemon = opened;
    },
    dismissReaders: () => closing.abort(),
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
    server.prependListener('request', lingerAfterAnswer);
    closeAllResponses(server);
    server.once('error', (error) => reject(cannotListen(error, hostname, port)));
  });
}

/** GATEWAY-5 */
function closeAllResponses(server: Server): void {
  const open = new WeakMap<Socket, Set<ServerResponse>>();
  server.on('connection', (socket) => {
    const own = new Set<ServerResponse>();
    open.set(socket, own);
    socket.once('close', () => {
      for (const response of own) response.destroy().emit('close');
    });
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const own = open.get(socket)?.add(response);
    response.once('close', () => own?.delete(response));
  });
}

function cutWhenStalled(socket: Socket, everyMs: number): void {
  let before = -1;
  const timer = setInterval(() => {
    const { writableLength: waiting } = socket;
    const taken = socket.bytesWritten - waiting;
    if (waiting > 0 && taken === before) socket.destroy();
    before = taken;
  }, everyMs);
  socket.once('close', () => clearInterval(timer));
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

const MAX_DISCARD_MS = 30_000;
const MAX_DISCARD_BYTES = 268_435_456;

/**
 * Discards the rest of a request that was refused by its head or its size and is still being sent.
 * Must be the first `request` listener.
 *
 * GATEWAY-N-1 The rest is read and discarded so that the client can read the answer. Closing at once would reset the
 *    connection, which drops unread data at the client.
 * GATEWAY-N-2 At a limit of time and bytes the connection is closed.
 */
function lingerAfterAnswer(incoming: IncomingMessage, outgoing: ServerResponse): void {
  outgoing.prependOnceListener('finish', () => {
    if (incoming.complete || incoming.destroyed) return;
    const { socket } = incoming;
    // If the connection is not kept alive, the server closes only its own side (GATEWAY-N-1).
    socket.destroySoon = () => void socket.end();
    const cut = () => void socket.destroy();
    const timer = setTimeout(cut, MAX_DISCARD_MS).unref();
    let read = 0;
    incoming.removeAllListeners('data'); // another listener would pause it again
    incoming.on('data', (chunk: Buffer) => {
      read += chunk.length;
      if (read > MAX_DISCARD_BYTES) cut();
    });
    incoming.once('close', () => {
      clearTimeout(timer);
      Reflect.deleteProperty(socket, 'destroySoon');
    });
    incoming.resume();
  });
}
