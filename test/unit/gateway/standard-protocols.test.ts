import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Entry } from '../../../src/conversation/index.ts';
import { conversationOf } from '../../../src/gateway/client-ids.ts';
import type { GatewayOptions, Token } from '../../../src/gateway/index.ts';
import { eventsOf, gatewaysWithPosts, messageEntry } from './support.ts';

/** What AG-UI and A2A refuse, and how their streams end. The rest is tested end to end with the official clients. */
describe('the routes of AG-UI and A2A', () => {
  const open = gatewaysWithPosts();
  const start = async (options: Partial<GatewayOptions> = {}) => {
    const opened = await open(options);
    return { ...opened, url: opened.gateway.url };
  };
  const post = (url: string, body: unknown, more: { headers?: object; signal?: AbortSignal } = {}) =>
    fetch(url, {
      method: 'POST',
      body: JSON.stringify(body),
      ...(more.signal && { signal: more.signal }),
      headers: { 'content-type': 'application/json', 'a2a-version': '1.0', ...more.headers },
    });
  const said = { id: 'u1', role: 'user', content: 'Hello' };
  const run = { threadId: 'demo', runId: 'r', messages: [said], tools: [], context: [] };
  const message = { messageId: 'm1', contextId: 'demo', role: 'ROLE_USER', parts: [{ text: 'Hello' }] };
  const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });

  it('AG-UI and A2A requests pass the guard', async () => {
    const tokens: Token[] = [{ role: 'read', secret: 'r', publisher: null }];
    const { url } = await start({ tokens });
    const token = { headers: { authorization: 'Bearer r' } };
    for (const path of ['/ag-ui/pm', '/a2a/pm']) {
      expect((await post(`${url}${path}`, run)).status).toBe(401);
      expect(
        (await post(`${url}${path}`, run, { headers: { ...token.headers, origin: 'http://evil' } })).status,
      ).toBe(403);
    }
    expect((await fetch(`${url}/a2a`)).status).toBe(401);
    expect((await fetch(`${url}/a2a/pm/.well-known/agent-card.json/x`)).status).toBe(401);
    expect((await post(`${url}/ag-ui/pm`, run, token)).status).toBe(403);
    const sent = await (await post(`${url}/a2a/pm`, rpc('SendMessage', { message }), token)).json();
    expect(sent).toMatchObject({ error: { message: expect.stringContaining('FORBIDDEN') } });
    const approval = { ...run, messages: [], resume: [{ interruptId: 'c1_0.a@0', status: 'resolved' }] };
    expect((await post(`${url}/ag-ui/pm`, approval, token)).status).toBe(403);
  });

  it.each([
    ['/ag-ui/pm', run],
    ['/a2a/pm', rpc('SendMessage', { message })],
    ['/a2a/pm', rpc('SendStreamingMessage', { message })],
  ])('a bug is logged, and the client learns only that there was one: %s', async (path, body) => {
    const { url, daemon, faults } = await start();
    const answers = daemon.answer;
    let posted = false;
    daemon.answer = (request) => {
      if (posted && /^(entries|conversation)$/.test(request.endpoint)) throw new Error('a secret');
      posted ||= request.endpoint === 'post';
      return answers(request);
    };
    const told = await (await post(`${url}${path}`, body)).text();
    expect(told).toContain('the daemon failed');
    expect(told).not.toContain('secret');
    expect(faults).toEqual([new Error('a secret')]);
  });

  it('a post over AG-UI or A2A has the person of its token as author', async () => {
    const tokens: Token[] = [{ role: 'post', secret: 'p', publisher: 'office', name: 'Alice' }];
    const { url, daemon } = await start({ tokens });
    for (const [path, body] of [
      ['/ag-ui/pm', run],
      ['/a2a/pm', rpc('SendStreamingMessage', { message })],
    ] as const) {
      const answer = await post(`${url}${path}`, body, { headers: { authorization: 'Bearer p' } });
      await answer.body?.cancel();
    }
    const posts = daemon.asked.filter(({ endpoint }) => endpoint === 'post').map(({ body }) => body);
    expect(posts).toMatchObject(Array(2).fill({ publisher: 'office', author: { name: 'Alice' } }));
  });

  it('a task cannot be cancelled by another person of the same publisher', async () => {
    const people = ['Alice', 'Bob'].map(
      (name): Token => ({ role: 'post', secret: name, publisher: 'office', name }),
    );
    const { url, daemon } = await start({ tokens: people });
    const [entry] = daemon.append('demo', 'Hello');
    const author = { kind: 'person', id: 'office/Alice', name: 'Alice' };
    Object.assign(entry ?? {}, { to: ['pm'], author });
    const headers = { authorization: 'Bearer Bob' };
    const answer = await post(`${url}/a2a/pm`, rpc('CancelTask', { id: `demo.${entry?.index}` }), {
      headers,
    });
    const message = expect.stringContaining('another publisher posted this');
    expect(await answer.json()).toMatchObject({ error: { message } });
  });

  /** A task whose turn runs. A stop adds its entries; `end` ends the turn. */
  async function running(stops = 1) {
    const { url, daemon } = await start();
    const [entry] = daemon.append('demo', 'Hello');
    Object.assign(entry ?? {}, { to: ['pm'] });
    const log = daemon.logs.get('demo') ?? [];
    const add = (more: object) => {
      const next = { ...messageEntry(log.length, ''), agent: 'pm', turnId: 't', ...more } as Entry;
      log.push(next);
      daemon.publish('demo', { kind: 'entries', entries: [next] });
    };
    add({ type: 'turn-started', trigger: [0] });
    const before = daemon.answer;
    daemon.answer = (request) => {
      if (request.endpoint === 'stop') for (let n = 0; n < stops; n += 1) add({ type: 'agent-stopped' });
      return request.endpoint === 'stop' ? { ok: true, body: {} } : before(request);
    };
    return {
      cancel: (signal?: AbortSignal) =>
        post(`${url}/a2a/pm`, rpc('CancelTask', { id: 'demo.0' }), signal ? { signal } : {}),
      end: () => add({ type: 'turn-ended', outcome: 'aborted' }),
      asked: (verb: string) =>
        daemon.asked.filter(({ endpoint }) => endpoint === verb).map(({ body }) => body),
    };
  }

  it.each([
    [1, true],
    [2, false],
  ])('an agent continues after a cancelled task if it was stopped %i time', async (stops, goesOn) => {
    const { cancel, end, asked } = await running(stops);
    const answer = cancel();
    await expect.poll(() => asked('stop')).toHaveLength(1);
    end();
    expect(await (await answer).json()).toMatchObject({ result: { id: 'demo.0' } });
    expect(asked('resume')).toMatchObject(goesOn ? [{ agent: 'pm', stop: 2 }] : []);
  });

  it('an agent continues after a cancelled task if the client that cancelled it has left', async () => {
    const { cancel, end, asked } = await running();
    const left = new AbortController();
    const answer = cancel(left.signal).catch(() => 'left');
    await expect.poll(() => asked('stop')).toHaveLength(1);
    left.abort();
    expect(await answer).toBe('left');
    await setTimeout(50); // until the daemon has noticed
    expect(asked('resume')).toEqual([]);
    end();
    await expect.poll(() => asked('resume')).toMatchObject([{ agent: 'pm', stop: 2 }]);
  });

  it('an agent continues after a task that two clients cancel at once, and both get the cancelled task', async () => {
    const { cancel, end, asked } = await running();
    const answers = [cancel(), cancel()];
    await expect.poll(() => asked('stop').length).toBeGreaterThan(0);
    await setTimeout(100); // until both are in work
    end();
    for (const answer of await Promise.all(answers))
      expect(await answer.json()).toMatchObject({ result: { status: { state: 'TASK_STATE_CANCELED' } } });
    expect(asked('resume')).toMatchObject([{ agent: 'pm', stop: 2 }]);
  });

  it.each<[string, object, number]>([
    ['a thread without an id', { threadId: '' }, 400],
    ['a thread whose id has no end', { threadId: 'x'.repeat(1_025) }, 400],
    ['a picture', { messages: [{ ...said, content: [{ type: 'image' }] }] }, 400],
    ['an interrupt that is none', { resume: [{ interruptId: 'x', status: 'resolved' }] }, 400],
    ['an interrupt of nothing', { resume: [{ interruptId: 'c0_0', status: 'resolved' }] }, 400],
  ])('AG-UI and A2A refuse %s', async (_, more, status) => {
    const { url, daemon } = await start();
    daemon.append('demo', 'before');
    expect((await post(`${url}/ag-ui/pm`, { ...run, ...more })).status).toBe(status);
    expect(daemon.watchers('demo')).toBe(0);
  });

  it('a thread may have any id, and keeps it in answers', async () => {
    const { url, daemon } = await start();
    const threadId = 'support/case 17';
    const answer = await post(`${url}/ag-ui/pm`, { ...run, threadId, messages: [] });
    const events = eventsOf(await answer.text());
    expect(events.flatMap((event) => event.threadId ?? [])).toEqual([threadId, threadId]);
    const conversation = answer.headers.get('x-parley-conversation');
    expect(conversation).toBe(conversationOf(threadId));
    expect(daemon.asked.map(({ body }) => (body as { conversation?: string }).conversation)).toContain(
      conversation,
    );
    const again = await post(`${url}/ag-ui/pm`, { ...run, threadId: conversation, messages: [] });
    expect(again.headers.get('x-parley-conversation')).toBe(conversation);
  });

  const tool = { name: 'show_map', description: 'Shows a map', parameters: {} };
  it.each<[string, object, string | null]>([
    ['tools and context', { tools: [tool], context: [{ description: 'page', value: 'cart' }] }, null],
    ['state of its own', { state: { phase: 'chat', cart: [1] } }, 'state.cart'],
    ['forwarded properties', { forwardedProps: { temperature: 0 } }, 'forwardedProps'],
    [
      'instructions',
      { messages: [{ id: 's', role: 'system', content: '.' }] },
      'messages of the role system',
    ],
    ['an unknown field', { colour: 'red' }, 'colour'],
    [
      'what the client sends each time',
      {
        state: { phase: 'chat', mode: 'agent', activeAgent: null, agents: {} },
        forwardedProps: {},
        protocolVersion: '1.0',
      },
      null,
    ],
  ])('an application that sends %s is informed of what is not used', async (_, more, unused) => {
    const { url } = await start();
    const answer = await post(`${url}/ag-ui/pm`, { ...run, messages: [], ...more });
    expect(answer.headers.get('x-parley-unused')).toBe(unused);
    const events = eventsOf(await answer.text());
    expect(events[0]?.type).toBe('RUN_STARTED');
    const warnings = events.filter(({ type }) => type === 'CUSTOM');
    if (unused === null) expect(warnings).toEqual([]);
    else {
      expect(events[1]).toEqual({
        type: 'CUSTOM',
        name: 'parley.unused',
        value: { fields: [unused], message: expect.stringContaining(unused) },
      });
    }
  });

  it.each<[string, string | null, string]>([
    ['as it was reached', null, 'http://localhost'],
    ['as it is configured', 'https://parley.example.org/team', 'https://parley.example.org/team'],
  ])('the published address is %s, whatever the request contains', async (_, publicUrl, address) => {
    const { url } = await start({ known: { hosts: [], origins: [], publicUrl } });
    const { port } = new URL(url);
    const own = publicUrl === null ? `${address}:${port}` : address;
    const headers = { host: `localhost:${port}`, 'x-forwarded-proto': 'https', 'x-forwarded-host': 'evil' };
    const ask = async (path: string) => {
      const more = { port, headers: { ...headers, 'a2a-version': '1.0' } };
      const asking = request({ ...more, path: `http://evil.example${path}` });
      const [answer] = (await once(asking.end(), 'response')) as [IncomingMessage];
      return await json(answer);
    };
    expect(await ask('/a2a/pm/.well-known/agent-card.json')).toMatchObject({
      supportedInterfaces: expect.arrayContaining([expect.objectContaining({ url: `${own}/a2a/pm` })]),
    });
    const { agents } = (await ask('/a2a')) as { agents: { card: string }[] };
    expect(agents.map(({ card }) => card)).toContain(`${own}/a2a/pm/.well-known/agent-card.json`);
  });

  it.each([
    ['/ag-ui/parley', run],
    ['/a2a/parley', rpc('SendStreamingMessage', { message })],
    [
      '/v1/chat/completions',
      { model: 'parley', messages: [{ role: 'user', content: 'Hello' }], stream: true },
    ],
  ])('the poster learns which mentions name no agent: %s', async (path, body) => {
    const { url, daemon } = await start({ heartbeatMs: 10 });
    const answers = daemon.answer;
    daemon.answer = async (request) => {
      const answer = await answers(request);
      if (request.endpoint !== 'post' || !answer.ok) return answer;
      return { ok: true, body: { ...(answer.body as object), unknownMentions: ['dve', 'дев'] } };
    };
    const answer = await post(`${url}${path}`, body);
    let text = '';
    for await (const bytes of answer.body ?? []) {
      text += Buffer.from(bytes).toString();
      if (text.includes('unknownMentions') || path.startsWith('/v1')) break;
    }
    if (path.startsWith('/a2a')) expect(text).toContain('"metadata":{"unknownMentions":["dve","дев"]}');
    else expect(answer.headers.get('x-parley-unknown-mentions')).toBe(`dve, ${encodeURIComponent('дев')}`);
    if (path.startsWith('/ag-ui'))
      expect(eventsOf(text)).toContainEqual({
        type: 'CUSTOM',
        name: 'parley.unknownMentions',
        value: { mentions: ['dve', 'дев'], message: 'there is no agent @dve, @дев' },
      });
  });

  it('an application may name a session, and is informed if it has no right to', async () => {
    const { url, daemon } = await start();
    const answers = daemon.answer;
    daemon.answer = async (request) => {
      const answer = await answers(request);
      if (request.endpoint !== 'post' || !answer.ok) return answer;
      return { ok: true, body: { ...(answer.body as object), ignored: ['sessionId'] } };
    };
    const answer = await post(`${url}/ag-ui/pm`, { ...run, forwardedProps: { sessionId: 's-1' } });
    await answer.body?.cancel();
    expect(answer.headers.get('x-parley-unused')).toBe('sessionId');
    const [posted] = daemon.asked.filter(({ endpoint }) => endpoint === 'post');
    expect(posted?.body).toMatchObject({ content: 'Hello', sessionId: 's-1' });
  });

  it('an application is informed that a new thread has no earlier messages', async () => {
    const { url } = await start();
    const earlier = [
      { id: 'u0', role: 'user', content: 'Hi' },
      { id: 'a0', role: 'assistant', content: 'Hi!' },
    ];
    const unusedOf = async () => {
      const answer = await post(`${url}/ag-ui/pm`, { ...run, messages: [...earlier, said] });
      await answer.body?.cancel();
      return answer.headers.get('x-parley-unused');
    };
    expect(await unusedOf()).toBe('messages before the last ones of the user');
    expect(await unusedOf()).toBe(null);
  });

  it('a run that repeats the first message of a thread reports no message after it as unused', async () => {
    const { url, daemon } = await start();
    const [first] = daemon.append('demo', 'Hello');
    Object.assign(first ?? {}, { id: 'u1', author: { kind: 'person', id: 'http', name: 'http' } });
    const answers = daemon.answer;
    daemon.answer = async (request) =>
      request.endpoint === 'post'
        ? { ok: true, body: { index: 0, agents: ['pm'], duplicate: true } }
        : answers(request);
    const messages = [said, { id: 'a1', role: 'assistant', content: 'Hi!' }];
    const answer = await post(`${url}/ag-ui/pm`, { ...run, messages });
    await answer.body?.cancel();
    expect(daemon.asked.map(({ endpoint }) => endpoint)).toContain('post');
    expect(answer.headers.get('x-parley-unused')).toBe(null);
  });

  it('a request for an unknown agent is not found', async () => {
    const { url } = await start();
    expect((await post(`${url}/ag-ui/nobody`, run)).status).toBe(404);
    expect((await post(`${url}/a2a/nobody`, rpc('GetTask', { id: 'demo.0' }))).status).toBe(404);
  });

  it('an A2A refusal is a JSON-RPC error', async () => {
    const { url, daemon } = await start();
    const errorOf = async (body: object, version = '1.0') => {
      const answer = await post(`${url}/a2a/pm`, body, { headers: { 'a2a-version': version } });
      return ((await answer.json()) as { error: { code: number } }).error.code;
    };
    expect(await errorOf(rpc('Nothing', {}))).toBe(-32601);
    expect(await errorOf(rpc('GetTask', { id: 'demo.7' }))).toBe(-32001);
    expect(await errorOf(rpc('GetTask', { id: 'demo.0' }), '9.0')).toBe(-32009);
    expect(await errorOf(rpc('GetTaskPushNotificationConfig', { taskId: 'demo.0' }))).toBe(-32003);
    const [own] = daemon.append('demo', 'mine');
    Object.assign(own ?? {}, { to: ['pm'] });
    expect(await errorOf(rpc('CancelTask', { id: 'demo.0' }))).toBe(-32002); // its turn has not begun
  });

  it.each([
    ['/ag-ui/pm', run],
    ['/a2a/pm', rpc('SendStreamingMessage', { message })],
  ])('the subscription of %s ends when its reader disconnects or the daemon stops', async (path, body) => {
    const { url, daemon, gateway } = await start();
    const watchers = async (wanted: number) => {
      while (daemon.watchers('demo') !== wanted) await setTimeout(5);
    };
    const abort = new AbortController();
    const left = await post(`${url}${path}`, body, { signal: abort.signal });
    await left.body!.getReader().read();
    expect(daemon.watchers('demo')).toBe(1);
    abort.abort();
    await watchers(0);
    const stayed = await post(`${url}${path}`, body);
    gateway.dismissReaders();
    const text = await stayed.text();
    expect(path === '/a2a/pm' || text.includes('STOPPING')).toBe(true);
    await watchers(0);
  });

  it('the reader is informed when the conversation is deleted', async () => {
    const { url, daemon } = await start();
    const answer = await post(`${url}/ag-ui/pm`, run);
    daemon.logs.delete('demo');
    daemon.publish('demo', { kind: 'entries', entries: [messageEntry(0, 'anew')] });
    expect(await answer.text()).toContain('"code":"CONVERSATION_DELETED"');
  });
});
