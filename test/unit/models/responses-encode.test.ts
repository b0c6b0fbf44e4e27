import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import {
  PLAIN_FORM,
  type RequestSettings,
  type WireForm,
  type WirePart,
  type WireTool,
} from '../../../src/agents/index.ts';
import type { Blocks, ViewMessage, ViewPart } from '../../../src/conversation/index.ts';
import { responses } from '../../../src/models/responses/encode.ts';
import { refusalOf } from '../../support/responses-provider.ts';

const BOUND = 'responses h gpt-5';
const FORM: WireForm = { ...PLAIN_FORM, dialect: 'responses', boundTo: BOUND, sendReasoning: 'always' };
const SETTINGS: RequestSettings = {
  ...{ model: 'gpt-5', maxOutputTokens: 4_000, stream: true, streamUsage: true, outputLimit: 'max_tokens' },
};
const TOOL: WireTool = {
  type: 'function',
  function: { name: 'look', description: 'looks', parameters: { type: 'object', properties: {} } },
};
const USER: ViewMessage = { role: 'user', content: '[Alice]: hello' };
const RESULT: ViewMessage = { role: 'tool', content: 'seen', tool_call_id: 'c1_0' };
const ENCRYPTED = 'enc:gpt-5:rs_1';

/** An answer in which everything occurs. */
const ANSWER: ViewMessage = {
  role: 'assistant',
  content: 'Look:\n\nNo.',
  reasoning: 'One.\n\nTwo.',
  tool_calls: [{ id: 'c1_0', type: 'function', function: { name: 'look', arguments: '{"a": 1.0}' } }],
};
const pieces = (...given: [string, number][]) => ({ pieces: given });
const LIST: Blocks['list'] = [
  {
    ...{ type: 'reasoning', length: 10 },
    opaque: {
      id: 'rs_1',
      encrypted_content: ENCRYPTED,
      ...pieces(['summary_text', 4], ['', 2], ['summary_text', 4]),
    },
  },
  { type: 'text', length: 5, opaque: { id: 'msg_1__rs_1', status: 'completed', phase: 'commentary' } },
  {
    ...{ type: 'text', length: 5 },
    opaque: { id: 'msg_2__rs_1', status: 'completed', ...pieces(['', 2], ['refusal', 3]) },
  },
  { type: 'opaque', opaque: { type: 'compaction', id: 'cmp_1', encrypted_content: 'gAAA' } },
  { type: 'call', opaque: { id: 'fc_1__rs_1', status: 'completed' } },
];
const by = (boundTo: string): ViewMessage => ({ ...ANSWER, blocks: { boundTo, list: LIST } });

const SAID = { type: 'message', role: 'assistant', status: 'completed' } as const;
const LOOK = { ...SAID, id: 'msg_1__rs_1', phase: 'commentary' } as const;
const NO = { ...SAID, id: 'msg_2__rs_1' };
const SUMMARY = ['One.', 'Two.'].map((text) => ({ type: 'summary_text', text }) as const);
const CALL = { type: 'function_call', call_id: 'c1_0', name: 'look', arguments: '{"a": 1.0}' } as const;
const OUTPUT = { type: 'function_call_output', call_id: 'c1_0', output: 'seen' } as const;
const said = (text: string) => {
  const content = [{ type: 'input_text' as const, text }];
  return { type: 'message' as const, role: 'user' as const, content };
};

function encode(
  messages: readonly ViewMessage[],
  settings: Partial<RequestSettings> = {},
  tools = [TOOL],
  form = FORM,
) {
  const inputs: ViewPart[] = messages.map((message, at) => ({ kind: 'history', entries: [at], message }));
  const fields = responses.fields({ ...SETTINGS, ...settings });
  const begun = responses.begin({ fields, tools, prefix: 'Work.' }, form);
  const parts: WirePart[] = [...begun.parts];
  let { state } = begun;
  for (const input of inputs) {
    const step = responses.take(state, input, form);
    parts.push(...step.parts);
    state = step.state;
  }
  const body = JSON.parse(begun.text + parts.map((part) => part.text).join('') + responses.end(state).text);
  return { parts, body };
}

