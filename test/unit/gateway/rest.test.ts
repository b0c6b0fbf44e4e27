import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { NAME_PATTERN } from '../../../src/conversation/index.ts';
import { conversationOf } from '../../../src/gateway/client-ids.ts';
import { prefixOf } from '../../../src/gateway/openai/pick.ts';
import { readChatRequest } from '../../../src/gateway/openai/request.ts';
import { anyCharacter } from '../../support/characters.ts';
import { perTest } from '../../support/lifetime.ts';
import { openGateway } from './support.ts';

// biome-ignore lint/suspicious/noExplicitAny: it is looked into, as a reader of the document does
type Described = { openapi: string; paths: Record<string, Record<string, any>> };

const MESSAGES = '/api/conversations/demo/messages';

describe('the REST routes', () => {
  const opened = perTest(() => openGateway());
  const { gateway, daemon } = opened;
  beforeEach(() => {
    daemon.answer = () => ({ ok: true, body: { done: true } });
  });

  const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    fetch(`${gateway.url}${path}`, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      body: typeof body === 'string' || body === undefined ? body : JSON.stringify(body),
    });

  it.each<[string, string, object]>([
    ['GET /api/conversations', 'conversations', {}],
    ['GET /api/conversations?after=a&limit=2', 'conversations', { after: 'a', limit: 2 }],
    ['GET /api/status?limit=2', 'status', { limit: 2 }],
    ['GET /api/status?limit=1&days=14', 'status', { limit: 1, days: 14 }],
    ['GET /api/search?q=a+b&agent=dev&limit=2', 'search', { q: 'a b', agent: 'dev', limit: 2 }],
    ['GET /api/search?q=x&before=2026-01-01T00:00:00Z', 'search', { q: 'x', before: '2026-01-01T00:00:00Z' }],
    ['GET /api/approvals', 'approvals', {}],
    ['GET /api/approvals/a1/change', 'change', { approvalId: 'a1' }],
    ['GET /api/agents', 'agents', {}],
    ['GET /api/agents?persona=pm', 'agents', { persona: 'pm' }],
    ['GET /api/dead-letters?code=UNKNOWN_AGENT&before=9', 'dead', { code: 'UNKNOWN_AGENT', before: 9 }],
    ['GET /api/dead-letters/9', 'dead-letter', { sequence: 9 }],
    ['POST /api/dead-letters/9/retry', 'dead-retry', { sequence: 9 }],
    ['DELETE /api/dead-letters/9', 'dead-discard', { sequence: 9 }],
    ['GET /api/tools', 'tools', {}],
  ])('%s calls one request of the API', async (route, endpoint, request) => {
    const [method = '', path = ''] = route.split(' ');
    const answer = await call(method, path);
    expect([answer.status, await answer.json()]).toEqual([200, { done: true }]);
    expect(daemon.asked).toEqual([{ endpoint, publisher: null, mayOperate: true, body: request }]);
  });

  it.each<[string, string, object]>([
    ['GET ', 'conversation', {}],
    ['DELETE ', 'delete', {}],
    ['DELETE ?lastEntryBefore=2026-01-01T00:00:00Z', 'delete', { lastEntryBefore: '2026-01-01T00:00:00Z' }],
    ['GET /entries?from=5', 'entries', { from: 5 }],
    ['GET /approvals', 'approvals', {}],
    ['GET /view?agent=pm&at=3', 'view', { agent: 'pm', at: 3 }],
    [
      'GET /view?agent=pm&texts=persona,tool.read_file',
      'view',
      { agent: 'pm', texts: ['persona', 'tool.read_file'] },
    ],
  ])('%s below a conversation calls one request of the API about it', async (route, endpoint, request) => {
    const [method = '', path = ''] = route.split(' ');
    const answer = await call(method, `/api/conversations/demo${path}`);
    expect([answer.status, await answer.json()]).toEqual([200, { done: true }]);
    const body = { conversation: 'demo', ...request };
    expect(daemon.asked).toEqual([{ endpoint, publisher: null, mayOperate: true, body }]);
  });

  it.each<[string, object | undefined, string, object]>([
    ['/conversations/demo/label', { title: 'New', archived: true }, 'label', { conversation: 'demo' }],
    ['/conversations/demo/phase', { phase: 'plan' }, 'phase', { conversation: 'demo' }],
    ['/conversations/demo/mode', { mode: 'run', workflow: 'w' }, 'mode', { conversation: 'demo' }],
    ['/conversations/demo/stop', undefined, 'stop', { conversation: 'demo' }],
    ['/conversations/demo/resume', { agent: 'dev', publisher: 'alice' }, 'resume', { conversation: 'demo' }],
    ['/approvals/a1', { answer: 'approve' }, 'answer', { approvalId: 'a1' }],
  ])(
    'POST /api%s calls one request of the API in the name of its publisher',
    async (path, sent, endpoint, named) => {
      const answer = await call('POST', `/api${path}`, sent);
      expect([answer.status, await answer.json()]).toEqual([200, { done: true }]);
      const body = { publisher: 'http', ...named, ...sent };
      expect(daemon.asked).toEqual([{ endpoint, publisher: null, mayOperate: true, body }]);
    },
  );

  it('other arguments of a call are in the body of the request for its change, which names no publisher', async () => {
    const answer = await call('POST', '/api/approvals/a1/change', { arguments: { path: 'a' } });
    expect([answer.status, await answer.json()]).toEqual([200, { done: true }]);
    const body = { approvalId: 'a1', arguments: { path: 'a' } };
    expect(daemon.asked).toEqual([{ endpoint: 'change', publisher: null, mayOperate: true, body }]);
  });

  it('posting a message creates the conversation, whose name may be omitted', async () => {
    const posted = await call('POST', MESSAGES, { content: 'Hi', publisher: 'alice' });
    expect(posted.status).toBe(201);
    await call('POST', '/api/conversations', { content: 'Hi', conversation: 'mine' });
    await call('POST', '/api/conversations', { content: 'Hi' });
    expect(daemon.asked.map(({ body }) => body)).toEqual([
      { conversation: 'demo', content: 'Hi', publisher: 'alice' },
      { conversation: 'mine', content: 'Hi', publisher: 'http' },
      { conversation: expect.stringMatching(/^[0-9A-Z]{26}$/), content: 'Hi', publisher: 'http' },
    ]);
  });

  it.each<[string, number]>([
    ['NOT_FOUND', 404],
    ['BAD_REQUEST', 400],
    ['ID_CONFLICT', 409],
    ['FORBIDDEN', 403],
    ['TOO_MANY_CONVERSATIONS', 429],
    ['TOO_LARGE', 413],
    ['LOG_WRITE_FAILED', 503],
    ['INTERNAL', 500],
  ])('the error %s is a problem document with status %i', async (code, status) => {
    daemon.answer = () => ({ ok: false, refusal: { code, message: 'what happened', hint: 'what to do' } });
    const answer = await call('GET', '/api/agents');
    expect(answer.headers.get('content-type')).toBe('application/problem+json');
    const title = expect.stringMatching(/\w/);
    const problem = { type: 'about:blank', title, status, detail: 'what happened', code, hint: 'what to do' };
    expect([answer.status, await answer.json()]).toEqual([status, problem]);
  });

  it.each<[string, unknown, number, string, path?: string, type?: string]>([
    ['broken JSON', '{"content":', 400, 'MALFORMED_JSON'],
    ['a body that is no object', '["x"]', 400, 'BAD_REQUEST'],
    ['a form', 'content=x', 415, 'UNSUPPORTED_MEDIA_TYPE', MESSAGES, 'text/plain'],
    ['a field that the path says', { conversation: 'other', content: 'x' }, 400, 'BAD_REQUEST'],
    ['too large a body', { content: 'x'.repeat(20_000) }, 413, 'TOO_LARGE'],
    ['an unknown query', { content: 'x' }, 400, 'BAD_REQUEST', `${MESSAGES}?surprise=1`],
  ])('the REST route refuses %s and calls nothing', async (_, body, status, code, path = MESSAGES, type) => {
    const headers: Record<string, string> = type ? { 'content-type': type } : {};
    const answer = await call('POST', path, body, headers);
    expect([answer.status, await answer.json()]).toMatchObject([status, { code }]);
    expect(daemon.asked).toEqual([]);
  });

  it('the error for an unreadable body repeats none of it', async () => {
    const answer = await call('POST', MESSAGES, '{"content":geheim}');
    expect([answer.status, await answer.text()]).toEqual([400, expect.not.stringContaining('geheim')]);
  });

  it('the answer to an internal error refers to the log and contains no details', async () => {
    daemon.answer = () => Promise.reject(new Error('secret detail'));
    const answer = await call('GET', '/api/agents');
    expect([answer.status, await answer.text()]).toEqual([500, expect.not.stringContaining('secret detail')]);
    expect(opened.faults).toEqual([new Error('secret detail')]);
  });

  it('the OpenAPI document describes every path with the fields that it reads', async () => {
    const document = (await (await call('GET', '/api/openapi.json')).json()) as Described;
    expect(document.openapi).toBe('3.1.0');
    expect(Object.keys(document.paths).filter((path) => path.startsWith('/api/'))).toEqual([
      '/api/conversations',
      '/api/conversations/{conversation}',
      '/api/conversations/{conversation}/messages',
      '/api/conversations/{conversation}/results',
      '/api/conversations/{conversation}/feedback',
      '/api/conversations/{conversation}/entries',
      '/api/conversations/{conversation}/view',
      '/api/conversations/{conversation}/label',
      '/api/conversations/{conversation}/phase',
      '/api/conversations/{conversation}/mode',
      '/api/conversations/{conversation}/fork',
      '/api/conversations/{conversation}/hire',
      '/api/conversations/{conversation}/dismiss',
      '/api/conversations/{conversation}/what-if',
      '/api/conversations/{conversation}/stop',
      '/api/conversations/{conversation}/resume',
      '/api/conversations/{conversation}/what-ifs',
      '/api/conversations/{conversation}/what-ifs/{id}',
      '/api/conversations/{conversation}/what-ifs/{id}/stop',
      '/api/conversations/{conversation}/approvals',
      '/api/search',
      '/api/reading',
      '/api/turns',
      '/api/approvals',
      '/api/approvals/{approvalId}/change',
      '/api/approvals/{approvalId}',
      '/api/agents',
      '/api/reload',
      '/api/tools',
      '/api/status',
      '/api/dead-letters',
      '/api/dead-letters/{sequence}',
      '/api/dead-letters/{sequence}/retry',
      '/api/phases',
      '/api/workflows',
      '/api/conversations/{conversation}/export',
      '/api/blobs',
      '/api/conversations/{conversation}/blobs/{sha256}',
      '/api/conversations/{conversation}/events',
      '/api/events',
      '/api/identity',
      '/api/session',
    ]);
    const { parameters, responses } = document.paths['/api/conversations/{conversation}']?.delete ?? {};
    expect(parameters.map(({ name }: { name: string }) => name)).toEqual(['conversation', 'lastEntryBefore']);
    const kinds = responses[200].content['application/json'].schema.oneOf as {
      properties: { deleted: { const: boolean } };
    }[];
    expect(kinds.map(({ properties }) => [properties.deleted.const, Object.keys(properties)])).toEqual([
      [true, ['deleted', 'existed', 'erased', 'left', 'notReached']],
      [false, ['deleted', 'existed', 'kept']],
    ]);
    const post = document.paths['/api/conversations/{conversation}/messages']?.post;
    const body = post.requestBody.content['application/json'].schema;
    expect(body.required).toBeUndefined();
    expect(Object.keys(body.properties)).toEqual(
      expect.arrayContaining(['content', 'id', 'to', 'delivery', 'author', 'meta', 'publisher']),
    );
    const view = document.paths['/api/conversations/{conversation}/view']?.get;
    expect(view.parameters).toMatchObject([
      { in: 'path', name: 'conversation', required: true, schema: { type: 'string' } },
      { in: 'query', name: 'agent', required: false },
      { in: 'query', name: 'at', required: false, schema: { type: 'integer' } },
      { in: 'query', name: 'texts', required: false, explode: false, schema: { type: 'array' } },
      {
        ...{ name: 'body', in: 'query', required: false },
        schema: { anyOf: [{ type: 'boolean' }, { type: 'string', const: 'prompt' }] },
      },
    ]);
    const chat = document.paths['/v1/chat/completions']?.post;
    expect(chat.externalDocs.url).toMatch(/^https:/);
    expect(chat.requestBody.content['application/json'].schema.required).toEqual(['model', 'messages']);
    const run = document.paths['/ag-ui/{agent}']?.post.requestBody.content['application/json'].schema;
    expect(run.required).toEqual(expect.arrayContaining(['threadId', 'runId', 'messages']));
    const ids = Object.values(document.paths).flatMap((path) =>
      Object.values(path).map(({ operationId }) => operationId),
    );
    expect(new Set(ids).size).toBe(ids.length);
  });
});

