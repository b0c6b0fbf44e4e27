import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  brotliCompressSync,
  constants,
  createBrotliCompress,
  createDeflate,
  createGzip,
  deflateSync,
  gzipSync,
} from 'node:zlib';
import { beforeEach, describe, expect, it } from 'vitest';
import { perTest, untilTestEnds } from '../../support/lifetime.ts';
import { itLong } from '../../support/long.ts';
import { type FakeDaemon, openGateway } from './support.ts';

const LIMIT = 10_000;
const PATH = '/api/conversations/demo/messages';

describe('the body of a request', () => {
  let fromLogs: FakeDaemon['answer'];
  const opened = perTest(() => openGateway({ maxBodyBytes: LIMIT }));
  const { gateway, daemon } = opened;
  beforeEach(() => {
    fromLogs = daemon.answer;
    daemon.answer = ({ endpoint }) => ({ ok: true, body: endpoint === 'agents' ? { agents: [] } : {} });
  });

  interface Answer {
    readonly status: number;
    readonly headers: IncomingMessage['headers'];
    readonly text: string;
  }

  /** In one piece with its length, or in chunks without it. */
  async function send(
    body: Buffer,
    headers: Record<string, string> = {},
    isChunked = false,
    path = PATH,
    { url } = gateway,
  ) {
    const framing = isChunked ? {} : { 'content-length': `${body.length}` };
    const type = { 'content-type': 'application/json' };
    const sent = request(`${url}${path}`, {
      method: 'POST',
      headers: { ...type, ...framing, ...headers },
      agent: false,
    });
    const answered = once(sent, 'response');
    if (isChunked) for (let at = 0; at < body.length; at += 1_000) sent.write(body.subarray(at, at + 1_000));
    sent.end(isChunked ? undefined : body);
    const [answer] = (await answered) as [IncomingMessage];
    return { status: answer.statusCode ?? 0, headers: answer.headers, text: await text(answer) } as Answer;
  }
  const json = (content: string) => Buffer.from(JSON.stringify({ content }));

  it.each([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['GZIP', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['identity', (bytes: Buffer) => bytes],
  ])('a body encoded with %s is decoded, sent whole or in chunks', async (encoding, encode) => {
    for (const isChunked of [false, true]) {
      const answer = await send(encode(json('Grüße')), { 'content-encoding': encoding }, isChunked);
      expect([isChunked, answer.status, answer.text]).toEqual([isChunked, 201, '{}']);
    }
    expect(daemon.asked.map(({ body }) => (body as { content: string }).content)).toEqual(['Grüße', 'Grüße']);
  });

  it('an encoded body is decoded on every route that has one', async () => {
    const bodies = {
      [PATH]: { content: 'x' },
      '/v1/chat/completions': { model: 'none', messages: [{ role: 'user', content: 'x' }] },
      '/ag-ui/none': { threadId: 'demo', runId: 'r', messages: [], tools: [], context: [] },
      '/a2a/parley': { jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: 'demo.0' } },
      '/mcp': { jsonrpc: '2.0', id: 1, method: 'ping' },
    };
    const headers = { 'content-encoding': 'gzip', accept: 'application/json, text/event-stream' };
    for (const [path, body] of Object.entries(bodies)) {
      const { text: said } = await send(gzipSync(JSON.stringify(body)), headers, false, path);
      expect([path, said]).toEqual([path, expect.not.stringMatching(/MALFORMED|INVALID_UTF8|-32700/)]);
      const bomb = await send(gzipSync(Buffer.alloc(1_000_000, ' ')), headers, false, path);
      expect([path, bomb.status]).toEqual([path, 413]);
    }
  });

  it.each([
    ['gzip', createGzip],
    ['deflate', createDeflate],
    ['br', () => createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: 4 } })],
  ])(
    'a body that %s expands beyond the limit is refused and not decoded further',
    async (encoding, encoder) => {
      const large = untilTestEnds(await openGateway({ maxBodyBytes: 1_000_000 }));
      const spaces = Readable.from(repeated(Buffer.alloc(1_000_000, ' '), 100));
      const bomb = await buffer(spaces.pipe(encoder()));
      expect(bomb.length).toBeLessThan(1_000_000);
      const before = process.resourceUsage().maxRSS;
      const { status, text: said } = await send(
        bomb,
        { 'content-encoding': encoding },
        false,
        PATH,
        large.gateway,
      );
      expect([status, said]).toEqual([413, expect.stringContaining('"code":"TOO_LARGE"')]);
      expect(process.resourceUsage().maxRSS - before).toBeLessThan(50_000); // kB
      expect(large.daemon.asked).toEqual([]);
    },
  );

  it('a body of few bytes expands to 1 MiB, and not to everything that a body may have (BODY-4)', async () => {
    const large = untilTestEnds(await openGateway({ maxBodyBytes: 10_000_000 }));
    const sent = (body: Buffer, headers = {}) => send(body, headers, false, PATH, large.gateway);
    const packed = (body: Buffer) => sent(gzipSync(body), { 'content-encoding': 'gzip' });
    expect((await packed(json('x'.repeat(1_000_000)))).status).toBe(201);
    const dense = json('x'.repeat(2_000_000));
    expect(await packed(dense)).toMatchObject({
      status: 413,
      text: expect.stringContaining('send it without Content-Encoding'),
    });
    expect((await sent(dense)).status).toBe(201);
    expect((await packed(json(randomBytes(1_500_000).toString('base64')))).status).toBe(201);
  });

  it('of the bodies above 1 MiB, eight of one caller are read at a time; small ones and other callers do not wait (BODY-5)', async () => {
    const token = (name: string) => ({ role: 'operate' as const, secret: name, publisher: name });
    const options = { maxBodyBytes: 10_000_000, tokens: [token('alice'), token('bob')] };
    const large = untilTestEnds(await openGateway(options));
    const dense = json('x'.repeat(2_000_000));
    const as = (name: string) => ({ authorization: `Bearer ${name}`, 'content-type': 'application/json' });
    const unfinished = Array.from({ length: 8 }, () => {
      const sent = request(`${large.gateway.url}${PATH}`, { method: 'POST', headers: as('alice') });
      sent.once('error', () => undefined).write(dense);
      return sent;
    });
    const sent = async (name: string, body: Buffer) =>
      (await send(body, as(name), false, PATH, large.gateway)).status;
    await pause(300); // their first MiB has arrived
    let ninth: number | null = null;
    void sent('alice', dense).then((status) => (ninth = status));
    expect(await sent('bob', dense)).toBe(201);
    await pause(300);
    expect(await sent('alice', json('x'))).toBe(201);
    expect(ninth).toBeNull();
    unfinished.pop()?.destroy();
    await expect.poll(() => ninth).toBe(201);
    for (const one of unfinished) one.destroy();
  });

  it.each([
    ['length', false],
    ['chunks', true],
  ])('a body may be as large as the limit and no larger, measured by %s', async (_, isChunked) => {
    const most = json('x'.repeat(LIMIT - json('').length));
    expect((await send(most, {}, isChunked)).status).toBe(201);
    expect((await send(gzipSync(most), { 'content-encoding': 'gzip' }, isChunked)).status).toBe(201);
    const more = json('x'.repeat(LIMIT - json('').length + 1));
    for (const [body, headers] of [
      [more, {}],
      [gzipSync(more), { 'content-encoding': 'gzip' }],
    ] as const)
      expect((await send(body, headers, isChunked)).status).toBe(413);
  });

  it.each(['zstd', 'compress', 'gzip, gzip', 'constructor'])(
    'the content encoding %j is refused with a list of the supported ones',
    async (encoding) => {
      const { status, headers, text: said } = await send(json('x'), { 'content-encoding': encoding });
      expect([status, headers['accept-encoding']]).toEqual([415, 'gzip, deflate, br']);
      expect(JSON.parse(said)).toMatchObject({
        code: 'UNSUPPORTED_MEDIA_TYPE',
        hint: expect.stringContaining('gzip'),
      });
    },
  );

  it.each([
    ['is not encoded', (whole: Buffer) => whole],
    ['is cut off', (whole: Buffer) => gzipSync(whole).subarray(0, -9)],
  ])('a body that says gzip and %s is refused', async (_, encode) => {
    const { status, text: said } = await send(encode(json('x')), { 'content-encoding': 'gzip' });
    expect([status, said]).toEqual([400, expect.stringContaining('the body is not valid gzip')]);
  });

  it.each(['utf-16', 'iso-8859-1', '"latin1"'])('a body in the charset %s is refused', async (charset) => {
    const type = { 'content-type': `application/json; charset=${charset}` };
    expect((await send(Buffer.from('{"content":"x"}'), type)).status).toBe(415);
    expect((await send(json('x'), { 'content-type': 'application/json; charset="UTF-8"' })).status).toBe(201);
  });

  it.each(['Content-Length: 100', 'Transfer-Encoding: chunked'])(
    'a body that ends early (%s) is not an error of the daemon and calls nothing',
    async (framing) => {
      const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
      await once(socket, 'connect');
      const head = [`POST ${PATH} HTTP/1.1`, 'Host: localhost', 'Content-Type: application/json', framing];
      socket.write(`${head.join('\r\n')}\r\n\r\n${framing.startsWith('T') ? '5\r\n{"con\r\n' : '{"con'}`);
      await pause(50);
      socket.destroy();
      await pause(100);
      expect([daemon.asked, opened.faults]).toEqual([[], []]);
    },
  );

  itLong(
    'a body in chunks lets the route detect that its client has disconnected, also after a garbage collection',
    async () => {
      setFlagsFromString('--expose-gc');
      const collect = runInNewContext('gc') as () => void;
      const post = { name: 'post', arguments: { content: 'x', waitSeconds: 600 } };
      const call = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: post }));
      daemon.answer = (asked) => {
        const { endpoint, body } = asked;
        if (endpoint !== 'post') return fromLogs(asked);
        const { conversation } = body as { conversation: string };
        const [entry] = daemon.append(conversation, 'x');
        return {
          ok: true,
          body: { conversation, id: 'x', index: entry?.index, agents: ['pm'], duplicate: false },
        };
      };
      const sent = request(`${gateway.url}/mcp`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      });
      sent.on('error', () => undefined);
      const answered = once(sent, 'response');
      sent.write(call.subarray(0, 20));
      sent.end(call.subarray(20));
      const [answer] = (await answered) as [IncomingMessage];
      answer.on('error', () => undefined).resume();
      await expect.poll(() => [...daemon.logs.keys()].map((id) => daemon.watchers(id))).toEqual([1]);
      const [conversation = ''] = daemon.logs.keys();
      for (let n = 0; n < 5; n += 1) {
        await pause(20);
        collect();
      }
      sent.destroy();
      await expect.poll(() => daemon.watchers(conversation)).toBe(0);
    },
  );
});

function* repeated<T>(value: T, times: number): Generator<T> {
  for (let n = 0; n < times; n += 1) yield value;
}
