import { type Message, Role } from '@a2a-js/sdk';
import { describe, expect, it } from 'vitest';
import type { Entry, OpenCall } from '../../../src/conversation/index.ts';
import { replyOf } from '../../../src/gateway/a2a/task.ts';
import { conversationOf } from '../../../src/gateway/client-ids.ts';
import type { GatewayOptions, Token } from '../../../src/gateway/index.ts';
import { gatewaysWithPosts, messageEntry } from './support.ts';

/** What the A2A routes read, refuse and list, byte by byte. Tasks are tested end to end with the official client. */
describe('the A2A routes', () => {
  const open = gatewaysWithPosts();

  async function start(options: Partial<GatewayOptions> = {}) {
    const { daemon, gateway } = await open(options);
    const send = async (body: string, headers: Record<string, string> = {}, query = '') => {
      const answer = await fetch(`${gateway.url}/a2a/pm${query}`, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json', 'a2a-version': '1.0', ...headers },
      });
      // biome-ignore lint/suspicious/noExplicitAny: read as a program would
      return (await answer.json()) as { error?: { code: number; message: string }; result?: any };
    };
    const call = (method: string, params: object, headers?: Record<string, string>, query?: string) =>
      send(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), headers, query);
    const posts = () => daemon.asked.filter(({ endpoint }) => endpoint === 'post').map(({ body }) => body);
    return { daemon, url: gateway.url, send, call, posts };
  }
  const errorWith = (code: number, words = '') => ({
    error: { code, message: expect.stringContaining(words) },
  });

  const text = { text: 'Hello' };
  const both = { text: 'Hello', data: {} };
  const message = { messageId: 'm1', contextId: 'demo', role: 'ROLE_USER', parts: [text] };
  const later = { returnImmediately: true };

  const old = { messageId: 'm1', role: 'user', kind: 'message', parts: [{ kind: 'text', text: 'Hello' }] };
  it.each<[string, string, string, object]>([
    ['1.0', 'SendMessage', 'parts that are null', { message: { ...message, parts: [null] } }],
    ['1.0', 'SendMessage', 'parts that are no list', { message: { ...message, parts: 7 } }],
    ['1.0', 'SendMessage', 'a message that is null', { message: null }],
    ['1.0', 'SendMessage', 'a text for a message', { message: 'Hello' }],
    ['0.3', 'message/send', 'a file without its file', { message: { ...old, parts: [{ kind: 'file' }] } }],
    ['0.3', 'message/send', 'parts that are null', { message: { ...old, parts: [null] } }],
    ['0.3', 'message/send', 'no parts', { message: { ...old, parts: undefined } }],
    ['0.3', 'message/send', 'extensions that are no list', { message: { ...old, extensions: 7 } }],
    ['0.3', 'message/send', 'no message', {}],
    ['0.3', 'message/stream', 'a file without its file', { message: { ...old, parts: [{ kind: 'file' }] } }],
    ['1.0', 'SendStreamingMessage', 'parts that are null', { message: { ...message, parts: [null] } }],
    ['0.3', 'tasks/pushNotificationConfig/set', 'no configuration', { taskId: 'x' }],
  ])(
    'version %s: parameters of %s with %s are the fault of the client',
    async (version, method, _, params) => {
      const { call, posts } = await start();
      const { error } = await call(method, params, { 'a2a-version': version });
      expect(error?.code).toBe(-32602);
      expect(error?.message).not.toMatch(/Cannot read|is not a function|is not iterable|undefined/);
      expect(posts()).toEqual([]);
    },
  );

  it.each<[string, string, number, unknown]>([
    ['no JSON', '{"jsonrpc"', -32700, null],
    ['no UTF-8 that can be read', '{"a": "\udc80"', -32700, null],
    ['nothing', '', -32700, null],
    ['a batch', '[]', -32600, null],
    ['a text', '"GetTask"', -32600, null],
    ['another version of JSON-RPC', '{"jsonrpc":"1.0","id":7,"method":"GetTask","params":{}}', -32600, 7],
    ['no version of JSON-RPC', '{"id":7,"method":"GetTask","params":{}}', -32600, 7],
    ['no method', '{"jsonrpc":"2.0","id":"a"}', -32600, 'a'],
    ['a method that is no text', '{"jsonrpc":"2.0","id":7,"method":1}', -32600, 7],
    ['an id that is none', '{"jsonrpc":"2.0","id":{},"method":"GetTask","params":{}}', -32600, null],
    ['an unknown method', '{"jsonrpc":"2.0","id":7,"method":"Nothing"}', -32601, 7],
    ['parameters that are no object', '{"jsonrpc":"2.0","id":7,"method":"GetTask","params":[1]}', -32602, 7],
  ])('the A2A route answers %s with its error code and request id', async (_, body, code, id) => {
    const { send } = await start();
    expect(await send(body)).toMatchObject({ jsonrpc: '2.0', id, ...errorWith(code) });
  });

  it('the A2A version may come in the query, and its third number is ignored', async () => {
    const { call } = await start();
    const none = { 'a2a-version': '' };
    const get = (headers: Record<string, string>, query?: string) =>
      call('GetTask', { id: 'x.0' }, headers, query);
    expect(await get(none, '?A2A-Version=1.0')).toMatchObject(errorWith(-32001));
    expect(await get({ 'a2a-version': '1.0.2' })).toMatchObject(errorWith(-32001));
    expect(await get(none, '?A2A-Version=2.0')).toMatchObject(errorWith(-32009));
    expect(await get(none)).toMatchObject(errorWith(-32601, 'A2A-Version: 1.0'));
    expect(await call('tasks/get', { id: 'x.0' }, none)).toMatchObject(errorWith(-32001));
  });

  const saying = (more: object) => ({ message: { ...message, ...more } });
  const configured = (configuration: object) => ({ message, configuration });
  const PUSH = { taskPushNotificationConfig: { url: 'http://x' } };
  it.each<[string, object, number, string]>([
    ['a message without a role', saying({ role: undefined }), -32602, 'message.role'],
    ['a message of an agent', saying({ role: 'ROLE_AGENT' }), -32602, 'message.role'],
    ['a message of a role that is none', saying({ role: 'user' }), -32602, 'message.role'],
    ['a message without an id', saying({ messageId: '' }), -32602, 'message.messageId'],
    ['push notifications', configured(PUSH), -32003, 'push notifications'],
    ['a picture as the answer', configured({ acceptedOutputModes: ['image/png'] }), -32005, 'text/plain'],
    ['a history of less than nothing', configured({ historyLength: -1 }), -32602, 'historyLength'],
    [
      'a file of another host',
      saying({ parts: [text, { url: 'http://x/a.png' }] }),
      -32602,
      'http.fetch.hosts',
    ],
    ['a part of two kinds', saying({ parts: [both] }), -32602, 'text and data'],
    ['half of a file', saying({ parts: [{ raw: 'AAAAA' }] }), -32602, 'base64 is broken'],
  ])('the A2A route refuses %s and posts nothing', async (_, params, code, words) => {
    const { call, posts } = await start();
    for (const method of ['SendMessage', 'SendStreamingMessage'])
      expect(await call(method, params)).toMatchObject(errorWith(code, words));
    expect(posts()).toEqual([]);
  });

  it('A2A data is posted with the text, in its place, as JSON that agents read', async () => {
    const { call, posts } = await start();
    const parts = [text, { data: { city: 'Bern', days: [1, 2] } }, { text: 'Thanks' }, { data: [7] }];
    await call('SendMessage', { message: { ...message, parts }, configuration: later });
    const data = '```json\n{\n  "city": "Bern",\n  "days": [\n    1,\n    2\n  ]\n}\n```';
    expect(posts()).toMatchObject([{ content: `Hello\n${data}\nThanks\n\`\`\`json\n[\n  7\n]\n\`\`\`` }]);
  });

  it('A2A metadata that is not for agents is kept with the post', async () => {
    const { call, posts } = await start();
    const more = { metadata: { trace: 'a' }, extensions: ['urn:x'], referenceTaskIds: ['demo.0'] };
    await call('SendMessage', { message: { ...message, ...more }, configuration: later });
    expect(posts()).toMatchObject([{ meta: { a2a: more } }]);
  });

  it('an A2A context may have any id, and keeps that id in answers', async () => {
    const { call, posts } = await start();
    const contextId = 'case 17/b';
    const own = { ...message, contextId };
    const { result } = await call('SendMessage', { message: own, configuration: later });
    const conversation = conversationOf(contextId);
    expect(posts()).toMatchObject([{ conversation }]);
    expect(result.task).toMatchObject({ id: `${conversation}.0`, contextId });
    expect((await call('GetTask', { id: result.task.id })).result).toMatchObject({ contextId });
    expect((await call('ListTasks', { contextId })).result.tasks).toMatchObject([{ contextId }]);
    const elsewhere = { ...own, taskId: result.task.id, contextId: 'other' };
    expect(await call('SendMessage', { message: elsewhere })).toMatchObject(
      errorWith(-32602, 'belongs to context case 17/b'),
    );
  });

  it('the A2A card is public and names no other agent, and every other A2A request needs a token', async () => {
    const tokens: Token[] = [{ role: 'read', secret: 'r', publisher: null }];
    const { url, send } = await start({ tokens });
    for (const path of ['/.well-known/agent-card.json', '/a2a/pm/.well-known/agent-card.json']) {
      for (const version of ['1.0', '0.3']) {
        const answer = await fetch(`${url}${path}`, { headers: { 'a2a-version': version } });
        const card = (await answer.json()) as { securitySchemes: object };
        expect([answer.status, Object.keys(card.securitySchemes)]).toEqual([200, ['token']]);
      }
    }
    const missing = await fetch(`${url}/a2a/nobody/.well-known/agent-card.json`);
    expect([missing.status, await missing.text()]).toEqual([404, expect.not.stringContaining('pm')]);
    const foreign = { headers: { origin: 'http://evil' } };
    expect((await fetch(`${url}/.well-known/agent-card.json`, foreign)).status).toBe(403);
    expect((await fetch(`${url}/a2a`)).status).toBe(401);
    expect(await send('{}')).toMatchObject({ code: 'UNAUTHORIZED' });
  });

  it('an A2A tenant is refused before anything is posted or changed, as the card names none', async () => {
    const { call, daemon } = await start();
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'Hello' }] };
    for (const [method, params] of [
      ['SendMessage', { message }],
      ['GetTask', { id: 'demo.0' }],
      ['CancelTask', { id: 'demo.0' }],
      ['ListTasks', {}],
    ] as const)
      expect(await call(method, { ...params, tenant: 'acme' })).toMatchObject(
        errorWith(-32602, 'tenant "acme"'),
      );
    expect(daemon.asked.filter(({ endpoint }) => endpoint !== 'agents')).toEqual([]);
  });

  it('A2A has no extended card, as its card states', async () => {
    const { call } = await start();
    expect(await call('GetExtendedAgentCard', {})).toMatchObject(errorWith(-32004));
  });

  it.each<['post' | 'operate', boolean]>([
    ['post', true],
    ['operate', false],
  ])(
    'a subscription of a caller with the role %s stays open while the task needs an approval: %s',
    async (role, staysOpen) => {
      const { daemon, url } = await start({ tokens: [{ role, secret: 's', publisher: 'alice' }] });
      const log: Entry[] = [];
      daemon.logs.set('demo', log);
      const author = { kind: 'agent', id: 'pm', name: 'Pam' };
      const turn = { turnId: 't', agent: 'pm' };
      const call = { index: 2, position: 0 };
      const add = (...entries: object[]) => {
        const made = entries.map((more, at) => ({ ...messageEntry(log.length + at, 'x'), ...more }) as Entry);
        log.push(...made);
        daemon.publish('demo', { kind: 'entries', entries: made });
      };
      const tool = { id: 'c', type: 'function', function: { name: 'shell', arguments: '{}' } };
      const asked = {
        approvalId: 'a1',
        call,
        agent: 'pm',
        tool: 'shell',
        arguments: '{}',
        mayHaveRun: false,
      };
      add(
        { to: ['pm'], content: 'Do it' },
        { type: 'turn-started', trigger: [0], ...turn },
        { role: 'assistant', author, content: null, turnId: 't', tool_calls: [tool] },
        { type: 'approval-requested', turnId: 't', risk: 'risky', ...asked },
        { type: 'turn-ended', outcome: 'waiting', ...turn },
      );
      const answer = await fetch(`${url}/a2a/pm`, {
        method: 'POST',
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id: 'demo.0' } }),
        headers: { 'content-type': 'application/json', 'a2a-version': '1.0', authorization: 'Bearer s' },
      });
      let said = '';
      const done = answer.body?.pipeThrough(new TextDecoderStream()).pipeTo(
        new WritableStream({
          write: (piece) => {
            said += piece;
          },
        }),
      );
      await expect.poll(() => said).toContain('TASK_STATE_INPUT_REQUIRED');
      if (staysOpen) {
        add({ content: 'Meanwhile', to: [] }); // does not answer it
        add(
          { type: 'approval-answered', turnId: 't', approvalId: 'a1', call, answer: 'approve' },
          { type: 'turn-started', trigger: [], resumed: true, ...turn },
          { role: 'tool', author, content: 'ran', turnId: 't', call },
          { role: 'assistant', author, content: 'Done.', turnId: 't' },
          { type: 'turn-ended', outcome: 'completed', ...turn },
        );
      }
      await done;
      expect([said.includes('Done.'), said.includes('TASK_STATE_COMPLETED')]).toEqual([staysOpen, staysOpen]);
      expect(daemon.watchers('demo')).toBe(0);
    },
  );

  describe('the list of A2A tasks', () => {
    const at = (minute: number) => `2026-01-01T00:${String(minute).padStart(2, '0')}:00.000Z`;
    /** A post for pm with its turn, in the given state. */
    function task(log: Entry[], minute: number, state: 'submitted' | 'working' | 'completed', to = 'pm') {
      const post = log.length;
      const add = (more: object) =>
        log.push({ ...messageEntry(log.length, 'x'), createdAt: at(minute), ...more } as Entry);
      add({ to: [to], content: `post ${post}` });
      const turn = { turnId: `t${post}`, agent: to };
      if (state !== 'submitted') add({ type: 'turn-started', trigger: [post], ...turn });
      if (state !== 'completed') return;
      const author = { kind: 'agent', id: to, name: to };
      add({ role: 'assistant', author, content: 'Done.', value: { done: true }, turnId: turn.turnId });
      add({ type: 'turn-ended', outcome: 'completed', ...turn });
    }
    async function setUp() {
      const started = await start();
      const one: Entry[] = [];
      const two: Entry[] = [];
      started.daemon.logs.set('one', one).set('two', two);
      task(one, 1, 'completed');
      task(two, 2, 'completed');
      task(one, 3, 'completed', 'dev');
      task(two, 4, 'completed');
      task(one, 5, 'working');
      const list = async (params: object) => (await started.call('ListTasks', params)).result;
      return { ...started, list };
    }
    const ids = (result: { tasks: { id: string }[] }) => result.tasks.map(({ id }) => id);

    it('the task list contains the tasks of this agent, last changed first, without artifacts', async () => {
      const { list } = await setUp();
      const result = await list({});
      expect(ids(result)).toEqual(['one.8', 'two.4', 'two.0', 'one.0']);
      expect(result).toMatchObject({ nextPageToken: '', pageSize: 50, totalSize: 4 });
      expect(result.tasks[0].status).toEqual({ state: 'TASK_STATE_WORKING', timestamp: at(5) });
      expect(result.tasks[3].status.timestamp).toBe(at(1)); // although its conversation continued
      expect(result.tasks.every((one: object) => !('artifacts' in one) && 'history' in one)).toBe(true);
    });

    it('the pages of the task list contain each task once', async () => {
      const { list } = await setUp();
      const seen: string[] = [];
      let pageToken = '';
      do {
        const page = await list({ pageSize: 1, pageToken });
        expect(page.tasks).toHaveLength(1);
        seen.push(...ids(page));
        pageToken = page.nextPageToken;
      } while (pageToken !== '');
      expect(seen).toEqual(['one.8', 'two.4', 'two.0', 'one.0']);
    });

    it('the task list is filtered by context, state and time, and includes what the caller requests', async () => {
      const { list } = await setUp();
      expect(ids(await list({ contextId: 'two' }))).toEqual(['two.4', 'two.0']);
      expect(ids(await list({ contextId: 'none' }))).toEqual([]);
      expect(ids(await list({ status: 'TASK_STATE_WORKING' }))).toEqual(['one.8']);
      expect(ids(await list({ statusTimestampAfter: at(4) }))).toEqual(['one.8', 'two.4']);
      const [whole] = (await list({ contextId: 'two', includeArtifacts: true, historyLength: 0 })).tasks;
      expect(whole.artifacts).toMatchObject([{ parts: [{ text: 'Done.' }, { data: { done: true } }] }]);
      expect(whole).not.toHaveProperty('history');
    });

    it('the task list does not read logs that cannot match', async () => {
      const { daemon, list } = await setUp();
      for (let n = 0; n < 600; n += 1) {
        const log: Entry[] = [];
        task(log, 0, 'completed');
        daemon.logs.set(`old-${n}`, log);
      }
      expect(ids(await list({ pageSize: 2 }))).toEqual(['one.8', 'two.4']);
      const read = daemon.asked.filter(({ endpoint }) => endpoint === 'entries');
      expect(new Set(read.map(({ body }) => (body as { conversation: string }).conversation)).size).toBe(2);
    });

    it('the pages of the task list cover more than 500 conversations, each task once, with any filter', async () => {
      const { daemon, list } = await setUp();
      for (let n = 0; n < 600; n += 1) {
        const log: Entry[] = [];
        task(log, 0, n % 10 === 0 ? 'working' : 'completed');
        daemon.logs.set(`old-${n}`, log);
      }
      const seen: string[] = [];
      for (let pageToken = ''; seen.length === 0 || pageToken !== ''; ) {
        const page = await list({ status: 'TASK_STATE_WORKING', pageSize: 25, pageToken });
        seen.push(...ids(page));
        pageToken = page.nextPageToken;
      }
      const working = Array.from({ length: 60 }, (_, n) => `old-${n * 10}.0`);
      expect(seen.toSorted()).toEqual(['one.8', ...working].toSorted());
      expect(await list({ status: 'TASK_STATE_FAILED' })).toMatchObject({ tasks: [], nextPageToken: '' });
    });

    it('the task list folds each entry of a long log about as often as one of a short log', async () => {
      const { daemon, list } = await setUp();
      const readsEach = async (name: string, tasks: number): Promise<number> => {
        let reads = 0;
        const log: Entry[] = [];
        daemon.logs.set(name, log);
        for (let n = 0; n < tasks; n += 1) task(log, 1, 'completed');
        for (const entry of log) {
          const { type } = entry;
          const get = () => {
            reads += 1;
            return type;
          };
          Object.defineProperty(entry, 'type', { get });
        }
        expect((await list({ contextId: name })).totalSize).toBe(tasks);
        return reads / log.length;
      };
      expect(await readsEach('long', 400)).toBeLessThan(2 * (await readsEach('short', 20)));
    });

    it('the task list of a long log with a turn that never ends lets other requests run meanwhile', async () => {
      const { daemon, list } = await setUp();
      const log: Entry[] = [];
      daemon.logs.set('long', log);
      task(log, 1, 'working', 'dev');
      for (let n = 0; n < 700; n += 1) task(log, 1, 'completed');
      let [longest, last, isRunning] = [0, performance.now(), true];
      const tick = () => {
        const now = performance.now();
        longest = Math.max(longest, now - last);
        last = now;
        if (isRunning) setImmediate(tick);
      };
      tick();
      const start = performance.now();
      expect((await list({ contextId: 'long' })).totalSize).toBe(700);
      isRunning = false;
      expect(longest).toBeLessThan((performance.now() - start) / 3);
    });

    it('the task list needs no parameters, and refuses wrong ones by name', async () => {
      const { send, call } = await setUp();
      const bare = await send('{"jsonrpc":"2.0","id":1,"method":"ListTasks"}');
      expect(bare.result.tasks).toHaveLength(4);
      for (const [params, words] of [
        [{ pageSize: 0 }, 'pageSize'],
        [{ pageSize: 101 }, 'pageSize'],
        [{ pageSize: 'x' }, 'pageSize'],
        [{ status: 'TASK_STATE_RUNNING' }, 'status'],
        [{ statusTimestampAfter: 'yesterday' }, 'statusTimestampAfter'],
        [{ historyLength: -5 }, 'historyLength'],
        [{ pageToken: 'x' }, 'pageToken'],
        [{ pageToken: Buffer.from('["a"]').toString('base64url') }, 'pageToken'],
      ] as const)
        expect(await call('ListTasks', params)).toMatchObject(errorWith(-32602, words));
    });
  });
});

