import Anthropic from '@anthropic-ai/sdk';
import { describe, expect, it } from 'vitest';
import { type ModelProfile, PLAIN_FORM, RequestAssembler, type WireTool } from '../../src/agents/index.ts';
import type { ViewPart } from '../../src/conversation/index.ts';
import { anthropic } from '../../src/models/anthropic/encode.ts';
import { type AnthropicReply, anthropicApi } from '../support/anthropic-provider.ts';
import { startFakeProvider } from '../support/fake-provider.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { signatureOf } from '../support/messages-rules.ts';
import { PROFILE, partsOf } from '../unit/agents/support.ts';
import { callAt } from './models-openai-support.ts';

const BOUND = 'anthropic h claude-haiku-4-5';
const signed = (thinking: string) => ({ signature: signatureOf(thinking) });
const POINT = { cache_control: { type: 'ephemeral' } } as const;

const LOOK: WireTool = {
  type: 'function',
  function: { name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } },
};

/** The second request of a turn that follows another one. */
const VIEW: { readonly history: readonly ViewPart[]; readonly tail: readonly ViewPart[] } = {
  history: [
    { kind: 'history', entries: [0], message: { role: 'user', content: 'Hello' } },
    { kind: 'history', entries: [1], message: { role: 'assistant', content: 'Hello, Alice.' } },
  ],
  tail: [
    { kind: 'trigger', entries: [2], message: { role: 'user', content: '[Bob]: Look twice. 👋🏽' } },
    {
      kind: 'turn',
      entries: [3],
      message: {
        role: 'assistant',
        content: 'I look.',
        reasoning: 'Twice, then.',
        blocks: {
          boundTo: BOUND,
          list: [
            { type: 'reasoning', length: 12, opaque: signed('Twice, then.') },
            { type: 'opaque', opaque: { type: 'redacted_thinking', data: 'AAEC' } },
            { type: 'text', length: 7 },
            { type: 'call' },
            { type: 'call' },
          ],
        },
        tool_calls: [
          { id: 'c3_0', type: 'function', function: { name: 'look', arguments: '{"at":"é"}' } },
          { id: 'c3_1', type: 'function', function: { name: 'look', arguments: '{}' } },
        ],
      },
    },
    { kind: 'turn', entries: [4], message: { role: 'tool', content: 'a', tool_call_id: 'c3_0' } },
    { kind: 'turn', entries: [5], message: { role: 'tool', content: 'b', tool_call_id: 'c3_1' } },
  ],
};

/** The same request, as a user of the SDK writes it. */
const WRITTEN = {
  model: 'claude-haiku-4-5',
  max_tokens: 8_000,
  stream: true,
  stop_sequences: ['END'],
  thinking: { type: 'enabled', budget_tokens: 2_000 },
  system: [{ type: 'text', text: 'You look.', ...POINT }],
  tools: [
    { name: 'look', description: 'Looks.', input_schema: { type: 'object', properties: {} }, ...POINT },
  ],
  messages: [
    { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
    { role: 'assistant', content: [{ type: 'text', text: 'Hello, Alice.', ...POINT }] },
    { role: 'user', content: [{ type: 'text', text: '[Bob]: Look twice. 👋🏽' }] },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Twice, then.', ...signed('Twice, then.') },
        { type: 'redacted_thinking', data: 'AAEC' },
        { type: 'text', text: 'I look.' },
        { type: 'tool_use', id: 'c3_0', name: 'look', input: { at: 'é' } },
        { type: 'tool_use', id: 'c3_1', name: 'look', input: {} },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'c3_0', content: 'a' },
        { type: 'tool_result', tool_use_id: 'c3_1', content: 'b', ...POINT },
      ],
    },
  ],
} satisfies Anthropic.MessageCreateParamsStreaming;

function ourRequest() {
  const settings = {
    ...{ model: 'claude-haiku-4-5', maxOutputTokens: 8_000, stream: true, streamUsage: true },
    ...{ outputLimit: 'max_tokens', stop: 'END', reasoningTokens: 2_000 },
  };
  const profile: ModelProfile = {
    ...PROFILE,
    fields: anthropic.fields(settings),
    headers: {},
    form: { ...PLAIN_FORM, dialect: 'anthropic', boundTo: BOUND, cacheTtl: '5m' },
  };
  const view = { ...VIEW, historyLength: VIEW.history.length, historyVersion: 0 };
  const parts = partsOf([], { prefix: 'You look.', tools: [LOOK], profile, view });
  return new RequestAssembler().assemble(parts).request;
}

async function openApi(reply: AnthropicReply) {
  const api = anthropicApi([reply]);
  const provider = untilTestEnds(await startFakeProvider(api.answer));
  const sdk = new Anthropic({
    baseURL: provider.url.replace(/\/v1$/, ''),
    apiKey: 'unused',
    maxRetries: 0,
    defaultHeaders: { 'x-api-key': 'k', authorization: null, 'anthropic-version': '2023-06-01' },
  });
  return { api, provider, sdk };
}

describe("the package of Anthropic's API", () => {
  it('a request of the package and ours have the same meaning, and both are accepted', async () => {
    const { api, provider, sdk } = await openApi({ text: 'Both.' });
    for await (const _ of await sdk.messages.create(WRITTEN));
    const { outcome } = await callAt(provider.url, {
      options: { dialect: 'anthropic' },
      request: ourRequest(),
    });
    expect(api.refusals).toEqual([]);
    expect(outcome).toMatchObject({ kind: 'answered', answer: { content: 'Both.' } });
    const [theirs, ours] = provider.requests;
    expect(ours?.json).toEqual(theirs?.json);
    expect([ours?.path, ours?.headers['content-type']]).toEqual([
      theirs?.path,
      theirs?.headers['content-type'],
    ]);
  });

  it('the package reads the same answer from a stream as we do', async () => {
    const { provider, sdk } = await openApi({
      blocks: [
        { type: 'thinking', thinking: 'Hm… 👋🏽' },
        { type: 'redacted_thinking', data: 'AAEC' },
        { type: 'text', text: 'Grüße, 世界' },
        { type: 'tool_use', name: 'look', input: { at: ['é', 1] } },
      ],
    });
    const { stream: _, ...written } = WRITTEN;
    const theirs = await sdk.messages.stream(written).finalMessage();
    const { outcome } = await callAt(provider.url, {
      options: { dialect: 'anthropic' },
      request: ourRequest(),
    });
    const ours = outcome.kind === 'answered' ? outcome.answer : undefined;
    const texts = (type: 'text' | 'thinking') =>
      theirs.content
        .map((block) => (block.type === type && type in block ? Reflect.get(block, type) : ''))
        .join('');
    expect([ours?.content, ours?.reasoning]).toEqual([texts('text'), texts('thinking')]);
    const calls = theirs.content.flatMap((block) =>
      block.type === 'tool_use' ? [[block.name, block.input]] : [],
    );
    expect(ours?.toolCalls.map((call) => [call.name, JSON.parse(call.arguments)])).toEqual(calls);
    expect(ours?.finishReason).toBe(theirs.stop_reason);
    expect(ours?.usage?.outputTokens).toBe(theirs.usage.output_tokens);
    expect(ours?.blocks?.flatMap(({ opaque }) => opaque ?? [])).toEqual([
      signed('Hm… 👋🏽'),
      { type: 'redacted_thinking', data: 'AAEC' },
    ]);
  });
});
