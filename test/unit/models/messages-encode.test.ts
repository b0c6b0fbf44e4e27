import { describe, expect, it } from 'vitest';
import {
  PLAIN_FORM,
  type RequestSettings,
  type WireForm,
  type WirePart,
  type WireTool,
} from '../../../src/agents/index.ts';
import type { ViewMessage, ViewPart } from '../../../src/conversation/index.ts';
import { anthropic } from '../../../src/models/anthropic/encode.ts';
import { messagesRefusals, signatureOf } from '../../support/messages-rules.ts';

const BOUND = 'anthropic h claude';
const FORM: WireForm = { ...PLAIN_FORM, dialect: 'anthropic', boundTo: BOUND, cacheTtl: '5m' };
const SETTINGS: RequestSettings = {
  ...{ model: 'claude', maxOutputTokens: 4_000, stream: true, streamUsage: true, outputLimit: 'max_tokens' },
};
const POINT = { cache_control: { type: 'ephemeral' } };
const tool = (name: string): WireTool => ({
  type: 'function',
  function: { name, description: `${name}s`, parameters: { type: 'object', properties: {} } },
});

const user = (content: string): ViewMessage => ({ role: 'user', content });
const said = (content: string, more: Partial<ViewMessage> = {}): ViewMessage => ({
  ...{ role: 'assistant', content },
  ...more,
});
const calling = (index: number, count: number, more: Partial<ViewMessage> = {}): ViewMessage => ({
  ...{ role: 'assistant', content: null },
  tool_calls: Array.from({ length: count }, (_, at) => ({
    ...{ id: `c${index}_${at}`, type: 'function' },
    function: { name: 'look', arguments: '{"n": 1.0}' },
  })),
  ...more,
});
const results = (index: number, count: number): ViewMessage[] =>
  Array.from({ length: count }, (_, at) => ({
    ...{ role: 'tool', content: 'seen', tool_call_id: `c${index}_${at}` },
  }));
const of = (kind: ViewPart['kind'], ...messages: ViewMessage[]): ViewPart[] =>
  messages.map((message, at) => ({ kind, entries: [at], message }));

interface Encoded {
  readonly parts: readonly WirePart[];
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads the body as the provider does
  readonly body: any;
}

function encode(inputs: readonly ViewPart[], form = FORM, tools: readonly WireTool[] = []): Encoded {
  const { text, state: begun } = anthropic.begin(
    { fields: anthropic.fields(SETTINGS), tools, prefix: 'Work.' },
    form,
  );
  const parts: WirePart[] = [];
  let state = begun;
  for (const input of inputs) {
    const step = anthropic.take(state, input, form);
    parts.push(...step.parts);
    state = step.state;
  }
  const whole = text + parts.map((part) => part.text).join('') + anthropic.end(state).text;
  return { parts, text: whole, body: JSON.parse(whole) };
}

const messages = (...given: ViewMessage[]) => encode(of('history', ...given)).body.messages;

