import OpenAI from 'openai';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ParleyClient } from '../../src/client/index.ts';
import { type FakeCall, repliesInOrder } from '../support/fake-provider.ts';
import { shared } from '../support/lifetime.ts';
import { entriesOf, lawfulEntries, ofType } from '../support/log.ts';
import { openProject, type RunningDaemon } from '../support/project.ts';

type Message = OpenAI.ChatCompletionMessageParam;
type Body = Partial<OpenAI.ChatCompletionCreateParamsNonStreaming>;

const user = (content: string): Message => ({ role: 'user', content });
const RETRY = { 'x-stainless-retry-count': '1' };
const WEATHER = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    description: 'the weather of a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};
const call = (city: string): FakeCall => ({ name: 'get_weather', arguments: JSON.stringify({ city }) });

/** Tools that a client of `/v1` brings: the agent's model calls them, and the client answers. */
describe('tools of a client of `/v1`', () => {
  let client: ParleyClient;
  let openai: OpenAI;
  let daemon: RunningDaemon;
  const model = repliesInOrder();

  const project = shared(() =>
    openProject({
      nats: {},
      settings: { retry: { attempts: 1 } },
      model: model.handler,
      agents: {
        pm: '---\nname: Pam\ndescription: plans\ntools: [fs_list]\n---\nPERSONA OF PAM',
        lead: '---\nname: Lead\ndescription: leads\ntools: [ask, delegate]\n---\nPERSONA OF LEAD',
        shy: '---\nname: Shy\ndescription: takes no tools\nclientTools: false\n---\nPERSONA OF SHY',
      },
    }),
  );

  const { provider } = project;

  async function start(): Promise<void> {
    daemon = await project.up('--http', '127.0.0.1:0');
    client = await project.connect();
    openai = new OpenAI({ baseURL: `${daemon.ready.http}/v1`, apiKey: 'none', maxRetries: 0 });
  }
  beforeAll(start);
  beforeEach(() => {
    model.next = [];
  });

  async function ask(messages: Message[], body: Body = {}, headers: Record<string, string> = {}) {
    const { data, response } = await openai.chat.completions
      .create({ model: 'pm', messages, tools: [WEATHER], ...body, stream: false }, { headers })
      .withResponse();
    const [choice] = data.choices;
    if (!choice) throw new Error('no choice');
    return {
      message: choice.message,
      finish: choice.finish_reason,
      calls: (choice.message.tool_calls ?? []).filter((one) => one.type === 'function'),
      conversation: String(response.headers.get('x-parley-conversation')),
    };
  }
  const result = (id: string, content: string): Message => ({ role: 'tool', tool_call_id: id, content });

  it('a call of a client’s tool is answered by its next request, and the turn continues, also if the daemon is killed in between', async () => {
    model.next = [{ text: 'Let me look.', toolCalls: [call('Oslo')] }, { text: 'It is 4 degrees.' }];
    const asked = [user('How is the weather in Oslo?')];
    const first = await ask(asked);
    expect(first.finish).toBe('tool_calls');
    expect(first.message.content).toBe('Let me look.');
    expect(first.calls.map(({ function: called }) => called)).toEqual([call('Oslo')]);
    await daemon.kill9();
    await start();
    const again = await ask(asked, {}, RETRY);
    expect(again.message).toEqual(first.message);
    const messages = [...asked, first.message, result(first.calls[0]?.id ?? '', '4 degrees')];
    const last = await ask(messages);
    expect(last).toMatchObject({ finish: 'stop', message: { content: 'It is 4 degrees.' } });
    expect(last.conversation).toBe(first.conversation);
    expect((await ask(messages)).message).toEqual(last.message);
    const entries = await lawfulEntries(client, first.conversation);
    expect(ofType(entries, 'turn-ended').map(({ outcome }) => outcome)).toEqual(['waiting', 'completed']);
    const results = ofType(entries, 'message').filter(({ role }) => role === 'tool');
    expect(results.map(({ content, author }) => [content, author.id])).toEqual([['4 degrees', 'openai']]);
    model.next = [{ text: 'You are welcome.' }];
    const thanks = await ask([...messages, last.message, user('Thanks')]);
    expect(thanks).toMatchObject({
      conversation: first.conversation,
      message: { content: 'You are welcome.' },
    });
  });

  it('several calls of one answer are open together, stream in OpenAI’s form, and a second round follows the results', async () => {
    model.next = [
      { toolCalls: [call('Oslo'), { name: 'fs_list', arguments: '{}' }, call('Rome')] },
      { toolCalls: [call('Bern')] },
      { text: 'Rome is warmest.' },
    ];
    const asked = [user('Where is it warm?')];
    const stream = openai.chat.completions.stream({ model: 'pm', messages: asked, tools: [WEATHER] });
    const first = (await stream.finalChatCompletion()).choices[0];
    const calls = (first?.message.tool_calls ?? []).filter((one) => one.type === 'function');
    expect(first?.finish_reason).toBe('tool_calls');
    expect(calls.map((one) => one.function.arguments)).toEqual(['{"city":"Oslo"}', '{"city":"Rome"}']);
    const [oslo, rome] = calls.map(({ id }) => id);
    const answer: Message = { role: 'assistant', content: null, tool_calls: calls };
    const part = [...asked, answer, result(oslo ?? '', '4')];
    const half = await ask(part);
    expect(half.calls.map(({ id }) => id)).toEqual([rome]);
    const second = await ask([...part, result(rome ?? '', '21')]);
    expect(second.calls.map((one) => one.function.arguments)).toEqual(['{"city":"Bern"}']);
    const all = [...part, result(rome ?? '', '21'), second.message, result(second.calls[0]?.id ?? '', '9')];
    const last = await ask(all);
    expect(last.message.content).toBe('Rome is warmest.');
    await lawfulEntries(client, last.conversation);
  });

  it.each(['pm', 'parley'])(
    'results of several calls that %s gets in one request continue its turn: none is called again',
    async (slug) => {
      model.next = [{ toolCalls: [call('Oslo'), call('Rome'), call('Bern')] }, { text: 'All known.' }];
      const asked = [user(`Everywhere, ${slug}?`)];
      const first = await ask(asked, { model: slug });
      const results = first.calls.map(({ id }) => result(id, '4'));
      const last = await ask([...asked, first.message, ...results], { model: slug });
      expect(last).toMatchObject({ finish: 'stop', message: { content: 'All known.' } });
      const again = await ask([...asked, first.message, ...results], { model: slug });
      expect(again.message).toEqual(last.message);
      await lawfulEntries(client, last.conversation);
    },
  );

  it('a message after a call and a question answers the question in the same conversation', async () => {
    const asks = { name: 'ask', arguments: '{"question":"Which scale?"}' };
    model.next = [{ text: 'Two things.', toolCalls: [call('Oslo'), asks] }, { text: 'It is 4 °C.' }];
    const asked = [user('How cold?')];
    const first = await ask(asked, { model: 'lead' });
    const answered = [...asked, first.message, result(first.calls[0]?.id ?? '', '4')];
    const waits = await ask(answered, { model: 'lead' });
    expect(waits).toMatchObject({ finish: 'stop', message: { content: 'Which scale?' } });
    const last = await ask([...answered, waits.message, user('Celsius')], { model: 'lead' });
    expect(last).toMatchObject({ conversation: first.conversation, message: { content: 'It is 4 °C.' } });
    await lawfulEntries(client, first.conversation);
  });

  it('a chat continues after a turn in which several agents spoke and the client’s tools were called', async () => {
    const delegates = { name: 'delegate', arguments: '{"to":"pm","request":"Look"}' };
    model.next = [{ toolCalls: [call('Oslo'), delegates] }, { text: 'I looked.' }, { text: 'Both done.' }];
    const asked = [user('@lead Look for both')];
    const body = { model: 'parley', user: 'both' };
    const first = await ask(asked, body);
    expect(first.message.content).toBe('I looked.');
    const answered = [...asked, first.message, result(first.calls[0]?.id ?? '', '4')];
    const last = await ask(answered, body);
    expect(last.message.content).toBe('Both done.');
    model.next = [{ text: 'You are welcome.' }];
    const thanks = await ask([...answered, last.message, user('Thanks')], body);
    expect(thanks.conversation).toBe(first.conversation);
  });

  it('the exact request with a client’s tools can be explained, and demands what the client demands once', async () => {
    const from = provider.requests.length;
    model.next = [{ toolCalls: [call('Oslo')] }, { text: 'Cold.' }];
    const body: Body = {
      tool_choice: { type: 'function', function: { name: 'get_weather' } },
      parallel_tool_calls: false,
    };
    const asked = [user('Use it')];
    const first = await ask(asked, body);
    await ask([...asked, first.message, result(first.calls[0]?.id ?? '', '4')], body);
    const [sent, next] = provider.requests.slice(from).map(({ body: bytes }) => bytes.toString());
    expect(JSON.parse(sent ?? '')).toMatchObject({
      tools: [{ function: { name: 'fs_list' } }, WEATHER],
      tool_choice: body.tool_choice,
      parallel_tool_calls: false,
    });
    expect(JSON.parse(next ?? '')).not.toHaveProperty('tool_choice');
    const entries = await entriesOf(client, first.conversation);
    const answers = ofType(entries, 'message').filter(({ role }) => role === 'assistant');
    for (const [place, { index }] of answers.entries()) {
      const { body: shown } = await client.request('view', {
        conversation: first.conversation,
        agent: 'pm',
        at: index,
        body: true,
      });
      expect(shown).toBe([sent, next][place]);
    }
  });

  it('a message of the user ends the calls that it does not answer, and takes the results that it brings', async () => {
    model.next = [{ toolCalls: [call('Oslo'), call('Rome')] }, { text: 'As you like.' }];
    const asked = [user('Look')];
    const first = await ask(asked);
    const [oslo] = first.calls.map(({ id }) => id);
    const last = await ask([...asked, first.message, result(oslo ?? '', '4'), user('Never mind')]);
    expect(last).toMatchObject({ conversation: first.conversation, message: { content: 'As you like.' } });
    const results = ofType(await lawfulEntries(client, first.conversation), 'message').filter(
      ({ role }) => role === 'tool',
    );
    expect(results.map(({ content }) => content)).toEqual(['4', expect.stringContaining('did not run this')]);
    const late = ask([...asked, first.message, result(oslo ?? '', '5')]);
    await expect(late).rejects.toMatchObject({ status: 400, code: 'CALL_OVER' });
  });

  it('only the author of the post answers its calls, by every way', async () => {
    model.next = [{ toolCalls: [call('Oslo')] }, { text: 'Cold.' }];
    const asked = [user('Mine')];
    const first = await ask(asked);
    const [{ place }] = [{ place: first.calls[0]?.id.split('_').slice(0, 2).join('_') ?? '' }];
    const { conversation } = first;
    const forged = { conversation, publisher: 'mallory', results: [{ call: place, content: '99' }] };
    await expect(client.request('results', forged)).rejects.toMatchObject({ code: 'FORBIDDEN' });
    const unknown = { conversation, publisher: 'openai', results: [{ call: 'c0_0', content: '99' }] };
    await expect(client.request('results', unknown)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const sha256 = '0'.repeat(64);
    const missing = { type: 'file' as const, sha256, mediaType: 'text/html', size: 1 };
    const unstored = {
      conversation,
      publisher: 'openai',
      results: [{ call: place, content: 'x', parts: [missing] }],
    };
    await expect(client.request('results', unstored)).rejects.toMatchObject({ code: 'MISSING_BLOB' });
    const invented = ask([...asked, first.message, result('c3_0_00000000', '4')]);
    await expect(invented).rejects.toMatchObject({
      status: 400,
      code: 'BAD_REQUEST',
      param: 'messages.2.tool_call_id',
    });
    expect((await client.request('approvals', {})).approvals).toEqual([]);
    const last = await ask([...asked, first.message, result(first.calls[0]?.id ?? '', '4')]);
    expect(last.message.content).toBe('Cold.');
  });

  it('a model gets an error for arguments that do not match, and the client is not asked', async () => {
    model.next = [
      { toolCalls: [{ name: 'get_weather', arguments: '{"town":1}' }] },
      ({ json }) => ({ text: String(json.messages?.at(-1)?.content) }),
    ];
    const answer = await ask([user('Wrong arguments')]);
    expect(answer.message.content).toContain('INVALID_ARGUMENTS');
    expect(answer.message.content).toContain('city');
  });

  const tool = (name: string, parameters: object = {}) => ({
    type: 'function' as const,
    function: { name, parameters: { ...parameters } },
  });
  const many = (count: number) => Array.from({ length: count }, (_, at) => tool(`t${at}`));

  it('a client may bring 128 tools', async () => {
    model.next = [{ text: 'So many.' }];
    expect((await ask([user('Many')], { tools: many(128) })).message.content).toBe('So many.');
  });

  it.each<[string, Body, string, string]>([
    ['too many tools', { tools: many(129) }, 'BAD_REQUEST', '128'],
    ['the name of a tool of the team', { tools: [tool('fs_list')] }, 'TOOL_NAME_TAKEN', 'fs_list'],
    ['the name of a tool of conversations', { tools: [tool('handoff')] }, 'TOOL_NAME_TAKEN', 'handoff'],
    ['two tools of one name', { tools: [tool('a'), tool('a')] }, 'BAD_REQUEST', 'same name'],
    ['a name that is none', { tools: [tool('a b')] }, 'BAD_REQUEST', 'tools.0.function.name'],
    [
      'a schema that is none',
      { tools: [tool('a', { type: 'any' })] },
      'INVALID_FIELD',
      'tools.0.function.parameters',
    ],
    [
      'a schema of 1 MB',
      { tools: [tool('a', { description: 'x'.repeat(1e6) })] },
      'BAD_REQUEST',
      'characters',
    ],
    [
      'a reference that leads away',
      { tools: [tool('a', { $ref: 'http://127.0.0.1/x' })] },
      'INVALID_FIELD',
      'tools.0.function.parameters',
    ],
    [
      'a choice that is not brought',
      { tool_choice: { type: 'function', function: { name: 'b' } } },
      'INVALID_FIELD',
      'tool_choice',
    ],
    ['an agent that takes no tools', { model: 'shy' }, 'TOOLS_NOT_TAKEN', 'shy'],
  ])('a request is refused, and leaves nothing, for %s', async (_, body, code, words) => {
    const before = await client.request('conversations', {});
    const refused = await ask([user('Bad')], body).catch((error: unknown) => error);
    expect(refused).toMatchObject({ status: 400, code, message: expect.stringContaining(words) });
    expect((await client.request('conversations', {})).conversations).toEqual(before.conversations);
  });

  it('stopping the agent ends its open call, and a later result is refused', async () => {
    model.next = [{ toolCalls: [call('Oslo')] }];
    const asked = [user('Stop me')];
    const first = await ask(asked);
    await client.request('stop', { conversation: first.conversation, agent: 'pm' });
    const late = ask([...asked, first.message, result(first.calls[0]?.id ?? '', '4')]);
    await expect(late).rejects.toMatchObject({ code: 'CALL_OVER' });
    await lawfulEntries(client, first.conversation);
    await client.request('resume', { conversation: first.conversation, agent: 'pm' });
  });
});