const NO_HEADERS = { conversation: undefined, idempotencyKey: undefined, retryCount: undefined };

describe('the conversation id for an id of the client', () => {
  it('a client id that is a legal conversation id is used unchanged', () => {
    for (const id of ['demo', 'A_b-9', 'x'.repeat(128)]) expect(conversationOf(id)).toBe(id);
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9_-]{1,128}$/), (id) => {
        expect(conversationOf(id)).toBe(id);
      }),
    );
  });

  it('any other client id is mapped to a legal, readable id, always the same one', () => {
    expect(conversationOf('support/case 17 (Zoë)')).toBe(
      'support-case-17-Zo-6bd48084cf3b271a1d7059f1da59555b',
    );
    expect(conversationOf('日本')).toMatch(/^thread-[0-9a-f]{32}$/);
    expect(conversationOf('x'.repeat(129))).toMatch(/^x{64}-[0-9a-f]{32}$/);
  });

  it('the client id at `/v1` is taken from the header or from the metadata', () => {
    const named = (conversation?: string, metadata?: object) =>
      readChatRequest(
        { model: 'pm', messages: [{ role: 'user', content: 'Hello' }], metadata },
        { headers: { ...NO_HEADERS, conversation }, publisher: 'alice', secret: '' },
      ).conversation;
    expect(named('case 17')).toBe(conversationOf('case 17'));
    expect(named(undefined, { conversation: 'Zoë' })).toBe(conversationOf('Zoë'));
    expect([named('demo'), named('', { conversation: '' }), named()]).toEqual(['demo', null, null]);
  });

  it('an id at `/v1` begins with a digest that cannot be computed without the token of the caller', () => {
    const body = { model: 'pm', messages: [{ role: 'user', content: 'Hello' }] };
    const asked = (secret: string) =>
      readChatRequest(body, { headers: NO_HEADERS, publisher: 'alice', secret });
    expect(prefixOf(asked('one'))).toBe(prefixOf(asked('one')));
    expect(prefixOf(asked('one'))).not.toBe(prefixOf(asked('other')));
    expect(asked('one').caller).toBe(asked('other').caller); // The log keeps it, so it must contain nothing of the token.
  });

  it('any text is mapped to a legal id, and different texts to different ids', () => {
    const text = fc.string({ minLength: 1, maxLength: 300, unit: anyCharacter });
    fc.assert(
      fc.property(text, text, (one, other) => {
        expect(conversationOf(one)).toMatch(NAME_PATTERN);
        expect(conversationOf(one) === conversationOf(other)).toBe(one === other);
      }),
      { numRuns: 500 },
    );
    const alike = [
      'a b',
      'a/b',
      'a.b',
      'a  b',
      ' a b',
      'A b',
      'a\u0000b',
      'é',
      'e\u0301',
      '\ud800',
      '\ud801',
    ];
    expect(new Set(alike.map(conversationOf)).size).toBe(alike.length);
  });
});