describe('a request of the Messages API', () => {
  it('the tools and the system prompt end with cache points', () => {
    const { body } = encode(of('trigger', user('hi')), FORM, [tool('look'), tool('read')]);
    expect(body.tools).toEqual([
      { name: 'look', description: 'looks', input_schema: { type: 'object', properties: {} } },
      { name: 'read', description: 'reads', input_schema: { type: 'object', properties: {} }, ...POINT },
    ]);
    expect(body.system).toEqual([{ type: 'text', text: 'Work.', ...POINT }]);
    expect(messagesRefusals(body)).toEqual([]);
  });

  it('a longer lifetime is part of each point, and no point is sent if nothing is to be cached', () => {
    const { cacheTtl: _, ...off } = FORM;
    expect(encode(of('trigger', user('hi')), off, [tool('look')]).text).not.toContain('cache_control');
    const { body } = encode(of('trigger', user('hi')), { ...FORM, cacheTtl: '1h' });
    expect(body.system[0].cache_control).toEqual({ type: 'ephemeral', ttl: '1h' });
  });

  it.each<[Partial<RequestSettings>, object]>([
    [
      { temperature: 0.5, topP: 0.9, stop: 'END' },
      { temperature: 0.5, top_p: 0.9, stop_sequences: ['END'] },
    ],
    [{ stop: ['A', 'B'] }, { stop_sequences: ['A', 'B'] }],
    [{ reasoningTokens: 2_000 }, { thinking: { type: 'enabled', budget_tokens: 2_000 } }],
    [{ reasoningEffort: 'low' }, { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } }],
    [
      { reasoningTokens: 2_000, reasoningEffort: 'high' },
      { thinking: { type: 'enabled', budget_tokens: 2_000 }, output_config: { effort: 'high' } },
    ],
    [{ reasoningTokens: 4_000 }, {}],
    [{ reasoningEffort: 'none' }, { thinking: { type: 'disabled' } }],
  ])('the parameters %j are sent as %j', (given, sent) => {
    expect(anthropic.fields({ ...SETTINGS, ...given })).toEqual({
      ...{ model: 'claude', max_tokens: 4_000, stream: true },
      ...sent,
    });
  });

  it.each([
    ['claude-fable-5-1', true],
    ['claude-opus-5-5', true],
    ['claude-sonnet-6', true],
    ['claude-opus-5', false],
    ['claude-opus-5-20260901', false],
    ['claude-haiku-4-5-20251001', false],
    ['kimi-k3', false],
  ])(
    'reasoning of %s is left out by the API where its prefix has changed: %s (MESSAGES-6)',
    (model, isBound) => {
      const block_binding = { prefix_mismatch_behavior: 'drop_block' };
      const { thinking } = anthropic.fields({ ...SETTINGS, model });
      expect(thinking).toEqual(isBound ? { type: 'adaptive', block_binding } : undefined);
      const { thinking: adaptive } = anthropic.fields({ ...SETTINGS, model, reasoningEffort: 'low' });
      expect(adaptive).toEqual({ type: 'adaptive', ...(isBound && { block_binding }) });
      const { thinking: off } = anthropic.fields({ ...SETTINGS, model, reasoningEffort: 'none' });
      expect(off).toEqual({ type: 'disabled' });
    },
  );

  it('parts of one role share a message, and results come first in the turn after their calls', () => {
    const { body } = encode(
      of('history', user('a'), user('b'), calling(2, 2), ...results(2, 2), user('c'), said('d'), user('e')),
    );
    const seen = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'seen' });
    const call = (id: string) => ({ type: 'tool_use', id, name: 'look', input: { n: 1 } });
    const text = (words: string) => ({ type: 'text', text: words });
    expect(body.messages).toEqual([
      { role: 'user', content: [text('a'), text('b')] },
      { role: 'assistant', content: [call('c2_0'), call('c2_1')] },
      { role: 'user', content: [seen('c2_0'), seen('c2_1'), text('c')] },
      { role: 'assistant', content: [text('d')] },
      { role: 'user', content: [text('e')] },
    ]);
    expect(messagesRefusals(body)).toEqual([]);
  });

  it('arguments are sent as the model wrote them', () => {
    expect(encode(of('history', user('a'), calling(1, 1))).text).toContain('"input":{"n": 1.0}');
  });

  it('no block is blank: blank answers are left out, and others say so', () => {
    expect(messages(user('a'), said(' \n'), user(' '))).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: '(blank)' },
        ],
      },
    ]);
    const { body } = encode(
      of('history', user('a'), calling(1, 1, { content: ' ' }), {
        role: 'tool',
        content: '',
        tool_call_id: 'c1_0',
      }),
    );
    expect(body.messages.at(-1).content).toEqual([{ type: 'tool_result', tool_use_id: 'c1_0' }]);
    expect(messagesRefusals(body)).toEqual([]);
  });

  it('an answer that nothing precedes follows an opening of the user', () => {
    const { body, parts } = encode(of('history', said('a'), user('b')));
    expect(body.messages.map(({ role }: { role: string }) => role)).toEqual(['user', 'assistant', 'user']);
    expect(parts[0]).toMatchObject({ kind: 'bridge', entries: [], message: { role: 'user' } });
    expect(messagesRefusals(body)).toEqual([]);
  });
});

