import { beforeEach, describe, expect, it } from 'vitest';
import type { Token } from '../../../src/gateway/index.ts';
import { perTest } from '../../support/lifetime.ts';
import { openGateway } from './support.ts';

const TOKENS: readonly Token[] = [{ role: 'read', secret: 'reads', publisher: null }];

describe('a method that a known path does not support', () => {
  const opened = perTest(() => openGateway());
  const { gateway, daemon } = opened;
  beforeEach(() => {
    daemon.answer = () => ({ ok: true, body: { agents: [] } });
  });

  const ask = (path: string, method: string, headers: Record<string, string> = {}) =>
    fetch(`${gateway.url}${path}`, { method, headers });

  it.each([
    ['/api/agents', 'POST', 'GET, HEAD, OPTIONS'],
    ['/api/conversations', 'DELETE', 'GET, HEAD, POST, OPTIONS'],
    ['/api/conversations/demo', 'PUT', 'GET, HEAD, DELETE, OPTIONS'],
    ['/api/conversations/demo/messages', 'GET', 'POST, OPTIONS'],
    ['/api/conversations/demo/messages', 'HEAD', 'POST, OPTIONS'],
    ['/api/conversations/demo/events', 'POST', 'GET, HEAD, OPTIONS'],
    ['/api/approvals/a', 'PATCH', 'POST, OPTIONS'],
    ['/api/openapi.json', 'POST', 'GET, HEAD, OPTIONS'],
    ['/metrics', 'POST', 'GET, HEAD, OPTIONS'],
    ['/healthz', 'POST', 'GET, HEAD, OPTIONS'],
    ['/v1/models', 'POST', 'GET, HEAD, OPTIONS'],
    ['/v1/chat/completions', 'GET', 'POST, OPTIONS'],
    ['/ag-ui/pm', 'GET', 'POST, OPTIONS'],
    ['/a2a', 'POST', 'GET, HEAD, OPTIONS'],
    ['/a2a/pm', 'GET', 'POST, OPTIONS'],
    ['/a2a/pm/.well-known/agent-card.json', 'POST', 'GET, HEAD, OPTIONS'],
    ['/.well-known/agent-card.json', 'DELETE', 'GET, HEAD, OPTIONS'],
    ['/mcp', 'GET', 'POST, OPTIONS'], // It has no sessions to read or to end.
    ['/mcp', 'DELETE', 'POST, OPTIONS'],
    ['/', 'POST', 'GET, HEAD, OPTIONS'],
  ])('%s refuses %s and lists the methods that it supports', async (path, method, allow) => {
    const refused = await ask(path, method);
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, allow]);
    expect(refused.headers.get('x-content-type-options')).toBe('nosniff');
    if (method !== 'HEAD') {
      const text = await refused.text();
      expect(text).toContain('"code":"METHOD_NOT_ALLOWED"');
      expect(text).toContain(`use ${allow.split(', ')[0]}`);
    }
    const options = await ask(path, 'OPTIONS');
    expect([options.status, options.headers.get('allow'), await options.text()]).toEqual([204, allow, '']);
    expect(options.headers.get('content-type')).toBeNull();
    expect(daemon.asked).toEqual([]);
  });

  it('a missing object at a known path is 404 and not 405', async () => {
    daemon.answer = () => ({ ok: false, refusal: { code: 'NOT_FOUND', message: 'none' } });
    for (const [path, method] of [
      ['/api/conversations/none', 'GET'],
      ['/api/conversations/none', 'DELETE'],
      ['/assets/none.js', 'GET'],
      ['/nowhere', 'POST'],
      ['/nowhere', 'OPTIONS'],
    ] as const)
      expect([path, (await ask(path, method)).status]).toEqual([path, 404]);
  });

  it('the methods of a path are listed only for callers with a token', async () => {
    await gateway.close();
    Object.assign(opened, await openGateway({ tokens: TOKENS }));
    for (const [method, path] of [
      ['PUT', '/api/agents'],
      ['OPTIONS', '/api/agents'],
    ] as const) {
      const refused = await ask(path, method);
      expect([refused.status, refused.headers.get('allow')]).toEqual([401, null]);
    }
    expect((await ask('/api/agents', 'PUT', { authorization: 'Bearer reads' })).status).toBe(405);
  });
});

describe('an unusual request', () => {
  const { gateway, daemon } = perTest(() => openGateway({ tokens: TOKENS }));
  beforeEach(() => {
    daemon.append('demo', 'zero');
  });
  const bearer = { authorization: 'Bearer reads' };

  it.each(['/api/conversations/demo/entries', '/api/openapi.json', '/healthz', '/metrics'])(
    'HEAD returns the headers of GET %s and no body',
    async (path) => {
      const whole = await fetch(`${gateway.url}${path}`, { headers: bearer });
      const head = await fetch(`${gateway.url}${path}`, { method: 'HEAD', headers: bearer });
      expect([head.status, await head.text()]).toEqual([whole.status, '']);
      expect(head.headers.get('content-type')).toBe(whole.headers.get('content-type'));
    },
  );

  it('HEAD for an event stream subscribes to nothing', async () => {
    const head = await fetch(`${gateway.url}/api/conversations/demo/events`, {
      method: 'HEAD',
      headers: bearer,
    });
    expect([head.status, head.headers.get('content-type')]).toEqual([
      200,
      'text/event-stream; charset=utf-8',
    ]);
    await expect.poll(() => daemon.watchers('demo')).toBe(0);
  });

  it.each(['/api/conversations/demo/entries/', '/v1/models/', '/healthz/'])(
    'the path %s with a slash at the end is the same path without it',
    async (path) => {
      if (path.startsWith('/v1')) daemon.answer = () => ({ ok: true, body: { agents: [] } });
      expect((await fetch(`${gateway.url}${path}`, { headers: bearer })).status).toBe(200);
      if (path !== '/healthz/') expect((await fetch(`${gateway.url}${path}`)).status).toBe(401);
    },
  );

  it.each([
    ['/v1/nothing', 'openai'],
    ['/v1', 'openai'],
    ['/v1x', 'problem'],
    ['/mcp/nothing', 'problem'],
    ['/api/nothing', 'problem'],
  ])('the unknown path %s is refused in the error format of %s', async (path, form) => {
    const refused = await fetch(`${gateway.url}${path}`, { headers: bearer });
    expect(refused.status).toBe(404);
    const code = { code: 'NOT_FOUND' };
    expect(await refused.json()).toMatchObject(form === 'openai' ? { error: code } : code);
  });

  it.each(['/api/agents', '/v1/models', '/mcp', '/a2a/pm', '/ag-ui/pm'])(
    'a request for %s without a token learns which kind of token is needed',
    async (path) => {
      const refused = await fetch(`${gateway.url}${path}`);
      expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
      expect(Number(refused.headers.get('content-length'))).toBeGreaterThan(0);
    },
  );
});
