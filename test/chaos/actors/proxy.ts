import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { choosePort } from '../../../src/bus/nats/managed/index.ts';

/**
 * A loopback proxy to a server, or to all servers of a cluster, that can be cut, stalled and slowed.
 *
 * PROXY-1 Bytes arrive in order or not at all: a slow proxy delays and never reorders.
 */
export interface ProxyActor {
  /** Of several servers: one for each, separated by commas. */
  readonly url: string;
  cut(): void;
  stall(): void;
  slow(delayMs: number): void;
  heal(): void;
  close(): Promise<void>;
}

type State =
  | { readonly kind: 'open' }
  | { readonly kind: 'cut' }
  | { readonly kind: 'stalled' }
  | { readonly kind: 'slow'; readonly delayMs: number };

/** One direction of one connection: the data that waits to be forwarded. */
class Pipe {
  readonly #waiting: { readonly chunk: Buffer; readonly dueAt: number }[] = [];
  readonly #to: Socket;
  readonly #state: () => State;
  #timer: NodeJS.Timeout | null = null;

  constructor(from: Socket, to: Socket, state: () => State) {
    this.#to = to;
    this.#state = state;
    from.on('data', (chunk: Buffer) => {
      const now = state();
      this.#waiting.push({ chunk, dueAt: performance.now() + (now.kind === 'slow' ? now.delayMs : 0) });
      this.carry();
    });
    from.on('close', () => {
      if (this.#timer) clearTimeout(this.#timer);
      to.destroy();
    });
    from.on('error', () => from.destroy());
  }

  /** PROXY-1 */
  carry(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#state().kind === 'stalled') return;
    for (let first = this.#waiting[0]; first; first = this.#waiting[0]) {
      const wait = first.dueAt - performance.now();
      if (wait > 0) {
        this.#timer = setTimeout(() => this.carry(), wait);
        return;
      }
      this.#waiting.shift();
      this.#to.write(first.chunk);
    }
  }
}

export async function createProxyActor(...serverPorts: readonly number[]): Promise<ProxyActor> {
  let state: State = { kind: 'open' };
  const sockets = new Set<Socket>();
  const pipes = new Set<Pipe>();
  const carry = (incoming: Socket, serverPort: number) => {
    if (state.kind === 'cut') {
      incoming.resetAndDestroy();
      return;
    }
    const outgoing = connect(serverPort, '127.0.0.1');
    const both = [new Pipe(incoming, outgoing, () => state), new Pipe(outgoing, incoming, () => state)];
    for (const pipe of both) pipes.add(pipe);
    for (const socket of [incoming, outgoing]) {
      socket.setNoDelay(true);
      sockets.add(socket);
      socket.once('close', () => {
        sockets.delete(socket);
        for (const pipe of both) pipes.delete(pipe);
      });
    }
  };
  const listeners: Server[] = [];
  const ports: number[] = [];
  for (const serverPort of serverPorts) {
    const listener = createServer((incoming) => carry(incoming, serverPort));
    const port = await choosePort();
    listener.listen(port, '127.0.0.1');
    await once(listener, 'listening');
    listeners.push(listener);
    ports.push(port);
  }
  const drop = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    url: ports.map((port) => `nats://127.0.0.1:${port}`).join(','),
    cut() {
      state = { kind: 'cut' };
      drop();
    },
    stall() {
      state = { kind: 'stalled' };
    },
    slow(delayMs) {
      state = { kind: 'slow', delayMs };
    },
    heal() {
      state = { kind: 'open' };
      for (const pipe of pipes) pipe.carry();
    },
    async close() {
      const closed = listeners.map((listener) => once(listener, 'close'));
      for (const listener of listeners) listener.close();
      drop();
      await Promise.all(closed);
    },
  };
}