const call = (id: string, position: number): OpenCall => ({
  place: { index: 2, position },
  turnId: 't',
  agent: 'dev',
  tool: 'shell',
  arguments: '{}',
  approval: { id, mayHaveRun: false },
  question: 'dev wants to call shell',
});
const FIRST = call('first', 0);
const SECOND = call('second', 1);

function message(said: string | object): Message {
  const content =
    typeof said === 'string'
      ? { $case: 'text' as const, value: said }
      : { $case: 'data' as const, value: said };
  return {
    messageId: 'm',
    contextId: 'c',
    taskId: 'c.0',
    role: Role.ROLE_USER,
    parts: [{ content, metadata: undefined, filename: '', mediaType: '' }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

describe('an A2A message to a task that waits for approvals', () => {
  it('an A2A message answers the only open approval without naming it', () => {
    expect(replyOf(message('approve'), [FIRST], 1)).toMatchObject({ approvalId: 'first' });
    expect(replyOf(message({ approved: false }), [FIRST], 1)).toMatchObject({ approvalId: 'first' });
  });

  it('an A2A message answers the approval that it names', () => {
    const named = message({ approved: true, approvalId: 'second' });
    expect(replyOf(named, [FIRST, SECOND], 2)).toMatchObject({
      approvalId: 'second',
      body: { answer: 'approve' },
    });
  });

  it('an A2A message that names none of several approvals is refused with their list', () => {
    for (const said of ['approve', { approved: true }]) {
      expect(() => replyOf(message(said), [FIRST, SECOND], 2)).toThrow(
        expect.objectContaining({ code: 'BAD_REQUEST', hint: expect.stringMatching(/first, second/) }),
      );
    }
  });

  it('an A2A message is refused if it names an approval that is not open', () => {
    for (const open of [[FIRST], [FIRST, SECOND]]) {
      expect(() => replyOf(message({ approved: true, approvalId: 'third' }), open, open.length)).toThrow(
        expect.objectContaining({ code: 'BAD_REQUEST', message: expect.stringMatching(/third/) }),
      );
    }
  });

  it('an A2A message must name the second approval of a task, since its sender may have seen only the first', () => {
    const refused = expect.objectContaining({ code: 'BAD_REQUEST', hint: expect.stringMatching(/second/) });
    for (const said of ['approve', 'rerun', 'result 4', { approved: true }, { answer: 'failed' }])
      expect(() => replyOf(message(said), [SECOND], 2)).toThrow(refused);
    expect(replyOf(message('deny'), [SECOND], 2)).toMatchObject({ approvalId: 'second' });
    const named = message({ approved: true, approvalId: 'second' });
    expect(replyOf(named, [SECOND], 2)).toMatchObject({ approvalId: 'second' });
  });
});
