import { afterEach, describe, expect, it } from 'vitest';
import type { ApiRequest } from '../../../src/bus/port.ts';
import type { Gateway, GatewayOptions, Token } from '../../../src/gateway/index.ts';
import { createFakeDaemon, openGateway } from './support.ts';

const PAGE = 'https://console.example.org';
const KNOWN = { hosts: [], origins: [PAGE], publicUrl: null };
const TOKENS: readonly Token[] = [{ role: 'operate', secret: 'secret', publisher: null }];

const USER = { id: 'u1', role: 'user', content: 'Hello' };
const RUN = { threadId: 'demo', runId: 'r', messages: [USER], tools: [], context: [] };
const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });
const CHAT = { model: 'pm', messages: [{ role: 'user', content: 'Hello' }], stream: true };
const A2A_MESSAGE = {
  messageId: 'm1',
  contextId: 'demo',
  role: 'ROLE_USER',
  parts: [{ text: 'Hello' }],
};
const BOTH = { accept: 'application/json, text/event-stream' };

/** One event stream of each protocol: path, body, headers. */
const STREAMS: readonly (readonly [string, object | null, Record<string, string>])[] = [
  ['/api/conversations/demo/events', null, {}],
  ['/v1/chat/completions', CHAT, {}],
  ['/ag-ui/pm', RUN, {}],
  ['/a2a/pm', rpc('SendStreamingMessage', { message: A2A_MESSAGE }), { 'a2a-version': '1.0' }],
  ['/mcp', rpc('tools/call', { name: 'agents', arguments: {} }), BOTH],
];

