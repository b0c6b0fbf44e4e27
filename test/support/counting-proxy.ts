import { createServer, request } from 'node:http';

/** Passes HTTP requests on, and knows which are open. */
export interface CountingProxy {
  readonly url: string;
  /** The paths of the open requests that match, with their queries. */
  open(path: RegExp): string[];
  close(): Promise<void>;
}

export async function startCountingProxy(target: string): Promise<CountingProxy> {
  const paths = new Set<{ readonly path: string }>();
  const server = createServer((near, answer) => {
    const one = { path: near.url ?? '' };
    paths.add(one);
    const far = request(`${target}${near.url}`, { method: near.method, headers: near.headers, agent: false });
    const end = () => {
      paths.delete(one);
      far.destroy();
    };
    far.on('response', (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(answer);
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