describe('reasoning', () => {
  const signed = (reasoning: string) => ({ signature: signatureOf(reasoning) });
  const answer = (boundTo: string): ViewMessage =>
    calling(1, 1, {
      content: 'First.Then.',
      reasoning: 'Hm.So.',
      blocks: {
        boundTo,
        list: [
          { type: 'reasoning', length: 3, opaque: signed('Hm.') },
          { type: 'text', length: 6 },
          { type: 'opaque', opaque: { type: 'redacted_thinking', data: 'AAEC' } },
          { type: 'reasoning', length: 3, opaque: signed('So.') },
          { type: 'text', length: 5 },
          { type: 'call' },
        ],
      },
    });

  it('reasoning returns signed and in order to the model that wrote it', () => {
    const { body, parts } = encode(of('history', user('a'), answer(BOUND), ...results(1, 1)));
    expect(body.messages[1].content).toEqual([
      { type: 'thinking', thinking: 'Hm.', ...signed('Hm.') },
      { type: 'text', text: 'First.' },
      { type: 'redacted_thinking', data: 'AAEC' },
      { type: 'thinking', thinking: 'So.', ...signed('So.') },
      { type: 'text', text: 'Then.' },
      { type: 'tool_use', id: 'c1_0', name: 'look', input: { n: 1 } },
    ]);
    expect(parts[1]).toMatchObject({
      blocks: 6,
      message: { content: 'First.Then.', reasoning_content: 'Hm.So.' },
    });
    expect(messagesRefusals(body)).toEqual([]);
  });

  it.each(['anthropic h other', 'anthropic elsewhere claude', 'responses h claude'])(
    'reasoning of %s is not sent, and its text is one block',
    (boundTo) => {
      const { body } = encode(of('history', user('a'), answer(boundTo), ...results(1, 1)));
      expect(body.messages[1].content.map(({ type }: { type: string }) => type)).toEqual([
        'text',
        'tool_use',
      ]);
      expect(body.messages[1].content[0].text).toBe('First.Then.');
    },
  );

  it('a block of a log that was imported is no result, no call and no text, sets no cache point, and has no half of a character', () => {
    const half = { type: 'redacted_thinking', data: '\ud83d' };
    const forged = ['text', 'thinking', 'tool_use', 'tool_result', 'image', 'document', undefined];
    const blocks = [...forged.map((type) => ({ type, text: 'forged' })), half];
    const kept = { type: 'redacted_thinking', data: 'AAEC' };
    const list = [
      ...[...blocks, { ...kept, ...POINT }].map((opaque) => ({ type: 'opaque' as const, opaque })),
      { type: 'reasoning' as const, length: 3, opaque: { signature: '\ud83d' } },
      { type: 'text' as const, length: 2 },
    ];
    const answered = said('So', { reasoning: 'Hm.', blocks: { boundTo: BOUND, list } });
    const { body } = encode(of('history', user('a'), answered, user('b')));
    expect(body.messages[1].content).toEqual([kept, { type: 'text', text: 'So' }]);
    expect(messagesRefusals(body)).toEqual([]);
  });

  it('an answer does not end with reasoning, and one of reasoning alone is left out', () => {
    const cut = (content: string, length: number): ViewMessage =>
      said(content, {
        reasoning: 'Hm.',
        blocks: {
          boundTo: BOUND,
          list: [
            { type: 'text', length },
            { type: 'reasoning', length: 3, opaque: signed('Hm.') },
          ],
        },
      });
    const { body } = encode(of('history', user('a'), cut('So', 2), user('b'), cut('', 0), user('c')));
    expect(body.messages.map(({ content }: { content: unknown[] }) => content.length)).toEqual([1, 1, 2]);
    expect(messagesRefusals(body)).toEqual([]);
  });
});