describe('a page of another origin that `http.origins` lists', () => {
  let gateway: Gateway;
  afterEach(() => gateway.close());

  async function start(options: Partial<GatewayOptions> = {}): Promise<void> {
    const daemon = createFakeDaemon();
    const fromLogs = daemon.answer;
    daemon.append('demo', 'before');
    daemon.answer = (request: ApiRequest) => {
      if (request.endpoint === 'agents')
        return { ok: true, body: { agents: [{ slug: 'pm', name: 'Pam', description: '' }] } };
      if (request.endpoint !== 'post') return fromLogs(request);
      const { conversation } = request.body as { conversation: string };
      const [entry] = daemon.append(conversation, 'Hello');
      Object.assign(entry ?? {}, { to: ['pm'] });
      return { ok: true, body: { index: entry?.index, agents: ['pm'], duplicate: false } };
    };
    ({ gateway } = await openGateway({ known: KNOWN, heartbeatMs: 200, ...options }, daemon));
  }

  const ask = (path: string, method: string, headers: Record<string, string> = {}, body?: object | string) =>
    fetch(`${gateway.url}${path}`, {
      method,
      headers: { origin: PAGE, ...(body && { 'content-type': 'application/json' }), ...headers },
      ...(body && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
  const allowed = (answer: Response) => answer.headers.get('access-control-allow-origin');
  const list = (answer: Response, name: string) =>
    (answer.headers.get(name) ?? '').toLowerCase().split(/, */);

  it.each(STREAMS)(
    'a listed origin may read the event stream of %s, which no proxy may buffer',
    async (path, body, headers) => {
      await start();
      const answer = await ask(path, body ? 'POST' : 'GET', headers, body ?? undefined);
      await answer.body?.cancel();
      expect([answer.status, answer.headers.get('content-type')]).toEqual([
        200,
        expect.stringMatching(/^text\/event-stream/),
      ]);
      expect(allowed(answer)).toBe(PAGE);
      expect(list(answer, 'vary')).toContain('origin');
      expect(answer.headers.get('x-accel-buffering')).toBe('no');
      expect(answer.headers.get('cache-control')).toContain('no-cache, no-transform');
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    },
  );

  it.each([
    ['401', 'GET', '/api/agents', { authorization: 'Bearer wrong' }, undefined, 401],
    ['401 of /v1', 'GET', '/v1/models', { authorization: 'Bearer wrong' }, undefined, 401],
    ['403', 'GET', '/api/agents', { host: 'evil.example.org' }, undefined, 403],
    ['404', 'GET', '/nowhere', {}, undefined, 404],
    ['404 of a conversation', 'GET', '/api/conversations/none/entries', {}, undefined, 404],
    ['405', 'PUT', '/api/agents', {}, undefined, 405],
    ['413', 'POST', '/api/conversations/demo/messages', {}, { content: 'x'.repeat(20_000) }, 413],
    ['400', 'POST', '/api/conversations/demo/messages', {}, '{', 400],
    ['400 of /mcp', 'POST', '/mcp', BOTH, { nothing: true }, 400],
    ['406 of /mcp', 'POST', '/mcp', { accept: 'text/html' }, rpc('ping', {}), 406],
  ] as const)('a listed origin may read a %s', async (_, method, path, headers, body, status) => {
    await start({ tokens: TOKENS });
    const { host, ...rest } = { host: undefined, authorization: 'Bearer secret', ...headers };
    const answer = host
      ? await withHost(`${gateway.url}${path}`, { origin: PAGE, host })
      : await ask(path, method, rest, body);
    expect([answer.status, allowed(answer)]).toEqual([status, PAGE]);
    expect(list(answer, 'vary')).toContain('origin');
    expect(await answer.text()).toMatch(/"(code|jsonrpc)"/);
  });

  it('a listed origin may read a 429, a 500 and a 503, and their Retry-After', async () => {
    await start({ requestsPerSecond: 1 });
    for (let n = 0; n < 10; n++) await ask('/api/agents', 'GET');
    const limited = await ask('/api/agents', 'GET');
    expect([limited.status, allowed(limited)]).toEqual([429, PAGE]);
    expect(list(limited, 'access-control-expose-headers')).toContain('retry-after');
    await gateway.close();

    const daemon = createFakeDaemon();
    daemon.answer = () => Promise.reject(new Error('a bug'));
    ({ gateway } = await openGateway({ known: KNOWN }, daemon));
    const failed = await ask('/api/agents', 'GET');
    expect([failed.status, allowed(failed)]).toEqual([500, PAGE]);
    gateway.open(null);
    for (const path of ['/api/agents', '/readyz']) {
      const early = await ask(path, 'GET');
      expect([path, early.status, allowed(early)]).toEqual([path, 503, PAGE]);
    }
  });

  it('a listed origin may read the headers that clients use', async () => {
    await start();
    const answer = await ask('/v1/chat/completions', 'POST', {}, CHAT);
    await answer.body?.cancel();
    expect(answer.headers.get('x-parley-conversation')).toMatch(/^chat-/);
    expect(list(answer, 'access-control-expose-headers')).toEqual(
      expect.arrayContaining([
        'x-parley-conversation',
        'x-parley-unused',
        'x-parley-unknown-mentions',
        'mcp-session-id',
        'www-authenticate',
        'retry-after',
        'location',
        'allow',
      ]),
    );
  });

  it('a preflight from a listed origin allows any request header before a token is required', async () => {
    await start({ tokens: TOKENS });
    const sent = [
      ...['lang', 'package-version', 'os', 'arch', 'runtime', 'runtime-version', 'retry-count'].map(
        (name) => `x-stainless-${name}`,
      ),
      ...['authorization', 'content-type', 'last-event-id', 'mcp-session-id', 'mcp-protocol-version'],
      ...['a2a-version', 'a2a-extensions', 'x-parley-conversation', 'idempotency-key', 'traceparent'],
    ];
    for (const [path] of STREAMS) {
      const before = await ask(path, 'OPTIONS', {
        'access-control-request-method': 'POST',
        'access-control-request-headers': sent.join(','),
      });
      expect([path, before.status, allowed(before)]).toEqual([path, 204, PAGE]);
      expect(list(before, 'access-control-allow-headers')).toEqual(expect.arrayContaining(sent));
      expect(list(before, 'access-control-allow-methods')).toEqual(
        expect.arrayContaining(['get', 'post', 'delete']),
      );
      expect(Number(before.headers.get('access-control-max-age'))).toBeGreaterThan(0);
      expect(list(before, 'vary')).toEqual(
        expect.arrayContaining(['origin', 'access-control-request-headers']),
      );
      expect(before.headers.get('access-control-allow-credentials')).toBeNull();
    }
  });

  it('an origin that is not listed is allowed nothing, and each answer varies by origin', async () => {
    await start({ tokens: TOKENS });
    for (const origin of [
      'https://evil.example.org',
      'null',
      `${PAGE}.evil.example.org`,
      PAGE.toUpperCase(),
    ]) {
      const headers = { origin, authorization: 'Bearer secret' };
      const refused = [
        await ask('/api/conversations/demo/messages', 'POST', headers, { content: 'x' }),
        await ask('/api/agents', 'OPTIONS', { ...headers, 'access-control-request-method': 'POST' }),
        ...(await Promise.all(
          STREAMS.map(([path, body, more]) =>
            ask(path, body ? 'POST' : 'GET', { ...headers, ...more }, body ?? undefined),
          ),
        )),
      ];
      for (const answer of refused) {
        expect([origin, answer.status, await answer.json()]).toMatchObject([origin, 403, {}]);
        expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control-allow'))).toEqual(
          [],
        );
      }
      const open = await ask('/healthz', 'GET', headers); // These routes check no origin.
      expect([open.status, allowed(open), list(open, 'vary')]).toEqual([200, null, ['origin']]);
    }
    const none = await fetch(`${gateway.url}/healthz`);
    expect([allowed(none), none.headers.get('vary')?.toLowerCase()]).toEqual([null, 'origin']);
  });

  it('a request of another site without an origin is refused, except that a link may be followed', async () => {
    const daemon = createFakeDaemon();
    daemon.append('demo', 'before');
    ({ gateway } = await openGateway({ tokens: [] }, daemon));
    const path = `${gateway.url}/api/conversations/demo/entries`;
    const sent = async (site: string, destination: string) =>
      (await withHost(path, { 'sec-fetch-site': site, 'sec-fetch-dest': destination })).status;
    for (const site of ['cross-site', 'same-site'])
      for (const destination of ['image', 'script', 'iframe', 'object', 'empty'])
        expect([site, destination, await sent(site, destination)]).toEqual([site, destination, 403]);
    expect(daemon.asked).toEqual([]);
    for (const [site, destination] of [
      ['cross-site', 'document'],
      ['same-origin', 'empty'],
      ['none', 'document'],
    ] as const)
      expect(await sent(site, destination)).toBe(200);
  });
});

/** `fetch` sets `Host` itself. */
async function withHost(url: string, headers: Record<string, string>): Promise<Response> {
  const { request } = await import('node:http');
  return new Promise((resolve, reject) => {
    const asking = request(
      url,
      { headers: { authorization: 'Bearer secret', ...headers } },
      async (answer) => {
        let text = '';
        for await (const piece of answer) text += piece;
        const given = answer.headers as Record<string, string>;
        resolve(new Response(text, { status: answer.statusCode ?? 0, headers: given }));
      },
    );
    asking.on('error', reject).end();
  });
}
