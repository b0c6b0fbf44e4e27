import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type AnthropicHandler, type AnthropicReply, anthropicApi } from '../support/anthropic-provider.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { ask, checkLog, entriesOf, ofType, outcomesOf } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import type { MessagesBody } from '../support/messages-rules.ts';
import { openProject, sharedProject } from '../support/project.ts';

const CLAUDE = {
  ...{ provider: 'anthropic', apiKey: 'sk-ant-test', model: 'claude-haiku-4-5', maxOutputTokens: 8_000 },
  ...{ reasoningTokens: 2_000 },
};
const AGENTS = {
  fable: '---\nname: Fable\nmodel: fable\n---\nYou think.',
  pm: `---\nname: Pam\ntools: [set_phase]\n---\n${'You plan with care. '.repeat(250)}`,
};

/** Thinks, says something and calls a tool. */
const PLAN: AnthropicReply = {
  blocks: [
    { type: 'thinking', thinking: 'They want a plan. 👋🏽' },
    { type: 'redacted_thinking', data: 'AAEC' },
    { type: 'text', text: 'First the phase.' },
    { type: 'tool_use', name: 'set_phase', input: { phase: 'plan', reason: 'to plan' } },
  ],
};
const DONE: AnthropicReply = {
  blocks: [
    { type: 'thinking', thinking: 'Now I can.' },
    { type: 'text', text: 'Here it is.' },
  ],
};

const hasResult = ({ messages }: MessagesBody) =>
  messages.at(-1)?.content.some(({ type }) => type === 'tool_result') ?? false;
const plans: AnthropicHandler = (request) => (hasResult(request) ? DONE : PLAN);

