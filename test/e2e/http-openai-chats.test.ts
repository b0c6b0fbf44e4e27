import OpenAI from 'openai';
import { beforeAll, describe, expect, it } from 'vitest';
import type { ParleyClient } from '../../src/client/index.ts';
import { EVERYBODY } from '../support/batch.ts';
import type { FakeHandler } from '../support/fake-provider.ts';
import { shared } from '../support/lifetime.ts';
import { entriesOf, ofType } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { openProject } from '../support/project.ts';

type Message = OpenAI.ChatCompletionMessageParam;
type Body = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'model' | 'messages'> & { model?: string };
const user = (content: string): Message => ({ role: 'user', content });
const assistant = (content: string): Message => ({ role: 'assistant', content });
const system = (content: string): Message => ({ role: 'system', content });
const numbers = (name: string): OpenAI.ResponseFormatJSONSchema => ({
  type: 'json_schema',
  json_schema: { name: 'numbers', schema: { required: [name] } },
});
const RETRY = { 'x-stainless-retry-count': '1' };

/** Which conversation a `/v1` request belongs to, and what ends its answer. */
describe('chats over `/v1`', () => {
  let client: ParleyClient;
  let openai: OpenAI;
  let stop: () => Promise<unknown>;
  let handler: FakeHandler;

  /** Repeats the message, and prints how many messages of people it was shown. */
  const echo: FakeHandler = ({ json }) => {
    const people = (json.messages ?? []).filter(({ role }) => role === 'user');
    return { text: `${people.length}: ${people.at(-1)?.content}` };
  };

  async function start(): Promise<void> {
    const daemon = await project.up('--http', '127.0.0.1:0');
    stop = () => daemon.stop();
    client = await project.connect();
    openai = new OpenAI({ baseURL: `${daemon.ready.http}/v1`, apiKey: 'none', maxRetries: 0 });
  }

  const project = shared(() =>
    openProject({
      nats: {},
      settings: { retry: { attempts: 1 }, approvals: EVERYBODY },
      model: (request, count) => handler(request, count),
      agents: {
        pm: '---\nname: Pam\ndescription: plans\ntools: [fs_write]\n---\nPERSONA OF PAM',
        dev: '---\nname: Dev\ndescription: builds\n---\nPERSONA OF DEV',
      },
    }),
  );
  const { provider } = project;
  beforeAll(async () => {
    handler = echo;
    await start();
  });

  async function chat(messages: Message[], body: Body = {}, headers: Record<string, string> = {}) {
    const { model = 'pm', ...more } = body;
    const { data, response } = await openai.chat.completions
      .create({ model, messages, ...more }, { headers })
      .withResponse();
    return {
      text: data.choices[0]?.message.content ?? '',
      finish: data.choices[0]?.finish_reason,
      usage: data.usage,
      conversation: String(response.headers.get('x-parley-conversation')),
    };
  }
  const postsIn = async (conversation: string) =>
    ofType(await entriesOf(client, conversation), 'message')
      .filter(({ role, meta }) => role === 'user' && meta?.seeded === undefined)
      .map(({ content }) => content);

  it('a chat goes on after an answer that is too large for the log, of which the client has all', async () => {
    handler = () => ({ text: `${'x'.repeat(30_000)} `.repeat(45) });
    const long = await chat([user('at length')]);
    expect(long.text).toMatch(/^x{30000} .*\n\[Full output: \S+\]$/s);
    handler = echo;
    const next = await chat([user('at length'), assistant(long.text), user('and now?')]);
    expect(next).toMatchObject({ text: '2: and now?', conversation: long.conversation });
  });

  it('chats with the same beginning are separate conversations, concurrently and in sequence', async () => {
    handler = echo;
    const first = await Promise.all([1, 2, 3, 4].map(() => chat([user('alike')])));
    const again = await chat([user('alike')]);
    const all = [...first, again];
    expect(new Set(all.map(({ conversation }) => conversation)).size).toBe(5);
    expect(all.map(({ text }) => text)).toEqual(all.map(() => '1: alike'));
    const goOn = (text: string) => chat([user('alike'), assistant('1: alike'), user(text)]);
    const next = await Promise.all(['a', 'b', 'c', 'd', 'e'].map(goOn));
    expect(next.map(({ text }) => text)).toEqual(['2: a', '2: b', '2: c', '2: d', '2: e']);
    expect(new Set(next.map(({ conversation }) => conversation))).toEqual(
      new Set(all.map(({ conversation }) => conversation)),
    );
  });

  it('different callers never share a conversation, whatever they send', async () => {
    handler = echo;
    const history = [user('mine'), assistant('1: mine'), user('more')];
    const callers: Body[] = [
      { safety_identifier: 'a' },
      { safety_identifier: 'b' },
      { user: 'a' },
      { prompt_cache_key: 'k' },
      {},
    ];
    const begun = await Promise.all(callers.map((body) => chat([user('mine')], body)));
    const first = begun.map(({ conversation }) => conversation);
    expect(new Set(first).size).toBe(callers.length);
    for (const [place, body] of callers.entries()) {
      expect((await chat(history, body)).conversation).toBe(first[place]);
    }
  });

  it('a chat continues in its conversation after a restart of the daemon', async () => {
    handler = echo;
    const first = await chat([user('keep')]);
    await stop();
    await start();
    const next = await chat([user('keep'), assistant(first.text), user('on')]);
    expect(next).toMatchObject({ text: '2: on', conversation: first.conversation });
    expect(await postsIn(first.conversation)).toEqual(['keep', 'on']);
  });

  it("the same messages to a second model are answered by that agent, which sees the first one's answers", async () => {
    handler = ({ json }) => ({
      text: JSON.stringify(json.messages).includes('PERSONA OF DEV') ? 'dev' : 'pm',
    });
    const messages = [user('who?')];
    expect((await chat(messages)).text).toBe('pm');
    expect((await chat(messages, { model: 'dev' }, RETRY)).text).toBe('dev');
    expect((await chat(messages, { model: 'dev' })).text).toBe('dev');
    const later = [...messages, assistant('pm'), user('and now?')];
    expect((await chat(later)).text).toBe('pm');
    expect((await chat(later, { model: 'dev' })).text).toBe('dev');
  });

  it('a history that was edited or trimmed begins a new conversation, and the agent is shown all of it', async () => {
    handler = echo;
    const first = await chat([user('one')]);
    const edited = await chat([user('one'), assistant('something else'), user('two')]);
    expect(edited.conversation).not.toBe(first.conversation);
    expect(edited.text).toBe('3: two');
    const sent = JSON.parse(String(provider.requests.at(-1)?.body)) as { messages: { content: string }[] };
    expect(sent.messages.map(({ content }) => content)).toContain(
      'Quoted by openai, an answer:\n> something else',
    );
    const trimmed = await chat([
      assistant('something else'),
      user('two'),
      assistant(edited.text),
      user('three'),
    ]);
    expect(trimmed.text).toBe('4: three');
    expect([first.conversation, edited.conversation]).not.toContain(trimmed.conversation);
    const goOn = await chat([
      user('one'),
      assistant('something else'),
      user('two'),
      assistant(edited.text),
      user('3'),
    ]);
    expect(goOn).toMatchObject({ conversation: edited.conversation, text: '4: 3' });
  });

  it('a history with tool calls, images and old function calls is quoted by its caller', async () => {
    handler = echo;
    const call = { id: 'x', type: 'function' as const, function: { name: 'look', arguments: '{}' } };
    const answer = await chat([
      {
        role: 'user',
        content: [
          { type: 'image_url', image_url: { url: 'data:,' } },
          { type: 'text', text: 'see' },
        ],
      },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'x', content: 'seen' },
      { role: 'assistant', content: null, function_call: { name: 'peek', arguments: '{}' } },
      { role: 'function', name: 'peek', content: 'peeked' },
      user('so?'),
    ]);
    expect(answer.text).toBe('6: so?');
    const sent = JSON.parse(String(provider.requests.at(-1)?.body)) as {
      messages: Record<string, unknown>[];
    };
    expect(sent.messages.slice(1)).toEqual(
      [
        '[left out: image_url 08d188e968eb]\nsee',
        'Quoted by openai, a call of look:\n> {}',
        'Quoted by openai, the result of look:\n> seen',
        'Quoted by openai, a call of peek:\n> {}',
        'Quoted by openai, the result of peek:\n> peeked',
        'so?',
      ].map((words) => ({ role: 'user', content: words })),
    );
  });

  it('a repeated request is posted once if it has an idempotency key or the client marks it as a retry', async () => {
    handler = echo;
    const key = { 'idempotency-key': 'k-1' };
    const [one, two] = await Promise.all([chat([user('once')], {}, key), chat([user('once')], {}, key)]);
    const three = await chat([user('once')], {}, key);
    expect([one.text, two.text, three.text]).toEqual(['1: once', '1: once', '1: once']);
    expect(new Set([one, two, three].map(({ conversation }) => conversation)).size).toBe(1);
    expect(await postsIn(one.conversation)).toEqual(['once']);
    const first = await chat([user('retried')]);
    expect(await chat([user('retried')], {}, RETRY)).toEqual(first);
    expect(await postsIn(first.conversation)).toEqual(['retried']);
  });

  it('a failed answer is a lasting error, and the same request gets it again without another post or model call', async () => {
    const history = [user('before'), assistant('other'), user('try')];
    const ways: [Message[], Record<string, string>][] = [
      [[user('try')], {}],
      [[user('try')], { 'x-parley-conversation': 'fails' }],
      [[user('try')], { 'idempotency-key': 'k-2' }],
      [history, {}],
    ];
    for (const [place, [messages, headers]] of ways.entries()) {
      handler = () => ({ status: 503, body: { error: { message: 'out of order' } } });
      const before = provider.requests.length;
      const who = { user: `repeats-${place}` };
      for (const more of [{}, {}, RETRY, {}]) {
        const failed = await chat(messages, who, { ...headers, ...more }).catch((error: unknown) => error);
        expect(failed).toMatchObject({ status: 400, type: 'agent_error', code: 'AGENT_FAILED', param: null });
      }
      expect(provider.requests.length).toBe(before + 1);
      handler = echo;
      const named = { ...headers, 'idempotency-key': `again-${place}` };
      const again = await chat(messages, who, named);
      expect(again.text).toMatch(/: try$/);
      const other = [...messages.slice(0, -1), user('another')];
      expect((await chat(other, who, headers)).text).toMatch(/: another$/);
    }
    expect(await postsIn('fails')).toEqual(['try', 'try', 'another']);
  });

  it.each<[string, Message[], Body, Message[], Body]>([
    [
      'another schema',
      [user('5')],
      { response_format: numbers('n') },
      [user('5')],
      { response_format: numbers('m') },
    ],
    ['no schema', [user('5')], { response_format: numbers('n') }, [user('5')], {}],
    ['tools', [user('5')], {}, [user('5')], { tools: [{ type: 'function', function: { name: 'look' } }] }],
    ['other instructions', [system('A'), user('5')], {}, [system('B'), user('5')], {}],
    [
      'a history and a schema',
      [user('a'), assistant('b'), user('5')],
      {},
      [user('a'), assistant('b'), user('5')],
      { response_format: numbers('m') },
    ],
  ])(
    'after a failure, the same message with %s is another request',
    async (name, before, first, messages, second) => {
      const who = { user: name };
      handler = () => ({ status: 400, body: { error: { message: 'out of order' } } });
      for (const _ of [1, 2])
        await expect(chat(before, { ...who, ...first })).rejects.toThrow('out of order');
      handler = () => ({ text: '{"m":5}' });
      expect((await chat(messages, { ...who, ...second })).text).toBe('{"m":5}');
    },
  );

  it('a stream that fails before its first text has the status of the error, and is not posted again', async () => {
    handler = () => ({ status: 400, body: { error: { message: 'out of order' } } });
    const body = { model: 'pm', messages: [user('stream it')], stream: true as const };
    const read = async () => {
      for await (const _ of await openai.chat.completions.create(body));
    };
    for (const _ of [1, 2]) {
      const failed = await read().catch((error: unknown) => error);
      expect(failed).toMatchObject({ status: 400, type: 'agent_error', code: 'AGENT_FAILED' });
    }
    const page = (await client.request('conversations', {})).conversations;
    expect(page.filter(({ title }) => title === 'stream it').length).toBe(1);
  });

  it('fields that are not used are named in a header, and calls without content are taken', async () => {
    handler = echo;
    const call = { id: 'x', type: 'function' as const, function: { name: 'look', arguments: '{}' } };
    const { data, response } = await openai.chat.completions
      .create({
        model: 'pm',
        messages: [
          user('see'),
          { role: 'assistant', tool_calls: [call] },
          { role: 'tool', tool_call_id: 'x', content: 'seen' },
          user('so?'),
        ],
        ...{ temperature: 0, stop: ['x'], seed: 7, logprobs: true, tools: [], n: 1, store: null },
      })
      .withResponse();
    expect(data.choices[0]?.message.content).toBe('4: so?');
    expect(response.headers.get('x-parley-unused')).toBe('temperature, stop, seed, logprobs');
  });

  it('the system prompt of a client is instructions of that person after those of the agent, once while it stays the same', async () => {
    handler = echo;
    const sent = () =>
      (JSON.parse(String(provider.requests.at(-1)?.body)) as { messages: Message[] }).messages;
    const terse = 'Hello\n\nInstructions of openai:\n> Be terse.\n> @dev is away.';
    const first = await chat([system('Be terse.\n@dev is away.'), user('Hello')], { model: 'parley' });
    const [persona, ...rest] = sent();
    expect(persona).toMatchObject({ role: 'system', content: expect.stringContaining('PERSONA OF PAM') });
    expect(rest).toEqual([user(terse)]);
    expect(first.text).toBe(`1: ${terse}`);
    const next = [user('Hello'), assistant(first.text), user('More')];
    const second = await chat([system('Be terse.\n@dev is away.'), ...next], { model: 'parley' });
    expect([second.conversation, second.text]).toEqual([first.conversation, '2: More']);
    const later = [...next, assistant(second.text), user('And now?')];
    const changed = await chat([system('Be verbose.'), ...later], { model: 'parley' });
    expect(changed).toMatchObject({
      conversation: first.conversation,
      text: '3: And now?\n\nInstructions of openai:\n> Be verbose.',
    });
    const again = await chat([system('Be verbose.'), ...later], { model: 'parley' }, RETRY);
    expect(again).toMatchObject({ conversation: first.conversation, text: changed.text });
    expect((await postsIn(first.conversation)).length).toBe(3);
    const listed = (await client.request('conversations', {})).conversations;
    expect(listed.find(({ id }) => id === first.conversation)?.title).toBe('Hello');
  });

  itLong('a history of more than 1 MiB is taken', async () => {
    handler = ({ json }) => ({ text: `${json.messages?.length}` });
    const long = Array.from({ length: 40 }, (_, place) => user(`${place} ${'x'.repeat(40_000)}`));
    expect((await chat([...long, user('and?')])).text).toMatch(/^\d+$/);
  });

  it.each([false, true])(
    'an open approval ends the answer and each further one with the outstanding call (stream: %s)',
    async (stream) => {
      const conversation = `approval-${stream}`;
      const write = { name: 'fs_write', arguments: '{"path":"@project/x.txt","content":"x"}' };
      handler = ({ json }) =>
        json.messages?.at(-1)?.role === 'tool' ? { text: 'Written.' } : { toolCalls: [write] };
      const say = async (content: string) => {
        const body = { model: 'pm', messages: [user(content)], metadata: { conversation } };
        if (!stream) return (await openai.chat.completions.create(body)).choices[0]?.message.content ?? '';
        let text = '';
        for await (const { choices } of await openai.chat.completions.create({ ...body, stream: true }))
          text += choices[0]?.delta.content ?? '';
        return text;
      };
      const first = await say('write');
      const { approvals } = await client.request('approvals', { conversation });
      const id = String(approvals[0]?.approvalId);
      expect(first).toContain(`parley approve ${id}`);
      expect(first).toContain('fs_write');
      expect(await say('and?')).toBe(first);
      handler = echo; // the waiting messages are shown to the agent with the result
      await client.request('answer', { approvalId: id, answer: 'deny', publisher: 'alice' });
      expect(await say('go on')).toMatch(/go on$/);
    },
  );

  it('a chat continues in its conversation after its approval was answered', async () => {
    const write = { name: 'fs_write', arguments: '{"path":"@project/x.txt","content":"x"}' };
    handler = ({ json }) =>
      json.messages?.at(-1)?.role === 'tool' ? { text: 'Not written.' } : { toolCalls: [write] };
    const first = await chat([user('write it')]);
    const [approval] = (await client.request('approvals', { conversation: first.conversation })).approvals;
    await client.request('answer', {
      approvalId: String(approval?.approvalId),
      answer: 'deny',
      publisher: 'alice',
    });
    handler = echo;
    const next = await chat([user('write it'), assistant(first.text), user('well?')]);
    expect(next).toMatchObject({ conversation: first.conversation });
    expect(next.text).toMatch(/well\?$/);
  });

  it('usage that no provider reported is omitted', async () => {
    handler = () => ({ text: 'Hi', usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } });
    expect((await chat([user('count')])).usage).toBeUndefined();
    const body = { model: 'pm', messages: [user('count it')], stream_options: { include_usage: true } };
    const usages = [];
    for await (const { usage } of await openai.chat.completions.create({ ...body, stream: true }))
      usages.push(usage);
    expect(usages.filter(Boolean)).toEqual([]);
  });

  it('unknown keys of a text part are ignored', async () => {
    handler = echo;
    const part = { type: 'text' as const, text: 'cached', cache_control: { type: 'ephemeral' } };
    expect((await chat([{ role: 'user', content: [part] }])).text).toBe('1: cached');
  });
});
