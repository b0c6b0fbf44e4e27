import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { sleep } from '../../src/kernel/index.ts';
import { HttpTransport } from '../../src/tools/mcp/http-transport.ts';

const over: (() => void)[] = [];
afterEach(() => {
  for (const end of over.splice(0)) end();
});

/** Ends every stream at once with this `retry` in milliseconds. Returns the times of the requests. */
async function endingServer(retry: string, event = ''): Promise<{ url: string; asked: number[] }> {
  const asked: number[] = [];
  const server = createServer((request, response) => {
    if (request.method === 'GET') asked.push(performance.now());
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`id: ${asked.length}\nretry: ${retry}\ndata:\n\n${event}`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  over.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, asked };
}

async function reconnections(retry: string, event?: string): Promise<number[]> {
  const { url, asked } = await endingServer(retry, event);
  const transport = new HttpTransport({ url, headers: {}, answerGraceMs: 50, endMs: 100 });
  await transport.start();
  await transport.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} });
  await sleep(2_500);
  await transport.close();
  const last = asked.length;
  await sleep(600);
  expect(asked.length).toBe(last); // A closed connection sends no more requests.
  return asked.slice(1).map((at, n) => at - (asked[n] ?? 0));
}

const NOTICE = `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: {} })}\n\n`;

it.each(['0', '1', '99999999999'])(
  'reconnects to a server that ends each stream with `retry: %s` back off',
  async (retry) => {
    const pauses = await reconnections(retry);
    expect(pauses.length).toBeGreaterThan(0);
    expect(pauses.length).toBeLessThan(5);
    expect(Math.min(...pauses)).toBeGreaterThan(100);
    expect(pauses.at(-1)).toBeGreaterThan(450);
  },
);

it('a reconnect to a server that ends each stream after a message is delayed', async () => {
  const pauses = await reconnections('0', NOTICE);
  expect(pauses.length).toBeGreaterThan(4);
  expect(pauses.length).toBeLessThan(12);
  expect(Math.min(...pauses)).toBeGreaterThan(100);
});