describe('a daemon whose model is Claude', () => {
  let reply: AnthropicHandler = plans;
  const api = anthropicApi((request, count) => reply(request, count));
  const project = sharedProject({
    model: api.answer,
    agents: AGENTS,
    settings: (baseURL) => ({
      models: {
        default: { ...CLAUDE, baseURL, price: { inputPerMillion: 10, outputPerMillion: 100 } },
        fable: {
          ...{ provider: 'anthropic', apiKey: 'sk-ant-test', model: 'claude-fable-5-2', baseURL },
          price: { inputPerMillion: 10, outputPerMillion: 100 },
        },
      },
      limits: { usdPerConversation: 5 },
    }),
  });
  const { client, provider } = project;

  it('a post is answered by a stream of the Messages API, with a tool and reasoning, and the bytes are explained', async () => {
    reply = plans;
    const before = provider.requests.length;
    const said = await project.parley('say', 'plans', '@pm plan it', '--as', 'alice', '--wait');
    expect(said.stdout).toContain('Here it is.');
    expect(api.refusals).toEqual([]);
    const [first, second] = provider.requests.slice(before);
    expect(first?.headers).toMatchObject({ 'x-api-key': 'sk-ant-test', 'anthropic-version': '2023-06-01' });
    const request = second?.json as unknown as MessagesBody | undefined;
    expect(request?.messages.map(({ content }) => content.map(({ type }) => type))).toEqual([
      ['text'],
      ['thinking', 'redacted_thinking', 'text', 'tool_use'],
      ['tool_result'],
    ]);
    const entries = await entriesOf(client, 'plans');
    const hashes = ofType(entries, 'message').flatMap(({ requestHash }) => requestHash ?? []);
    const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
    const sent = [first, second].map((request) => sha256(request?.body ?? Buffer.alloc(0)));
    expect(hashes).toEqual(sent);
    const [answer] = entries
      .filter((entry) => entry.type === 'message' && entry.role === 'assistant')
      .slice(-1);
    const explain = ['explain', 'plans', '--agent', 'pm', '--at', `${answer?.index}`, '--json'];
    const [{ report }] = (await project.parley(...explain, '--config', project.config)).json();
    expect(report).toMatchObject({ sent: true, fault: null }); // the recorded hash is that of the explained bytes
    expect(checkLog(await project.logFile('plans'))).toEqual([]);
  });

  it('the next request of a turn and the next turn read from the cache what was sent before, and it is counted', async () => {
    reply = plans;
    const before = api.usages.length;
    await ask(client, 'cached', 'plan it');
    await ask(client, 'cached', 'and once more');
    const usages = api.usages.slice(before);
    expect(usages.length).toBe(4);
    for (const [at, { cache_read_input_tokens: read, input_tokens: uncached }] of usages.entries()) {
      if (at > 0) expect([at, read > 1_024, read > 5 * uncached]).toEqual([at, true, true]);
    }
    const { metadata } = await client.request('conversation', { conversation: 'cached' });
    const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
    expect(metadata.usage.pm).toMatchObject({
      cachedInputTokens: sum(usages.map((one) => one.cache_read_input_tokens)),
      cacheWriteTokens: sum(usages.map((one) => one.cache_creation_input_tokens)),
    });
  });

  it('a model that binds its reasoning to what came before continues although notices of earlier turns are gone', async () => {
    const bound = (count: number): AnthropicReply => ({
      blocks: [
        { type: 'thinking', thinking: `They ask ${count}.` },
        { type: 'text', text: 'Noted.' },
      ],
    });
    let count = 0;
    reply = ({ model }) => (model === CLAUDE.model ? { text: 'Meanwhile.' } : bound(count++));
    for (const content of ['@fable one', '@pm and you?', '@fable two', '@fable three'])
      await ask(client, 'bound', content);
    const entries = await entriesOf(client, 'bound');
    expect(outcomesOf(entries, 'fable')).toEqual(['completed', 'completed', 'completed']);
    expect(api.refusals).toEqual([]);
  });

  it.each<[string, AnthropicReply]>([
    ['an overload', { error: 'overloaded_error' }],
    ['a rate limit', { error: 'rate_limit_error', headers: { 'retry-after': '0' } }],
    ['an error of the provider', { error: 'api_error' }],
    ['an error in place of the first event', { blocks: [], lateError: 'overloaded_error' }],
  ])('a call is repeated after %s', async (what, failure) => {
    let count = 0;
    reply = () => (count++ === 0 ? failure : { text: 'In the end.' });
    const entries = await ask(client, what.replaceAll(' ', '-'), 'go');
    expect(outcomesOf(entries, 'pm')).toEqual(['completed']);
    expect(count).toBe(2);
  });

  it.each([
    ['authentication_error', 'UNAUTHORIZED'],
    ['permission_error', 'UNAUTHORIZED'],
    ['billing_error', 'QUOTA_EXHAUSTED'],
    ['not_found_error', 'NOT_FOUND'],
    ['request_too_large', 'CONTEXT_TOO_LONG'],
  ] as const)('a turn fails after the error %s, as %s', async (error, code) => {
    reply = () => ({ error });
    const entries = await ask(client, error, 'go');
    expect(outcomesOf(entries, 'pm')).toEqual(['failed']);
    expect(JSON.stringify(entries)).toContain(code);
  });

  it('the probe of doctor is accepted although the model reasons', async () => {
    reply = () => ({ text: 'Yes', stopReason: 'max_tokens' });
    const ran = await project.parley('doctor', '--config', project.config, '--probe', '--json');
    expect(ran.json().find(({ name }) => name === 'model default')).toMatchObject({ status: 'ok' });
    expect(api.refusals).toEqual([]);
  });

  it('a paused answer is continued, and a refusal is shown as one', async () => {
    let count = 0;
    reply = () => (count++ === 0 ? { text: 'One moment.', stopReason: 'pause_turn' } : { text: 'Done.' });
    await ask(client, 'paused', 'go');
    await ask(client, 'paused', 'continue');
    expect(api.refusals).toEqual([]);
    reply = () => ({ text: 'I will not.', stopReason: 'refusal' });
    const entries = await ask(client, 'refused', 'go');
    expect(ofType(entries, 'message').at(-1)).toMatchObject({
      content: 'I will not.',
      finishReason: 'refusal',
    });
  });
});

describe('a daemon that is killed in a tool loop of Claude', () => {
  itLong('the same bytes are sent again, and the API accepts the reasoning in them', async () => {
    let isHanging = true;
    const api = anthropicApi((request) => {
      if (!hasResult(request)) return PLAN;
      return isHanging ? { ...DONE, hang: 'after-text' } : DONE;
    });
    const project = untilTestEnds(
      await openProject({
        ...{ nats: {}, model: api.answer, agents: { pm: AGENTS.pm } },
        settings: (baseURL) => ({ models: { default: { ...CLAUDE, baseURL } } }),
      }),
    );
    const first = await project.up();
    const client = await project.connect();
    await client.post({ conversation: 'demo', publisher: 'alice', content: 'plan it' });
    await project.provider.waitForRequests(2);
    await first.kill9();
    await project.provider.waitForIdle();
    isHanging = false;
    await project.up();
    const entries = await ask(client, 'demo', 'thank you');
    expect(api.refusals).toEqual([]);
    const [, second, third] = project.provider.requests;
    expect(third?.body.equals(second?.body ?? Buffer.alloc(0))).toBe(true);
    expect(new Set(outcomesOf(entries, 'pm'))).toEqual(new Set(['completed']));
    expect(checkLog(await project.logFile('demo'))).toEqual([]);
  });
});
