import OpenAI from 'openai';
import { beforeAll, describe, expect, it } from 'vitest';
import { posting } from '../support/http.ts';
import { entriesOf, followUntil, ofType, turnsEnded } from '../support/log.ts';
import { sharedProject } from '../support/project.ts';
import { call, FAILS, GIVES, LOOKS, on } from '../support/route-rules.ts';

/** The `/v1` routes with the official OpenAI client, on a daemon in its own process. */
describe('the package `openai`', () => {
  let openai: OpenAI;
  const RULES = [
    LOOKS,
    GIVES,
    { when: { agent: 'lead', last: '/unsure/' }, reply: call('', 'ask', { question: 'Which one?' }) },
    on('/write/', call('', 'fs_write', { path: '@project/x', content: 'x' }), { agent: 'lead' }),
    on('/DOES NOT MATCH/', { text: '```json\n{ "n": 6 }\n```' }),
    on('/count/', { text: 'Six.' }),
    FAILS,
    on('/slow/', { text: 'One word after another comes here', delayMs: 100 }),
    { when: { agent: 'dev' }, reply: { text: 'Done by dev.' } },
    { reply: { text: 'Noted by the lead.' } },
  ];
  const project = sharedProject({
    settings: { retry: { attempts: 1 } },
    agents: {
      lead: '---\nname: Lead\ntools: [fs_list, fs_write, handoff, ask]\n---\nYou lead.',
      dev: '---\nname: Dev\n---\nYou build.',
      sums: '---\nname: Sums\ndescription: counts\nanswers: { type: object, required: [n] }\n---\nYou count.',
    },
    script: RULES,
    http: true,
  });
  beforeAll(async () => {
    openai = new OpenAI({ baseURL: `${project.http}/v1`, apiKey: 'none', maxRetries: 0 });
  });

  /** The header that the package sends with a retry. */
  const RETRY = { 'x-stainless-retry-count': '1' };
  const user = (content: string) => ({ role: 'user' as const, content });
  const say = (content: string, model = 'parley') =>
    openai.chat.completions.create({ model, messages: [user(content)] }).withResponse();
  async function streamed(content: string, more: object = {}) {
    const stream = await openai.chat.completions.create({
      model: 'parley',
      messages: [user(content)],
      stream: true,
      stream_options: { include_usage: true },
      ...more,
    });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    return { chunks, text: chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('') };
  }

  it.each([
    ['a schema', { type: 'json_schema', json_schema: { name: 'count', schema: { required: ['n'] } } }],
    ['any object', { type: 'json_object' }],
  ] as const)(
    'the OpenAI client gets JSON if it asks for %s, streamed or not',
    async (_, response_format) => {
      const body = { model: 'parley', messages: [user('count them')] };
      const { choices } = await openai.chat.completions.create({ ...body, response_format });
      expect(choices[0]?.message.content).toBe('{"n":6}');
      expect((await streamed('count them', { response_format })).text).toBe('{"n":6}');
    },
  );

  it('the OpenAI client gets JSON alone from an agent with a schema, streamed or not, and continues the chat', async () => {
    const { data, response } = await say('count them', 'sums');
    expect(data.choices[0]?.message.content).toBe('{"n":6}');
    const answered = { role: 'assistant' as const, content: '{"n":6}' };
    const messages = [user('count them'), answered, user('count again')];
    const next = await openai.chat.completions.create({ model: 'sums', messages }).withResponse();
    expect(next.data.choices[0]?.message.content).toBe('{"n":6}');
    const conversation = next.response.headers.get('x-parley-conversation');
    expect(conversation).toBe(response.headers.get('x-parley-conversation'));
    expect((await streamed('count them', { model: 'sums' })).text).toBe('{"n":6}');
  });

  it('a response of an agent with a schema is JSON alone, streamed or not, and read again', async () => {
    const asked = { model: 'sums', input: 'count them' };
    const { id, output_text } = await openai.responses.create(asked);
    expect(output_text).toBe('{"n":6}');
    expect((await openai.responses.retrieve(id)).output_text).toBe('{"n":6}');
    let text = '';
    for await (const event of await openai.responses.create({ ...asked, stream: true }))
      if (event.type === 'response.output_text.delta') text += event.delta;
    expect(text).toBe('{"n":6}');
  });

  it('the OpenAI client gets the reason why its schema cannot be used', async () => {
    const response_format = {
      type: 'json_schema',
      json_schema: { name: 'count', schema: { type: 'text' } },
    } as const;
    const body = { model: 'parley', messages: [user('count them')], response_format };
    const refused = await openai.chat.completions.create(body).catch((error: unknown) => error);
    expect(refused).toMatchObject({ status: 400, code: 'INVALID_SCHEMA', type: 'invalid_request_error' });
    expect(String(refused)).toContain('schema/type must be equal to one of the allowed values');
  });

  it('the OpenAI client lists agents as models', async () => {
    const names = [];
    for await (const { id } of openai.models.list()) names.push(id);
    expect(names).toEqual(['parley', 'dev', 'lead', 'sums']);
    expect(await openai.models.retrieve('dev')).toMatchObject({ id: 'dev', object: 'model' });
    await expect(openai.models.retrieve('nobody')).rejects.toBeInstanceOf(OpenAI.NotFoundError);
  });

  it('the OpenAI client gets the same text and usage, streamed or not', async () => {
    const { data, response } = await say('Hello');
    expect(data.choices).toMatchObject([
      { message: { role: 'assistant', content: 'Noted by the lead.' }, finish_reason: 'stop' },
    ]);
    expect(data.usage?.prompt_tokens).toBeGreaterThan(0);
    expect(data.usage?.total_tokens).toBe(
      Number(data.usage?.prompt_tokens) + Number(data.usage?.completion_tokens),
    );
    expect(response.headers.get('x-parley-conversation')).toMatch(
      /^chat-[0-9a-f]{32}-[0-9a-f]{16}-[0-9A-Z]{26}$/,
    );
    const { chunks, text } = await streamed('Hello');
    expect(text).toBe('Noted by the lead.');
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('stop');
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: data.usage });
  });

  it('the OpenAI client continues a chat in one conversation, posting only what is new, and nothing twice', async () => {
    const client = await project.connect();
    const first = await say('Hello');
    const conversation = String(first.response.headers.get('x-parley-conversation'));
    const messages = [
      user('Hello'),
      { role: 'assistant' as const, content: first.data.choices[0]?.message.content ?? '' },
      user('And more'),
    ];
    const go = (headers: Record<string, string> = {}) =>
      openai.chat.completions.create({ model: 'dev', messages }, { headers });
    expect((await go()).choices[0]?.message.content).toBe('Done by dev.');
    expect((await go(RETRY)).choices[0]?.message.content).toBe('Done by dev.');
    const people = ofType(await entriesOf(client, conversation), 'message').filter(
      ({ role }) => role === 'user',
    );
    expect(people.map(({ content, to }) => [content, to])).toEqual([
      ['Hello', ['lead']],
      ['And more', ['dev']],
    ]);
  });

  it('the OpenAI client may name the conversation in the header', async () => {
    const answer = await openai.chat.completions.create(
      { model: 'parley', messages: [user('Hello')] },
      { headers: { 'x-parley-conversation': 'mine' } },
    );
    expect(answer.choices[0]?.message.content).toBe('Noted by the lead.');
    expect((await entriesOf(await project.connect(), 'mine'))[0]).toMatchObject({ content: 'Hello' });
  });

  it('a request of a chat program for a title of its history reaches no agent that the history mentions', async () => {
    const history = '<chat_history>\nUSER: @dev, fix it\nASSISTANT: @dev did.\n</chat_history>';
    const { response } = await say(`### Task:\nGenerate a concise title.\n### Chat History:\n${history}`);
    const conversation = String(response.headers.get('x-parley-conversation'));
    const entries = await entriesOf(await project.connect(), conversation);
    expect(entries[0]).toMatchObject({ to: ['lead'] });
    expect(ofType(entries, 'turn-started').map(({ agent }) => agent)).toEqual(['lead']);
  });

  it('one answer to the OpenAI client includes the tool calls of the agent', async () => {
    const { data } = await say('look around');
    expect(data.choices[0]?.message.content).toBe('Let me look.\n\nNoted by the lead.');
    expect((await streamed('look around')).text).toBe('Let me look.\n\nNoted by the lead.');
  });

  it('an answer to the OpenAI client names the agents after a handoff, and contains the question of an agent', async () => {
    expect((await say('give it away')).data.choices[0]?.message.content).toBe(
      'Dev does it.\n\n**dev:** Done by dev.',
    );
    expect((await say('unsure')).data.choices[0]?.message.content).toBe('Which one?');
    expect((await say('write it')).data.choices[0]?.message.content).toMatch(/parley approve \S+/);
  });

  it('the turn continues when the OpenAI client disconnects, and the same request finds its answer', async () => {
    const abort = new AbortController();
    const stream = await openai.chat.completions.create(
      { model: 'parley', messages: [user('slow')], stream: true },
      { signal: abort.signal, headers: { 'x-parley-conversation': 'left' } },
    );
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
    abort.abort();
    const entries = await followUntil(await project.connect(), 'left', turnsEnded(1));
    expect(entries.at(-1)).toMatchObject({ type: 'turn-ended', outcome: 'completed' });
    const again = await openai.chat.completions.create(
      { model: 'parley', messages: [user('slow')] },
      { headers: { 'x-parley-conversation': 'left', ...RETRY } },
    );
    expect(again.choices[0]?.message.content).toBe('One word after another comes here');
    expect((await entriesOf(await project.connect(), 'left')).length).toBe(entries.length);
  });

  it('the OpenAI client gets the failure of an agent before and during the text', async () => {
    await expect(say('fail')).rejects.toMatchObject({
      status: 400,
      type: 'agent_error',
      code: 'AGENT_FAILED',
      message: expect.stringContaining('out of order'),
    });
    await expect(streamed('fail', { user: 'another' })).rejects.toBeInstanceOf(OpenAI.APIError);
  });

  it.each<[string, object, number, string]>([
    ['an unknown model', { model: 'nobody' }, 404, 'model_not_found'],
    [
      'a last message that is not the user’s',
      { messages: [{ role: 'assistant', content: 'x' }] },
      400,
      'BAD_REQUEST',
    ],
    [
      'a picture',
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:,' } }] }] },
      400,
      'BAD_REQUEST',
    ],
    [
      'a tool that is no function',
      { tools: [{ type: 'custom', custom: { name: 'f' } }] },
      400,
      'BAD_REQUEST',
    ],
    ['an answer as sound', { audio: { voice: 'x', format: 'wav' } }, 400, 'BAD_REQUEST'],
    ['a search of its own', { web_search_options: {} }, 400, 'BAD_REQUEST'],
    ['an unknown form of the answer', { response_format: { type: 'xml' } }, 400, 'BAD_REQUEST'],
  ])('the OpenAI client gets an error for %s', async (_, more, status, code) => {
    const body = { model: 'parley', messages: [user('Hello')], ...more };
    const refused = await openai.chat.completions.create(body).catch((error: unknown) => error);
    expect(refused).toMatchObject({ status, code, type: 'invalid_request_error' });
    const [field = ''] = Object.keys(more);
    expect((refused as { param?: string }).param).toMatch(new RegExp(`^${field}`));
  });
});

