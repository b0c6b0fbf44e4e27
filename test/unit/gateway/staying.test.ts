import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import type { Gateway, GatewayOptions, Token } from '../../../src/gateway/index.ts';
import { readEvents } from '../../support/event-source.ts';
import { createFakeDaemon, type FakeDaemon, openGateway } from './support.ts';

const TOKENS: readonly Token[] = ['alice', 'bob'].map((name) => ({
  role: 'operate',
  secret: name,
  publisher: name,
}));
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

let gateway: Gateway;
let daemon: FakeDaemon;
afterEach(() => gateway.close());

async function open(options: Partial<GatewayOptions> = {}): Promise<void> {
  daemon = createFakeDaemon();
  daemon.append('demo', 'zero');
  ({ gateway } = await openGateway({ tokens: TOKENS, ...options }, daemon));
}
const events = () => `${gateway.url}/api/conversations/demo/events`;

describe('a request that stays open', () => {
  const ask = async (token: string, path = '/api/conversations/demo/events', method = 'GET') => {
    const answer = await fetch(`${gateway.url}${path}`, { method, headers: bearer(token) });
    if (answer.ok) await answer.body?.cancel();
    return [answer.status, answer.ok ? null : await answer.json(), answer.headers.get('retry-after')];
  };

  it('a caller may hold a limited number of open requests, and ending one frees its place', async () => {
    await open({ readersPerCaller: 2 });
    const [first, second] = [
      await readEvents(events(), bearer('alice')),
      await readEvents(events(), bearer('alice')),
    ];
    const refused = { status: 429, code: 'TOO_MANY_READERS', hint: expect.stringMatching(/http\.readers/) };
    expect(await ask('alice')).toMatchObject([429, refused, '1']);
    expect(await ask('alice', '/api/events?list=1')).toMatchObject([429, refused, '1']);
    expect(await ask('alice', '/v1/chat/completions', 'POST')).toMatchObject([
      429,
      { error: { type: 'rate_limit_error', code: 'TOO_MANY_READERS' } },
      '1',
    ]);
    for (const path of ['/ag-ui/pm', '/a2a/pm', '/mcp'])
      expect(await ask('alice', path, 'POST')).toMatchObject([429, refused, '1']);
    expect((await ask('alice', '/api/agents'))[0]).toBe(200); // does not stay open
    expect((await ask('bob'))[0]).toBe(200);
    first?.close();
    await expect.poll(async () => (await ask('alice'))[0]).toBe(200);
    second?.close();
  });

  it.each([
    ['view', '/api/conversations/demo/view?agent=pm'],
    ['entries', '/api/conversations/demo/entries'],
    ['turns', '/api/turns'],
  ])(
    'SEATS-2: of 20 times that one caller asks for %s at once, two are computed at a time, and posts and other callers do not wait',
    async (endpoint, path) => {
      await open();
      const held: (() => void)[] = [];
      let running = 0;
      let most = 0;
      const { answer } = daemon;
      daemon.answer = (request) => {
        if (request.endpoint !== endpoint) return answer(request);
        most = Math.max(most, ++running);
        return new Promise((resolve) =>
          held.push(() => {
            running--;
            resolve({ ok: true, body: {} });
          }),
        ) as unknown as ReturnType<typeof answer>;
      };
      const asked = Array.from({ length: 20 }, () => ask('alice', path));
      await expect.poll(() => held.length).toBe(2);
      expect((await ask('alice', '/api/agents'))[0]).toBe(200);
      for (let done = 0; done < 20; done++) {
        await expect.poll(() => held.length).toBeGreaterThan(0);
        held.shift()?.();
      }
      expect((await Promise.all(asked)).map(([status]) => status)).toEqual(Array(20).fill(200));
      expect(most).toBe(2);
    },
  );

  const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });
  const explain = { name: 'explain', arguments: { conversation: 'demo', agent: 'pm' } };
  const thread = { threadId: 'demo', runId: 'run', state: {}, messages: [], tools: [], context: [] };
  it.each<[string, string, string, object | null]>([
    ['MCP', 'view', '/mcp', rpc('tools/call', explain)],
    ['A2A', 'entries', '/a2a/parley', rpc('tasks/get', { id: 'demo.0' })],
    ['AG-UI', 'entries', '/ag-ui/parley', { ...thread, forwardedProps: {} }],
    ['an export', 'entries', '/api/conversations/demo/export', null],
    ['the events of a conversation', 'entries', '/api/conversations/demo/events', null],
    ['the events of several', 'entries', '/api/events?follow=demo', null],
  ])('SEATS-2: reads by %s count with those of the same caller', async (_, endpoint, path, body) => {
    await open();
    const held: (() => void)[] = [];
    let most = 0;
    const { answer } = daemon;
    daemon.answer = (request) => {
      if (request.endpoint === 'agents') return { ok: true, body: { agents: [{ slug: 'pm', name: 'Pam' }] } };
      if (request.endpoint === 'conversation') return { ok: true, body: { length: 1, agents: {} } };
      if (request.endpoint !== endpoint) return answer(request);
      const refused = { ok: false, refusal: { code: 'STOPPING', message: 'enough' } } as const;
      return new Promise((resolve) => held.push(() => resolve(refused))) as unknown as ReturnType<
        typeof answer
      >;
    };
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const read = async () => {
      const sent = body ? { method: 'POST', body: JSON.stringify(body) } : {};
      const response = await fetch(`${gateway.url}${path}`, {
        ...sent,
        headers: { ...bearer('alice'), ...headers },
      });
      return response.text();
    };
    const answers = [1, 2, 3, 4, 5].map(read);
    await expect.poll(() => held.length).toBe(2);
    expect((await ask('alice', '/api/agents'))[0]).toBe(200); // which computes nothing, and comes after the five
    for (let done = 0; done < 5; done++) {
      await expect.poll(() => held.length).toBeGreaterThan(0);
      most = Math.max(most, held.length);
      held.shift()?.();
    }
    expect((await Promise.all(answers)).every((text) => text.includes('enough'))).toBe(true);
    expect(most).toBe(2);
  });

  it('SEATS-1: requests that wait on their connection for the answer of another one free their places when it closes', async () => {
    await open({ readersPerCaller: 5 });
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    await once(socket, 'connect');
    const asking =
      'GET /api/conversations/demo/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer alice\r\n\r\n';
    socket.write(asking.repeat(5)); // Node gives the connection to the first one alone
    await expect.poll(() => daemon.watchers('demo')).toBe(5);
    expect((await ask('alice'))[0]).toBe(429);
    socket.destroy();
    await expect.poll(() => daemon.watchers('demo')).toBe(0);
    const readers = [];
    for (let n = 0; n < 5; n++) readers.push(await readEvents(events(), bearer('alice')));
    for (const reader of readers) reader.close();
  });

  it('an open request is refused when the limit of all callers is reached', async () => {
    await open({ readers: 2 });
    const readers = [await readEvents(events(), bearer('alice')), await readEvents(events(), bearer('bob'))];
    const refused = { status: 503, code: 'READERS_FULL', hint: expect.stringMatching(/http\.readers/) };
    expect(await ask('bob')).toMatchObject([503, refused, '1']);
    expect(daemon.watchers('demo')).toBe(2);
    for (const reader of readers) reader.close();
    await expect.poll(async () => (await ask('bob'))[0]).toBe(200);
  });

  it('a client that stops reading is disconnected and frees its place', async () => {
    await open({ readersPerCaller: 1, heartbeatMs: 50 });
    const asking = request(events(), { headers: bearer('alice') }).end();
    const [sluggard] = (await once(asking, 'response')) as [IncomingMessage];
    sluggard.pause();
    expect((await ask('alice'))[0]).toBe(429);
    const log = Array.from({ length: 200 }, () => 'x'.repeat(100_000)); // more than the buffers of the system hold
    for (const line of log) daemon.append('demo', line);
    await expect.poll(async () => (await ask('alice'))[0]).toBe(200);
    sluggard.destroy();
  }, 30_000);

  it('a client that pipelines requests and reads no answer is disconnected on every route', async () => {
    await open({ heartbeatMs: 100 });
    daemon.append('demo', 'x'.repeat(1_000_000));
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    socket.pause();
    await once(socket, 'connect');
    const ask =
      'GET /api/conversations/demo/entries HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer alice\r\n\r\n';
    socket.write(ask.repeat(80)); // more than the buffers of the system hold
    // A socket that reads nothing notices the end of the connection when it writes.
    const cut = once(socket, 'error');
    const probing = setInterval(() => socket.write('\r\n'), 50);
    const [error] = await cut;
    clearInterval(probing);
    expect(error).toMatchObject({ code: expect.stringMatching(/^(EPIPE|ECONNRESET)$/) });
    socket.destroy();
  }, 30_000);

  it('many open requests of one connection cause no warning', async () => {
    await open();
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => void warnings.push(warning);
    process.on('warning', onWarning);
    const readers = [];
    for (let n = 0; n < 12; n++) readers.push(await readEvents(events(), bearer('alice')));
    for (const reader of readers) reader.close();
    await expect.poll(() => daemon.watchers('demo')).toBe(0);
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
  });
});