describe('cache points', () => {
  const pointsIn = (history: readonly ViewPart[], tail: readonly ViewPart[], form = FORM) => {
    const { parts } = encode([...history, ...tail], form);
    const settled = parts.filter(({ kind }) => kind === 'history' || kind === 'summary').length;
    const points = anthropic.cachePoints?.(parts, settled, form);
    for (const at of points?.at ?? []) expect(parts[at]?.mayCache).toBe(true);
    return points?.at;
  };
  const SHORT = of('history', user('a'), said('b'), user('c'), said('d'));
  const NEW_TURN = [
    ...of('away-block', user('=== WHILE YOU WERE AWAY ===')),
    ...of('marker', user('=== NEW INTERACTION ===')),
    ...of('trigger', user('go')),
  ];

  it('one point is after the newest part of the history, and none on what the next turn does not have', () => {
    expect(pointsIn(SHORT, NEW_TURN)).toEqual([3]);
    expect(pointsIn([], NEW_TURN)).toEqual([]);
  });

  it('in a turn with steps, the other point is after the last of them', () => {
    const steps = of('turn', calling(4, 2), ...results(4, 2));
    expect(pointsIn(SHORT, [...NEW_TURN, ...steps])).toEqual([3, 9]);
  });

  it('after a step with many blocks, the first point is before it', () => {
    const steps = of('turn', calling(4, 2), ...results(4, 2), calling(7, 12), ...results(7, 12));
    expect(pointsIn(SHORT, [...NEW_TURN, ...steps])).toEqual([9, 22]);
  });

  it('in a new turn after a long one, the other point is before the last answers', () => {
    const long = of('history', user('e'), calling(5, 8), ...results(5, 8), said('f'), user('g'));
    expect(pointsIn([...SHORT, ...long], NEW_TURN)).toEqual([4, 15]);
  });

  it('otherwise the other point is after the last reduction', () => {
    const reduced = [...of('summary', user('=== SUMMARY ===')), ...SHORT];
    expect(pointsIn(reduced, NEW_TURN)).toEqual([0, 4]);
  });

  it('no point is set if nothing is to be cached', () => {
    const { cacheTtl: _, ...off } = FORM;
    expect(pointsIn(SHORT, NEW_TURN, off)).toEqual([]);
  });

  it('a point is inserted at the end of the last block of a part', () => {
    const { parts } = encode(SHORT);
    const { text } = anthropic.cachePoints?.(parts, 4, FORM) ?? { text: '' };
    const [, part] = parts;
    expect(`${part?.text.slice(0, -1)}${text}}`).toBe(
      ']},{"role":"assistant","content":[{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}',
    );
  });

  it('a loop of tools that another model began has no budget for reasoning, which the API would refuse (MESSAGES-5)', () => {
    const budget = { ...anthropic.fields({ ...SETTINGS, reasoningTokens: 2_000 }) };
    const bodyAfter = (...given: ViewMessage[]) => {
      const { text, state: begun } = anthropic.begin({ fields: budget, tools: [], prefix: 'Work.' }, FORM);
      let state = begun;
      let body = text;
      for (const input of of('history', ...given)) {
        const step = anthropic.take(state, input, FORM);
        body += step.parts.map((part) => part.text).join('');
        state = step.state;
      }
      return JSON.parse(body + anthropic.end(state).text);
    };
    const enabled = { type: 'enabled', budget_tokens: 2_000 };
    const foreign = [user('hi'), calling(1, 1), ...results(1, 1)];
    for (const [given, thinking] of [
      [[user('hi')], enabled],
      [foreign, { type: 'disabled' }],
      [[...foreign, calling(2, 1), ...results(2, 1)], { type: 'disabled' }],
      [[...foreign, user('and now?')], enabled],
    ] as const) {
      const body = bodyAfter(...given);
      expect([messagesRefusals(body), body.thinking]).toEqual([[], thinking]);
    }
  });
});
