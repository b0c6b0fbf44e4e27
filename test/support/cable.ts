import { createServer, connect as dial, type Socket } from 'node:net';

/**
 * A connection to a server that can be cut: running transfers break, and new ones fail. It can also be held: data for
 * the server arrives late and complete, and the sender notices nothing.
 */
export interface Cable {
  readonly url: string;
  cut(): void;
  restore(): void;
  hold(): void;
  /** `change`: what is held, as it is to arrive. */
  release(change?: (chunk: Buffer) => Buffer): void;
  /** The held data, as text. */
  readonly held: string;
  /** Number of connections so far. */
  readonly connections: number;
  close(): Promise<void>;
}

export async function layCable(target: string): Promise<Cable> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const held: { readonly chunk: Buffer; readonly to: Socket }[] = [];
  let isCut = false;
  let isHeld = false;
  let connections = 0;
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
  };
  const server = createServer((near) => {
    if (isCut) return void near.destroy();
    connections++;
    const far = dial(Number(port), hostname);
    keep(near);
    keep(far);
    far.pipe(near);
    near.on('data', (chunk: Buffer) => {
      if (isHeld) held.push({ chunk, to: far });
      else far.write(chunk);
    });
    near.once('end', () => far.end());
    far.once('close', () => near.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const bound = typeof address === 'object' && address ? address.port : 0;
  const drop = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${bound}`,
    get connections() {
      return connections;
    },
    cut() {
      isCut = true;
      drop();
    },
    restore() {
      isCut = false;
    },
    hold() {
      isHeld = true;
    },
    release(change = (chunk) => chunk) {
      isHeld = false;
      for (const { chunk, to } of held.splice(0)) to.write(change(chunk));
    },
    get held() {
      return held.map(({ chunk }) => chunk.toString()).join('');
    },
    close() {
      drop();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
