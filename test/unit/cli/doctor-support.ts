import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { Secret } from '../../../src/config/index.ts';

export const OPENAI = {
  provider: 'openai',
  model: 'm',
  baseURL: 'https://api.example.org/v1',
  apiKey: new Secret('sk'),
  profile: { preset: 'compatible', chosenBy: 'default' },
};

/** An endpoint that answers every request with this status and counts the requests. */
export async function endpoint(status: number) {
  const seen: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    response.writeHead(status).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = () => new Promise((resolve) => server.close(resolve));
  onTestFinished(() => void server.close());
  return { baseURL: `http://127.0.0.1:${port}/v1/`, seen, close };
}

/** A model whose endpoint answers. */
export const reachable = async () => ({ ...OPENAI, baseURL: (await endpoint(200)).baseURL });
