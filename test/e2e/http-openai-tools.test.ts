import OpenAI from 'openai';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ParleyClient } from '../../src/client/index.ts';
import { checkLaws } from '../../src/conversation/index.ts';
import type { FakeCall, FakeHandler, FakeReply } from '../support/fake-provider.ts';
import { shared } from '../support/lifetime.ts';
import { entriesOf, ofType } from '../support/log.ts';
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
  let replies: (FakeReply | FakeHandler)[] = [];

  const project = shared(() =>
    openProject({
      nats: {},
      settings: { retry: { attempts: 1 } },
      model: (request, count) => {
        const next = replies.shift() ?? { text: 'no more replies' };
        return typeof next === 'function' ? next(request, count) : next;
      },
      agents: {
        pm: '---\nname: Pam\ndescription: plans\ntools: [fs_list]\n---\nPERSONA OF PAM',
        shy: '---\nname: Shy\ndescription: takes no tools\nclientTools: false\n---\nPERSONA OF SHY',
      },
    }),
  );

  async function start(): Promise<void> {
    daemon = await project.up('--http', '127.0.0.1:0');
    client = await project.connect();
    openai = new OpenAI({ baseURL: `${daemon.ready.http}/v1`, apiKey: 'none', maxRetries: 0 });
  }
  beforeAll(start);
  beforeEach(() => {
    replies = [];
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
  const lawful = async (conversation: string) => {
    const entries = await entriesOf(client, conversation);
    expect(checkLaws(entries)).toEqual([]);
    return entries;
  };

  it('a call of a client’s tool is answered by its next request, and the turn continues, also if the daemon is killed in between', async () => {
    replies = [{ text: 'Let me look.', toolCalls: [call('Oslo')] }, { text: 'It is 4 degrees.' }];
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
    const entries = await lawful(first.conversation);
    expect(ofType(entries, 'turn-ended').map(({ outcome }) => outcome)).toEqual(['waiting', 'completed']);
    const results = ofType(entries, 'message').filter(({ role }) => role === 'tool');
    expect(results.map(({ content, author }) => [content, author.id])).toEqual([['4 degrees', 'openai']]);
    replies = [{ text: 'You are welcome.' }];
    const thanks = await ask([...messages, last.message, user('Thanks')]);
    expect(thanks).toMatchObject({
      conversation: first.conversation,
      message: { content: 'You are welcome.' },
    });
  });
});
