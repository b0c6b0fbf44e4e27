import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { callAt, failureOf } from './models-openai-support.ts';

let server: Server | null = null;

afterEach(() => {
  server?.close();
  server = null;
});

/** A provider that answers each request with these bytes, written at once. */
async function providerOf(...answer: (string | Uint8Array)[]): Promise<string> {
  const bytes = Buffer.concat(answer.map((part) => Buffer.from(part)));
  server = createServer((socket) => {
    socket.on('error', () => undefined).on('data', () => socket.write(bytes));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

const ANSWER = JSON.stringify({ choices: [{ index: 0, message: { content: 'Hello.' } }] });
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
const complete = `HTTP/1.1 200 OK\r\nContent-Length: ${ANSWER.length}\r\n\r\n${ANSWER}`;

describe('a provider that breaks HTTP', () => {
  it.each([
    ['an invalid chunk at once', CHUNKED, 'ZZ\r\nxx'],
    ['an error with an invalid chunk at once', CHUNKED.replace('200 OK', '500 Broken'), 'ZZ\r\nxx'],
    ['a trailer that is too long', CHUNKED, `0\r\nX: ${'y'.repeat(100_000)}\r\n\r\n`],
  ])('%s is a failed call', async (_, ...answer) => {
    expect(failureOf((await callAt(await providerOf(...answer))).outcome).retryable).toBe(true);
  });

  it.each([
    ['bytes that are not HTTP after the answer', complete, 'JUNK\r\n'],
    ['another answer after the answer', complete, complete],
    [
      'a protocol that may be used next',
      complete.replace('OK', 'OK\r\nConnection: Upgrade\r\nUpgrade: h2,h2c'),
    ],
  ])('an answer is used in spite of %s', async (_, ...answer) => {
    expect((await callAt(await providerOf(...answer))).text).toBe('Hello.');
  });

  it('a switch to another protocol is a failed call', async () => {
    const url = await providerOf(
      'HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    );
    expect(failureOf((await callAt(url)).outcome)).toMatchObject({ code: 'NETWORK_ERROR', retryable: true });
  });
});