const MAX_BYTES = 20_000;
const user = (content: string) => ({ role: 'user', content });
const history = [user('Hi'), { role: 'assistant', content: 'Hello.' }];

describe('a request at `/v1` whose last message is refused', () => {
  const project = sharedProject({
    settings: {
      publishers: { default: { maxBytes: MAX_BYTES }, openai: { maxBytes: MAX_BYTES, postsPerMinute: 1 } },
    },
    agents: { lead: '---\nname: Lead\n---\nYou lead.' },
    script: [{ reply: { text: 'Noted.' } }],
    http: true,
  });
  const { client } = project;

  async function complete(messages: object[], conversation?: string) {
    const answer = await fetch(`${project.http}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(conversation && { 'x-parley-conversation': conversation }),
      },
      body: JSON.stringify({ model: 'lead', messages }),
    });
    const body = (await answer.json()) as { error?: { code: string } };
    return { status: answer.status, code: body.error?.code };
  }
  const listed = async () => (await client.request('conversations', {})).conversations.map(({ id }) => id);

  it.each([
    ['half a surrogate pair', '\ud83d', 400, 'INVALID_FIELD'],
    ['nothing visible', ' \u200b', 400, 'EMPTY_CONTENT'],
    ['more bytes than its publisher may send', 'x'.repeat(MAX_BYTES), 413, 'TOO_LARGE'],
  ])(
    'a refused request at `/v1` leaves no conversation with its history: %s',
    async (_, content, status, code) => {
      for (const named of [undefined, 'named']) {
        expect(await complete([...history, user(content)], named)).toEqual({ status, code });
        expect(await listed()).toEqual([]);
      }
    },
  );

  it('a request at `/v1` over the rate of its publisher leaves no conversation with its history', async () => {
    expect(await complete([user('First')], 'first')).toMatchObject({ status: 200 });
    const refused = await complete([...history, user('Second')], 'second');
    expect(refused).toEqual({ status: 429, code: 'RATE_LIMITED' });
    expect(await listed()).toEqual(['first']);
  });

  it('the `retry-after` header has the seconds of the error text on every route, and no refused request leaves a dead letter', async () => {
    await complete([user('First')], 'first');
    for (const [path, body] of [
      ['/v1/chat/completions', { model: 'lead', messages: [user('Third')] }],
      ['/v1/chat/completions', { model: 'lead', messages: [...history, user('Third')] }],
      ['/api/conversations/third/messages', { publisher: 'openai', content: 'Third' }],
    ] as const) {
      const answer = await fetch(`${project.http}${path}`, posting(body));
      const [, seconds] = /post it again in (\d+) s/.exec(await answer.text()) ?? [];
      expect([path, answer.status, answer.headers.get('retry-after')]).toEqual([path, 429, seconds]);
      expect(Number(seconds)).toBeGreaterThan(1);
    }
    expect((await client.request('dead', {})).letters).toEqual([]);
  });
});