describe('the export of a conversation over HTTP', () => {
  const { gateway, daemon } = perTest(() => openGateway());

  it('an export is a file with the title and the id of the conversation as its name, in the chosen format', async () => {
    const author = { kind: 'person', id: 'alice', name: 'Alice' };
    const createdAt = '2026-03-01T10:00:00.000Z';
    const entry = { index: 0, id: 'a', createdAt, type: 'message', role: 'user', author, content: 'hi' };
    daemon.answer = () => ({ ok: true, body: { conversation: 'demo', length: 1, entries: [entry] } });
    const get = async (query: string) => {
      const answer = await fetch(`${gateway.url}/api/conversations/demo/export${query}`);
      const named = answer.headers.get('content-disposition');
      return [answer.status, answer.headers.get('content-type'), named, await answer.text()];
    };
    const markdown = '## Alice (2026-03-01 10:00 UTC, entry 0)\n\n> hi';
    const asMarkdown = [200, 'text/markdown; charset=utf-8', 'attachment; filename="demo.md"', markdown];
    expect(await get('')).toEqual(asMarkdown);
    expect(await get('?format=markdown')).toEqual(asMarkdown);
    expect((await get('?format=openai')).slice(1)).toEqual([
      'application/json; charset=utf-8',
      'attachment; filename="demo.json"',
      '[{"role":"user","content":"hi","name":"Alice"}]',
    ]);
    expect((await get('?format=jsonl')).slice(2)).toEqual([
      'attachment; filename="demo.jsonl"',
      JSON.stringify(entry),
    ]);
    const titled = (title: string) => ({ ...entry, index: 1, id: 'b', type: 'title-set', title });
    const encoded = (name: string) => `demo.md"; filename*=UTF-8''${encodeURIComponent(name)}`;
    for (const [title, name] of [
      ['Fix the login page', 'Fix-the-login-page-demo.md"'],
      ['  ../../etc: "pass\u202ewd"?\r\n', 'etc-pass-wd-demo.md"'],
      ['🙂', 'demo.md"'],
      ['word '.repeat(40), `${'word-'.repeat(12)}demo.md"`],
      ['Größe & 大小', encoded('Größe-大小-demo.md')],
    ]) {
      const entries = [entry, titled(title ?? '')];
      daemon.answer = () => ({ ok: true, body: { conversation: 'demo', length: 2, entries } });
      expect((await get(''))[2]).toBe(`attachment; filename="${name}`);
    }
    expect((await get('?format=pdf'))[0]).toBe(400);
    daemon.answer = () => ({ ok: false, refusal: { code: 'NOT_FOUND', message: 'no', hint: '' } });
    expect((await get(''))[0]).toBe(404);
  });
});
