import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

/** Passes HTTP requests on, and knows which are open. */
export interface CountingProxy {
  readonly url: string;
  /** The paths of the open requests that match, with their queries. */
  open(path: RegExp): string[];
  close(): Promise<void>;
}

/** Event streams are interrupted for a while after the event that has this text. */
export interface Interruption {
  readonly after: string;
  readonly ms: number;
}

export async function startCountingProxy(
  target: string,
  interruption?: Interruption,
): Promise<CountingProxy> {
  const paths = new Set<{ readonly path: string }>();
  const server = createServer((near, answer) => {
    const one = { path: near.url ?? '' };
    paths.add(one);
    const far = request(`${target}${near.url}`, {
      method: near.method,
      headers: { ...near.headers, 'accept-encoding': 'identity' },
      agent: false,
    });
    const end = () => {
      paths.delete(one);
      far.destroy();
    };
    far.on('response', (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      if (interruption && near.url?.startsWith('/api/events'))
        passEvents(response, answer, interruption).catch(() => answer.destroy());
      else response.pipe(answer);
    });
    far.on('error', () => answer.destroy());
    answer.on('close', end);
    near.pipe(far);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`,
    open: (path) => [...paths].map((one) => one.path).filter((text) => path.test(text)),
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

async function passEvents(from: IncomingMessage, to: ServerResponse, { after, ms }: Interruption) {
  let kept = '';
  let isOver = false;
  for await (const part of from.setEncoding('utf8')) {
    kept += part;
    const found = isOver ? -1 : kept.indexOf(after);
    const end = found < 0 ? -1 : kept.indexOf('\n\n', found) + 2;
    if (!isOver && end < 2) continue; // the event is not complete
    if (!isOver) {
      to.write(kept.slice(0, end));
      await pause(ms);
      kept = kept.slice(end);
      isOver = true;
    }
    to.write(kept);
    kept = '';
  }
  to.end(kept);
}
