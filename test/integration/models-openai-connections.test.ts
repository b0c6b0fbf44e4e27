import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { itLong } from '../support/long.ts';
import { callAt, failureOf } from './models-openai-support.ts';

let server: Server | TcpServer | null = null;

afterEach(async () => {
  vi.useRealTimers();
  if (server && 'closeAllConnections' in server) server.closeAllConnections();
  server?.close();
  server = null;
});

async function listen(started: Server | TcpServer): Promise<string> {
  server = started.listen(0, '127.0.0.1');
  await once(started, 'listening');
  return `127.0.0.1:${(started.address() as AddressInfo).port}/v1`;
}

const listenHttp = async (answer: RequestListener) => `http://${await listen(createServer(answer))}`;

const ANSWER = JSON.stringify({ choices: [{ index: 0, message: { content: 'Hello.' } }] });

describe('the connection to a provider', () => {
  it('calls one after the other share a connection, and ask for a body that is not compressed', async () => {
    const encodings: unknown[] = [];
    const url = await listenHttp((request, response) => {
      encodings.push(request.headers['accept-encoding']);
      request.resume().once('end', () => response.end(ANSWER));
    });
    const connections = vi.fn();
    server?.on('connection', connections);
    for (let call = 0; call < 3; call += 1) expect((await callAt(url)).text).toBe('Hello.');
    expect(connections).toHaveBeenCalledTimes(1);
    expect(encodings).toEqual(['identity', 'identity', 'identity']);
  });

  it.each([0, 1, 2, 3, 4, 5, 6, 8])(
    'a call that is aborted %i microtasks after its begin ends, and sends nothing later',
    async (microtasks) => {
      const requests = vi.fn();
      const url = await listenHttp(requests);
      const abort = new AbortController();
      const called = callAt(url, { signal: abort.signal });
      for (let step = 0; step < microtasks; step += 1) await null;
      abort.abort();
      expect((await called).outcome.kind).toBe('aborted');
      expect(requests).not.toHaveBeenCalled();
    },
  );

  itLong('an answer that is slower than an idle connection may be still arrives', async () => {
    const url = await listenHttp((_, response) => {
      setTimeout(() => response.write(' '), 4_300);
      setTimeout(() => response.end(ANSWER), 8_600);
    });
    expect((await callAt(url)).text).toBe('Hello.');
  });

  it('an error without end is cut, and its connection is closed', async () => {
    const closed = vi.fn();
    const url = await listenHttp((_, response) => {
      response.writeHead(500);
      // Node 26 calls back for a closed connection, too, before it says that it is closed.
      const more = (error?: Error | null) => void (error ?? response.write('x'.repeat(65_536), more));
      more();
      response.once('close', closed);
    });
    expect(failureOf((await callAt(url)).outcome).message).toMatch(/^The provider answered 500: xxx/);
    await expect.poll(() => closed).toHaveBeenCalled();
  });

  it('a connection that is not established is a timeout, before the timeout of the answer', async () => {
    const silent = createTcpServer();
    const url = await listen(silent);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const called = callAt(`https://${url}`, { options: { firstTokenMs: 60_000 } });
    await once(silent, 'connection'); // and no TLS handshake follows
    await vi.advanceTimersByTimeAsync(10_000);
    const failure = failureOf((await called).outcome);
    expect(failure).toMatchObject({ code: 'TIMEOUT', retryable: true });
    expect(failure.message).toContain('cannot be reached in time');
  });

  it('a header `host` does not change the name that the certificate must have', async () => {
    const names: string[] = [];
    const secure = createTlsServer({
      SNICallback(name, refuse) {
        names.push(name);
        refuse(new Error('no certificate'));
      },
    });
    secure.on('tlsClientError', () => undefined);
    const url = `https://${(await listen(secure)).replace('127.0.0.1', 'localhost')}`;
    const { outcome } = await callAt(url, { options: { headers: { host: 'gateway.example' } } });
    expect(failureOf(outcome).message).not.toBe('');
    expect(new Set(names)).toEqual(new Set(['localhost']));
  });
});