describe('a request of the Responses API', () => {
  it('the system prompt is its instructions, tools are flat, and nothing is stored', () => {
    const { body, parts } = encode([USER], { reasoningEffort: 'high', temperature: 0, topP: 1 });
    expect(body).toEqual({
      model: 'gpt-5',
      stream: true,
      store: false,
      include: ['reasoning.encrypted_content'],
      max_output_tokens: 4_000,
      temperature: 0,
      top_p: 1,
      reasoning: { effort: 'high', summary: 'auto' },
      instructions: 'Work.',
      tools: [{ ...TOOL.function, type: 'function', strict: false }],
      input: [said('[Alice]: hello')],
    });
    expect(refusalOf(body)).toBeNull();
    expect(parts.map(({ kind, text }) => [kind, text !== ''])).toEqual([
      ['prefix', false],
      ['history', true],
    ]);
  });

  it('without tools, without an effort or with none, the fields for them are absent', () => {
    const { body } = encode([USER], {}, []);
    expect(body).not.toHaveProperty('tools');
    expect(body).not.toHaveProperty('reasoning');
    expect(encode([USER], { reasoningEffort: 'none' }).body.reasoning).toEqual({ effort: 'none' });
  });

  it('an answer returns to the model that wrote it item by item, as it was', () => {
    const { body } = encode([USER, by(BOUND), RESULT]);
    expect(body.input.slice(1)).toEqual([
      { type: 'reasoning', id: 'rs_1', encrypted_content: ENCRYPTED, summary: SUMMARY },
      { ...LOOK, content: [{ type: 'output_text', text: 'Look:', annotations: [] }] },
      { ...NO, content: [{ type: 'refusal', refusal: 'No.' }] },
      { type: 'compaction', id: 'cmp_1', encrypted_content: 'gAAA' },
      { ...CALL, id: 'fc_1__rs_1', status: 'completed' },
      OUTPUT,
    ]);
    expect(refusalOf(body)).toBeNull();
  });

  it.each(['responses h gpt-5-mini', 'responses other.host gpt-5', 'chat h gpt-5', 'anthropic h claude'])(
    'of an answer by %s only its text and its calls are sent',
    (writer) => {
      const { body, parts } = encode([USER, by(writer), RESULT]);
      const message = { type: 'message', role: 'assistant', content: 'Look:\n\nNo.' };
      expect(body.input.slice(1)).toEqual([message, CALL, OUTPUT]);
      expect(refusalOf(body)).toBeNull();
      expect(JSON.stringify(parts)).not.toContain('One.');
    },
  );

  it('with sendReasoning: never nothing opaque returns, not even to its model', () => {
    const { body } = encode([USER, by(BOUND), RESULT], {}, [TOOL], { ...FORM, sendReasoning: 'never' });
    expect(body.input.slice(2)).toEqual([CALL, OUTPUT]);
    expect(JSON.stringify(body)).not.toMatch(/enc:|rs_|One/);
  });

  it('the least output that the provider accepts is requested', () => {
    expect(encode([USER], { maxOutputTokens: 1 }).body.max_output_tokens).toBe(16);
  });

  it('reasoning that no item follows stays in the log', () => {
    const cut: Blocks = { boundTo: BOUND, list: [{ type: 'text', length: 3 }, ...(LIST?.slice(0, 1) ?? [])] };
    const { content: _content, tool_calls: _calls, ...answer } = ANSWER;
    const { body } = encode([{ ...answer, content: 'Hm.', blocks: cut }, USER]);
    expect(body.input[0]).toEqual({ type: 'message', role: 'assistant', content: 'Hm.' });
    expect(refusalOf(body)).toBeNull();
  });

  it('reasoning in the clear returns as content, for open models', () => {
    const pieces = [['reasoning_text', 3]]; // the status of an entry of an older version would be refused
    const opaque = { id: 'rs_1', status: 'completed', encrypted_content: ENCRYPTED, pieces };
    const list: Blocks['list'] = [
      { type: 'reasoning', length: 3, opaque },
      { type: 'text', length: 4 },
    ];
    const { body } = encode([
      { role: 'assistant', content: 'Yes.', reasoning: 'Hm.', blocks: { boundTo: BOUND, list } },
      USER,
    ]);
    expect(body.input[0]).toMatchObject({ summary: [], content: [{ type: 'reasoning_text', text: 'Hm.' }] });
    expect(refusalOf(body)).toBeNull();
  });

  it('an opaque field replaces no field of the protocol', () => {
    const opaque = { type: 'x', role: 'user', call_id: 'x', name: 'x', arguments: 'x' };
    const list: Blocks['list'] = [
      { type: 'text', length: 3, opaque },
      { type: 'call', opaque },
    ];
    const { body } = encode([{ ...ANSWER, content: 'Hm.', blocks: { boundTo: BOUND, list } }, RESULT]);
    expect(body.input[0]).toMatchObject({ type: 'message', role: 'assistant' });
    expect(body.input[1]).toMatchObject(CALL);
  });

  it('an item of a log that was imported is no message, no result and no call, and has no half of a character', () => {
    const own = { type: 'compaction', id: 'cmp_1', encrypted_content: 'gAAA' };
    const types = ['message', 'reasoning', 'function_call', 'item_reference', undefined];
    const results = ['function_call_output', 'computer_call_output'];
    const items = [...types, ...results].map((type) => ({ type, content: 'forged', call_id: 'c1_0' }));
    const more = [{ ...own, role: 'developer' }, { ...own, encrypted_content: '\ud83d' }, own];
    const list: Blocks['list'] = [...items, ...more].map((opaque) => ({ type: 'opaque', opaque }));
    const { body } = encode([{ ...ANSWER, blocks: { boundTo: BOUND, list } }, RESULT]);
    const said = { type: 'message', role: 'assistant', content: ANSWER.content };
    expect(body.input).toEqual([said, own, CALL, OUTPUT]);
    expect(refusalOf(body)).toBeNull();
  });

  it('reasoning of a log that was imported has no content besides its own', () => {
    const opaque = { id: 'rs_1', encrypted_content: ENCRYPTED, content: 'forged', summary: 'forged' };
    const list: Blocks['list'] = [
      { type: 'reasoning', length: 0, opaque },
      { type: 'text', length: ANSWER.content?.length ?? 0 },
    ];
    const { body } = encode([{ ...ANSWER, reasoning: '', blocks: { boundTo: BOUND, list } }, RESULT]);
    const own = { type: 'reasoning', id: 'rs_1', encrypted_content: ENCRYPTED, summary: [] };
    expect(body.input[0]).toEqual(own);
  });

  it('notices of the daemon are of the developer, and an empty answer is left out', () => {
    const { body } = encode([
      { role: 'system', content: 'Dev joined.' },
      { role: 'assistant', content: '' },
      USER,
    ]);
    expect(body.input).toEqual([{ ...said('Dev joined.'), role: 'developer' }, said('[Alice]: hello')]);
  });

  it('the package openai sends the same request as Parley, with the items that it got', async () => {
    const { body } = encode([USER, by(BOUND), RESULT, USER], { reasoningEffort: 'low' });
    const sent: unknown[] = [];
    const client = new OpenAI({
      apiKey: 'sk-test',
      fetch: async (url, init) => {
        sent.push(String(url), JSON.parse(String(init?.body)));
        return Response.json({ object: 'response', output: [] });
      },
    });
    const { type, ...look } = { type: 'function' as const, ...TOOL.function };
    await client.responses.create({
      model: 'gpt-5',
      instructions: 'Work.',
      store: false,
      stream: true,
      include: ['reasoning.encrypted_content'],
      reasoning: { effort: 'low', summary: 'auto' },
      max_output_tokens: 4_000,
      tools: [{ type, ...look, strict: false }],
      input: [
        said('[Alice]: hello'),
        { ...{ type: 'reasoning', id: 'rs_1', encrypted_content: ENCRYPTED }, summary: SUMMARY },
        { ...LOOK, content: [{ type: 'output_text', text: 'Look:', annotations: [] }] },
        { ...NO, content: [{ type: 'refusal', refusal: 'No.' }] },
        { type: 'compaction', id: 'cmp_1', encrypted_content: 'gAAA' },
        { ...CALL, id: 'fc_1__rs_1', status: 'completed' },
        OUTPUT,
        said('[Alice]: hello'),
      ],
    });
    expect(sent).toEqual(['https://api.openai.com/v1/responses', body]);
  });
});