describe('a client that is refused while it is still sending', () => {
  const BODY = 4_000_000;
  const half = Buffer.alloc(BODY / 2, ' ');

  /** Sends half, waits for the answer, sends the other half, and only then reads. */
  async function sendThenRead(token: string, framing: string, connection: string): Promise<string> {
    const socket: Socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    socket.on('error', () => undefined); // An error of a write rejects that write, too.
    await once(socket, 'connect');
    const head = [
      'POST /api/conversations/demo/messages HTTP/1.1',
      'Host: localhost',
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
      `Connection: ${connection}`,
      framing,
    ];
    const send = (piece: Buffer | string) =>
      new Promise<void>((resolve, reject) =>
        socket.write(piece, (error) => (error ? reject(error) : resolve())),
      );
    const isChunked = framing.startsWith('Transfer');
    const sized = (piece: Buffer) =>
      isChunked
        ? Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')])
        : piece;
    await send(`${head.join('\r\n')}\r\n\r\n`);
    const answered = once(socket, 'readable');
    await send(sized(half));
    await answered;
    await send(sized(half));
    if (isChunked) await send('0\r\n\r\n');
    socket.end();
    return await text(socket);
  }

  it.each([
    ['a token that is not known', 'mallory', `Content-Length: ${BODY}`, '401', 'UNAUTHORIZED'],
    ['a length that is too large', 'alice', `Content-Length: ${BODY}`, '413', 'TOO_LARGE'],
    ['a body that is too large', 'alice', 'Transfer-Encoding: chunked', '413', 'TOO_LARGE'],
  ])(
    'a client that is still sending can read the refusal: %s',
    async (_, token, framing, status, code) => {
      await open();
      for (const connection of ['close', 'keep-alive']) {
        const answer = await sendThenRead(token, framing, connection);
        expect([connection, answer]).toEqual([
          connection,
          expect.stringMatching(new RegExp(`^HTTP/1.1 ${status} [\\s\\S]*"code":"${code}"`)),
        ]);
      }
    },
    20_000,
  );
});
