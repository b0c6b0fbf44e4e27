import { request } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { createRateLimit } from '../../../src/gateway/guard/limits.ts';
import type { Gateway, GatewayOptions, Token } from '../../../src/gateway/index.ts';
import { type FakeDaemon, openGateway } from './support.ts';

const TOKENS: readonly Token[] = [
  { role: 'read', secret: 'reads', publisher: 'http' },
  { role: 'post', secret: 'posts', publisher: 'alice' },
  { role: 'approve', secret: 'approves', publisher: 'bob' },
  { role: 'operate', secret: 'operates', publisher: null },
];

describe('the guard of the routes', () => {
  let gateway: Gateway;
  let daemon: FakeDaemon;
  afterEach(() => gateway.close());
  const open = async (options: Partial<GatewayOptions> = {}) => {
    ({ gateway, daemon } = await openGateway({ requestsPerSecond: 1_000, ...options }));
  };

  /** `fetch` sets `Host` itself. This sends any header. */
  const ask = (path: string, headers: Record<string, string> = {}, method = 'GET', body?: object) =>
    new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; code: unknown }>(
      (resolve, reject) => {
        const all = body ? { 'content-type': 'application/json', ...headers } : headers;
        const asking = request(
          `${gateway.url}${path}`,
          { method, headers: all, agent: false },
          async (response) => {
            let text = '';
            for await (const piece of response) text += piece;
            const json = text === '' ? {} : JSON.parse(text);
            const code = json.code ?? json.error?.code;
            resolve({ status: response.statusCode ?? 0, headers: response.headers, code });
          },
        );
        asking.on('error', reject).end(body && JSON.stringify(body));
      },
    );
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

  it.each<[string, string, string, object | undefined, string[]]>([
    ['reads', 'GET', '/api/conversations', undefined, ['reads', 'posts', 'approves', 'operates']],
    ['reads models', 'GET', '/v1/models/parley', undefined, []],
    ['posts', 'POST', '/api/conversations/demo/messages', { content: 'x' }, ['posts', 'operates']],
    ['approves', 'POST', '/api/approvals/a1', { answer: 'deny' }, ['approves', 'operates']],
    ['operates', 'POST', '/api/conversations/demo/stop', {}, ['operates']],
    ['deletes', 'DELETE', '/api/conversations/demo', undefined, ['operates']],
  ])(
    'a route is open only to tokens with its role: a caller who %s',
    async (_, method, path, body, allowed) => {
      await open({ tokens: TOKENS });
      if (path.startsWith('/v1')) return expect((await ask(path)).status).toBe(401);
      for (const { secret } of TOKENS) {
        const { status } = await ask(path, bearer(secret), method, body);
        expect([secret, status]).toEqual([
          secret,
          allowed.includes(secret) ? expect.toSatisfy((n) => n < 300) : 403,
        ]);
      }
      for (const wrong of [{}, bearer(''), bearer('wrong'), { authorization: 'Basic reads' }]) {
        expect(await ask(path, wrong, method, body)).toMatchObject({ status: 401, code: 'UNAUTHORIZED' });
      }
      expect(daemon.asked.length).toBe(allowed.length);
    },
  );

  it.each([
    '/.well-known/oauth-protected-resource',
    '/.well-known/oauth-protected-resource/mcp',
    '/.well-known/oauth-authorization-server',
    '/.well-known/openid-configuration',
    '/mcp/.well-known/openid-configuration',
  ])(
    'a client that looks for the metadata of OAuth learns without a token that there is none: %s',
    async (path) => {
      await open({ tokens: TOKENS });
      expect(await ask(path)).toMatchObject({ status: 404, code: 'NOT_FOUND' });
      expect(await ask(path, { host: 'evil.example' })).toMatchObject({ status: 403 });
      expect(await ask('/nothing/.well-known/x')).toMatchObject({ status: 401 });
    },
  );

  it('requests are counted by token, and by address without a valid token', async () => {
    await open({ tokens: TOKENS, requestsPerSecond: 1 });
    const many = async (headers: Record<string, string>) => {
      const all = Array.from({ length: 12 }, () => ask('/api/agents', headers));
      return (await Promise.all(all)).map(({ status }) => status);
    };
    const guesses = await many(bearer('wrong'));
    expect(new Set(guesses)).toEqual(new Set([401, 429]));
    expect(await ask('/api/agents', bearer('reads'))).toMatchObject({ status: 200 });
    expect(await many(bearer('reads'))).toContain(429);
    expect(await ask('/api/agents', bearer('operates'))).toMatchObject({ status: 200 });
  });

  it('a token acts as its own publisher and no other', async () => {
    await open({ tokens: TOKENS });
    const post = (token: string, body: object) =>
      ask('/api/conversations/demo/messages', bearer(token), 'POST', { content: 'x', ...body });
    expect(await post('posts', { publisher: 'mallory' })).toMatchObject({ status: 403, code: 'FORBIDDEN' });
    await post('posts', {});
    await post('operates', { publisher: 'carol' });
    expect(daemon.asked).toMatchObject([
      { publisher: 'alice', body: { publisher: 'alice' } },
      { publisher: null, body: { publisher: 'carol' } },
    ]);
  });

  it.each<[string, number]>([
    ['127.0.0.1:7420', 200],
    ['[::1]:7420', 200],
    ['LOCALHOST', 200],
    ['parley.example.org', 200],
    ['evil.example.org', 403],
    ['127.0.0.1.evil.example.org', 403],
  ])('the guard checks the host: %j gets %i', async (host, status) => {
    await open({ known: { hosts: ['parley.example.org'], origins: [], publicUrl: null } });
    expect((await ask('/api/agents', { host })).status).toBe(status);
    expect((await ask('/healthz', { host })).status).toBe(200);
  });

  it.each<[string, number]>([
    ['https://console.example.org', 200],
    ['https://evil.example.org', 403],
    ['null', 403],
    ['http://localhost:1', 403],
  ])('the guard checks the origin: %s gets %i', async (origin, status) => {
    await open({ known: { hosts: [], origins: ['https://console.example.org'], publicUrl: null } });
    const answer = await ask('/api/agents', { origin });
    expect(answer.status).toBe(status);
    expect(answer.headers['access-control-allow-origin']).toBe(status === 200 ? origin : undefined);
  });

  it.each<[string, string | null, string, number]>([
    ['http', null, 'a page that it served', 200],
    ['https', null, 'a page of another origin', 403],
    ['https', 'https://parley.example.org/team', 'a page that its proxy serves', 200],
    ['http', 'https://parley.example.org/team', 'a page that it served', 200],
    ['https', 'http://parley.example.org', 'a page of another origin', 403],
  ])(
    'the guard compares the scheme of an origin: %s with the public address %s is %s',
    async (scheme, publicUrl, _, status) => {
      await open({ known: { hosts: ['parley.example.org'], origins: [], publicUrl } });
      const headers = { host: 'parley.example.org', origin: `${scheme}://parley.example.org` };
      expect((await ask('/api/agents', headers)).status).toBe(status);
    },
  );

  it('the host of the public address is a known host', async () => {
    await open({ known: { hosts: [], origins: [], publicUrl: 'https://Team.Example.org' } });
    expect((await ask('/api/agents', { host: 'team.example.org' })).status).toBe(200);
    expect((await ask('/api/agents', { host: 'example.org' })).status).toBe(403);
  });

  it("the daemon's own pages are allowed, and their preflight requests are answered", async () => {
    await open({
      known: { hosts: [], origins: ['https://console.example.org'], publicUrl: null },
      tokens: TOKENS,
    });
    expect((await ask('/api/agents', { origin: gateway.url, ...bearer('reads') })).status).toBe(200);
    const preflight = {
      origin: 'https://console.example.org',
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'authorization',
    };
    const before = await ask('/api/agents', preflight, 'OPTIONS');
    expect(before).toMatchObject({
      status: 204,
      headers: { 'access-control-allow-headers': expect.stringContaining('authorization') },
    });
  });

  it('every answer forbids its use as a page, and sets no cookie', async () => {
    await open({ tokens: TOKENS });
    for (const path of ['/healthz', '/api/agents', '/nowhere']) {
      const { headers } = await ask(path);
      expect(headers['content-security-policy']).toContain("default-src 'none'");
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['set-cookie']).toBeUndefined();
    }
  });

  it('a caller over the rate limit is refused with an error in the protocol of each route', async () => {
    await open({ requestsPerSecond: 1 });
    for (let n = 0; n < 10; n++) await ask('/api/agents');
    const [rest, openai] = [await ask('/api/agents'), await ask('/v1/models')];
    expect(rest).toMatchObject({ status: 429, code: 'RATE_LIMITED', headers: { 'retry-after': '1' } });
    expect(openai).toMatchObject({ status: 429, code: 'RATE_LIMITED', headers: { 'retry-after': '1' } });
    expect((await ask('/healthz')).status).toBe(200);
  });
});

describe('a rate limit', () => {
  it('a rate limit allows a burst of ten seconds, refills, and is separate for each caller', () => {
    let now = 0;
    const rate = createRateLimit(2, () => now);
    const taken = (caller: string) => {
      let count = 0;
      while (rate.take(caller)) count++;
      return count;
    };
    expect([taken('a'), taken('b')]).toEqual([20, 20]);
    now = 1_500;
    expect(taken('a')).toBe(3);
    now = 60_000;
    expect(taken('a')).toBe(20);
  });
});
