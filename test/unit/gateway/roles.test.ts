import { afterEach, describe, expect, it } from 'vitest';
import { statusOf } from '../../../src/bus/index.ts';
import { createApplication } from '../../../src/gateway/application.ts';
import type { Token } from '../../../src/gateway/guard/access.ts';
import type { Gateway } from '../../../src/gateway/index.ts';
import { declaredRole, roleOf } from '../../../src/gateway/rest/routes.ts';
import { OneTimeCodes } from '../../../src/kernel/index.ts';
import { posting } from '../../support/http.ts';
import { createFakeDaemon, openGateway } from './support.ts';

const TOKENS: readonly Token[] = [
  { role: 'read', secret: 'reads', publisher: 'http' },
  { role: 'post', secret: 'posts', publisher: 'office', name: 'Alice' },
  { role: 'operate', secret: 'operates', publisher: null },
];

type FakeDaemon = ReturnType<typeof createFakeDaemon>;

/** Of an empty daemon that takes each post. */
const answerChats: FakeDaemon['answer'] = ({ endpoint }) => {
  if (endpoint === 'agents') return { ok: true, body: { agents: [] } };
  if (endpoint === 'conversations') return { ok: true, body: { conversations: [], next: null } };
  return { ok: true, body: { conversation: 'demo', id: 'x', index: 0, agents: [], duplicate: false } };
};

describe('the roles of routes', () => {
  let gateway: Gateway | null = null;
  afterEach(async () => {
    await gateway?.close();
    gateway = null;
  });

  function application() {
    const never = () => {
      throw new Error('nothing is asked');
    };
    return createApplication({
      daemon: never,
      wire: { decode: never, statusOf },
      version: '1',
      newId: never,
      closing: new AbortController().signal,
      tokens: TOKENS,
      codes: new OneTimeCodes(),
      known: { hosts: [], origins: [], publicUrl: null },
      maxBodyBytes: 1,
      maxHistoryBytes: 1,
      maxFileBytes: 0,
      fetch: { hosts: [] },
      requestsPerSecond: 1_000,
      readers: 1_000,
      readersPerCaller: 1_000,
      heartbeatMs: 1_000,
      readiness: async () => 'ready',
      consoleFolder: '.',
      onFault: never,
    });
  }

  it('every route declares a role', () => {
    const routes = application().routes.filter(({ path }) => path !== '/*');
    expect(routes.length).toBeGreaterThan(20);
    expect(routes.filter((route) => declaredRole(route) === undefined)).toEqual([]);
  });

  it('the OpenAPI document contains every route except the files of the console and itself', async () => {
    const app = application();
    const headers = { host: 'localhost', authorization: 'Bearer reads' };
    const answer = await app.request('http://localhost/api/openapi.json', { headers });
    const { paths } = (await answer.json()) as { paths: Record<string, object> };
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`),
    );
    const there = app.routes.flatMap(({ method, path }) => (path === '/*' ? [] : [`${method} ${path}`]));
    const undescribed = [...new Set(there)].filter((route) => !described.includes(route));
    expect(undescribed).toEqual(['GET /', 'GET /assets/:name', 'GET /api/openapi.json']);
    expect(described.filter((route) => !there.includes(route))).toEqual([]);
  });

  it('an undeclared route is allowed only to operators', async () => {
    expect(roleOf({ method: 'GET', path: '/forgotten' })).toBe('operate');
    const app = application();
    app.get('/forgotten', (context) => context.text('open'));
    const ask = (token: string) =>
      app.request('http://localhost/forgotten', {
        headers: { host: 'localhost', authorization: `Bearer ${token}` },
      });
    expect((await ask('operates')).status).toBe(200);
    const refused = await ask('posts');
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({
      code: 'FORBIDDEN',
      hint: expect.stringContaining('role operate'),
    });
  });

  it('the token decides on every route which person posts', async () => {
    const daemon = createFakeDaemon();
    gateway = (await openGateway({ tokens: TOKENS }, daemon)).gateway;
    const { url } = gateway;
    const post = (path: string, body: object, more: object = {}) =>
      fetch(`${url}${path}`, posting(body, { authorization: 'Bearer posts', ...more }));
    const messages = '/api/conversations/demo/messages';
    for (const author of [{ name: 'Bob' }, {}, null, 'Bob']) {
      const refused = await post(messages, { content: 'x', author });
      expect([author, refused.status, await refused.json()]).toMatchObject([
        author,
        403,
        { hint: 'leave `publisher` and `author` out of the body, or use other credentials' },
      ]);
    }
    expect((await post(messages, { content: 'x' })).status).toBe(201);
    expect((await post(messages, { content: 'x', author: { name: 'Alice' } })).status).toBe(201);
    daemon.answer = answerChats;
    await post('/v1/chat/completions', { model: 'parley', messages: [{ role: 'user', content: 'x' }] });
    const call = { name: 'post', arguments: { content: 'x' } };
    await post(
      '/mcp',
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call },
      { accept: 'application/json, text/event-stream' },
    ).then((answer) => answer.text());
    const posts = daemon.asked.filter(({ endpoint }) => endpoint === 'post');
    expect(posts.map(({ publisher, body }) => [publisher, (body as { author: unknown }).author])).toEqual(
      Array.from({ length: 4 }, () => ['office', { name: 'Alice' }]),
    );
  });

  it('the chats of two people of one publisher are kept apart', async () => {
    const tokens = ['Alice', 'Bob'].map(
      (name): Token => ({ role: 'post', secret: name, publisher: 'office', name }),
    );
    const daemon = createFakeDaemon();
    gateway = (await openGateway({ tokens }, daemon)).gateway;
    daemon.answer = answerChats;
    for (const { secret } of tokens)
      await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'parley', messages: [{ role: 'user', content: 'summarise' }] }),
      });
    const posts = daemon.asked.filter(({ endpoint }) => endpoint === 'post');
    expect(posts.length).toBe(2);
    expect(new Set(posts.map(({ body }) => (body as { conversation: string }).conversation)).size).toBe(2);
  });
});
