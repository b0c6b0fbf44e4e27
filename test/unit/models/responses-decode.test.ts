import fc from 'fast-check';
import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { ResponsesDecoder } from '../../../src/models/responses/decode.ts';
import {
  type Answer,
  eventsOf,
  type Output,
  type ResponsesBody,
  refusalOf,
  responseOf,
} from '../../support/responses-provider.ts';
import { bytesOf, read as readWith } from './reading.ts';

const BODY: ResponsesBody = {
  model: 'gpt-5',
  stream: true,
  store: false,
  include: ['reasoning.encrypted_content'],
  max_output_tokens: 1_000,
  input: [{ type: 'message', role: 'user', content: 'Hello.' }],
};

const read = (bytes: Uint8Array, cuts: readonly number[] = []) =>
  readWith(bytes, cuts, false, new ResponsesDecoder());

const readAnswer = (answer: Answer) => read(bytesOf(...eventsOf(BODY, answer))).result;
const readWhole = (answer: Answer) => {
  const result = readAnswer(answer);
  if (result.kind !== 'whole') throw new Error(`expected an answer, got ${JSON.stringify(result)}`);
  return result.answer;
};

const words = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 });
const output: fc.Arbitrary<Output> = fc.oneof(
  fc.record({ reasoning: fc.array(words, { maxLength: 3 }) }),
  fc.record({ reasoning: fc.array(words, { maxLength: 1 }), content: fc.array(words, { maxLength: 2 }) }),
  fc.record({ text: words }),
  fc.record({ text: words, phase: fc.constantFrom('commentary' as const, 'final_answer' as const) }),
  fc.record({ refusal: words }),
  fc.record({ call: fc.constant('look'), arguments: fc.json({ maxDepth: 1 }) }),
  fc.constant({ compaction: true as const }),
);

describe('an answer of the Responses API', () => {
  it('the same answer is read from any pieces of a stream and from one document, and its deltas are its texts', () => {
    fc.assert(
      fc.property(
        fc.array(output, { minLength: 1, maxLength: 6 }),
        fc.array(fc.nat(20_000), { maxLength: 30 }),
        (items, cuts) => {
          const streamed = bytesOf(...eventsOf(BODY, { output: items }));
          const { deltas, result } = read(
            streamed,
            cuts.map((cut) => cut % streamed.length),
          );
          expect(result).toEqual(read(bytesOf(JSON.stringify(responseOf(BODY, { output: items })))).result);
          if (result.kind !== 'whole') return;
          const of = (type: string) =>
            deltas.flatMap((one) => (one.type === type ? [one.delta] : [])).join('');
          expect([of('text'), of('reasoning')]).toEqual([
            result.answer.content ?? '',
            result.answer.reasoning ?? '',
          ]);
          const lengths = (type: string) =>
            result.answer.blocks?.reduce(
              (sum, one) => sum + ('length' in one && one.type === type ? one.length : 0),
              0,
            );
          if (!result.answer.blocks) return;
          expect([lengths('text'), lengths('reasoning')]).toEqual([
            of('text').length,
            of('reasoning').length,
          ]);
        },
      ),
    );
  });

  it('reasoning, messages and calls are kept in their order, with what the model wants back', () => {
    const answer = readWhole({
      output: [
        { reasoning: ['One.', 'Two.'] },
        { text: 'Look:', phase: 'commentary' },
        { call: 'look', arguments: '{"a":1}' },
        { reasoning: [] },
        { text: 'There.', phase: 'final_answer' },
      ],
    });
    expect(answer).toMatchObject({
      content: 'Look:\n\nThere.',
      reasoning: 'One.\n\nTwo.',
      toolCalls: [{ id: 'call_0_2', name: 'look', arguments: '{"a":1}' }],
      finishReason: 'tool_calls',
      model: 'gpt-5',
      usage: { inputTokens: 100, cachedInputTokens: 60, outputTokens: 20, reasoningTokens: 12 },
    });
    const pieces = (...given: [string, number][]) => ({ pieces: given });
    const summary = pieces(['summary_text', 4], ['', 2], ['summary_text', 4]);
    const done = { status: 'completed' };
    const last = {
      id: 'msg_0_4__rs_0_3',
      ...done,
      phase: 'final_answer',
      ...pieces(['', 2], ['output_text', 6]),
    };
    expect(answer.blocks).toEqual([
      {
        type: 'reasoning',
        length: 10,
        opaque: { id: 'rs_0_0', encrypted_content: 'enc:gpt-5:rs_0_0', ...summary },
      },
      { type: 'text', length: 5, opaque: { id: 'msg_0_1__rs_0_0', ...done, phase: 'commentary' } },
      { type: 'call', opaque: { id: 'fc_0_2__rs_0_0', ...done } },
      { type: 'reasoning', length: 0, opaque: { id: 'rs_0_3', encrypted_content: 'enc:gpt-5:rs_0_3' } },
      { type: 'text', length: 8, opaque: last },
    ]);
  });

  it('an answer in which nothing is opaque is kept without blocks', () => {
    const answer = readWhole({ output: [{ text: 'Hello.' }, { call: 'look', arguments: '{}' }] });
    expect(answer.blocks).toBeUndefined();
  });

  it('reasoning that did not arrive encrypted is not returned, and ids that need it neither', () => {
    const events = eventsOf(BODY, {
      output: [{ reasoning: ['Hm.'] }, { text: 'Yes.', phase: 'final_answer' }],
    });
    const { result } = read(bytesOf(...events.map((one) => one.replaceAll(/"enc:[^"]*"/g, 'null'))));
    expect(result).toMatchObject({
      answer: {
        blocks: [
          { type: 'reasoning', length: 3 },
          { type: 'text', opaque: { phase: 'final_answer' } },
        ],
      },
    });
    expect(JSON.stringify(result)).not.toContain('rs_0_0');
  });

  it.each<[Answer, object]>([
    [{ output: [{ text: 'Half' }], incomplete: 'max_output_tokens' }, { finishReason: 'max_output_tokens' }],
    [
      { output: [], incomplete: 'content_filter' },
      { content: null, finishReason: 'content_filter' },
    ],
    [{ output: [{ refusal: 'I will not.' }] }, { content: 'I will not.', finishReason: 'refusal' }],
    [{ output: [{ text: 'Yes.' }] }, { finishReason: 'stop' }],
  ])('%j ends for its reason', (given, expected) => {
    expect(readWhole(given)).toMatchObject(expected);
  });

  it.each<[Answer, string, boolean]>([
    [{ output: [{ text: 'a' }], failed: 'server_error' }, 'PROVIDER_ERROR', true],
    [{ failed: 'rate_limit_exceeded' }, 'RATE_LIMITED', true],
    [{ failed: 'invalid_prompt' }, 'BAD_REQUEST', false],
    [{ output: [{ text: 'a' }], error: 'server_error' }, 'PROVIDER_ERROR', true],
    [{ error: 'context_length_exceeded' }, 'CONTEXT_TOO_LONG', false],
    [{ error: 'insufficient_quota' }, 'QUOTA_EXHAUSTED', false],
    [{ output: [] }, 'EMPTY_ANSWER', true],
  ])('%j is the fault %s', (given, code, retryable) => {
    expect(readAnswer(given)).toMatchObject({ kind: 'broken', fault: { code, retryable } });
  });

  it('events of any form are read without an exception, and what is kept of them is an item', () => {
    const odd = fc.oneof(fc.jsonValue(), fc.constant({ toString: 1, valueOf: 1 }), fc.nat(2), words);
    const types = ['message', 'reasoning', 'function_call', 'other', ''];
    const item = fc.dictionary(fc.constantFrom('type', 'id', 'content', 'summary', 'name', 'arguments'), odd);
    const named = fc.tuple(item, fc.constantFrom(...types)).map(([one, type]) => ({ ...one, type }));
    const event = fc.record({
      type: fc.constantFrom(
        ...['output_item.added', 'output_item.done', 'output_text.delta', 'refusal.delta', 'other'],
        ...['reasoning_text.delta', 'function_call_arguments.delta', 'in_progress'],
      ),
      output_index: odd,
      content_index: odd,
      delta: odd,
      item: fc.oneof(odd, item, named),
      response: odd,
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 8 }), (given) => {
        const end = { type: 'response.completed', response: { status: 'completed', output: [], usage: {} } };
        const events = given.map((one) => ({ ...one, type: `response.${one.type}` }));
        const text = [...events, end].map((one) => `data: ${JSON.stringify(one)}\n\n`);
        const { result } = read(bytesOf(...text));
        if (result.kind !== 'whole') return;
        for (const block of result.answer.blocks ?? [])
          if (block.type === 'opaque') expect(block.opaque.type).toMatch(/./);
      }),
    );
  });

  it('items of different types are apart even if a server gives all of them one index, or a type that no object may have', () => {
    const done = (type: string, more: object) => ({
      ...{ type: 'response.output_item.done', output_index: 0 },
      item: { type, ...more },
    });
    const content = [{ type: 'output_text', text: 'Here.' }];
    const events = [
      done('reasoning', { summary: [{ type: 'summary_text', text: 'Hm.' }] }),
      { type: 'response.output_text.delta', output_index: 0, delta: 'Here.' },
      done('message', { content }),
      done('function_call', { call_id: 'x', name: 'look', arguments: '{}' }),
      ...['__proto__', 'constructor'].flatMap((type) => [done(type, {}), { type, delta: 'x' }]),
      { type: 'response.completed', response: {} },
    ];
    const { result } = read(bytesOf(...events.map((one) => `data: ${JSON.stringify(one)}\n\n`)));
    expect(result).toMatchObject({
      kind: 'whole',
      answer: {
        ...{ content: 'Here.', reasoning: 'Hm.' },
        toolCalls: [{ id: 'x', name: 'look', arguments: '{}' }],
      },
    });
  });

  it('a stream without its end is broken, and JSON of another protocol is none', () => {
    const events = eventsOf(BODY, { output: [{ text: 'Half of it' }] });
    expect(read(bytesOf(...events.slice(0, -1))).result).toMatchObject({ fault: { code: 'STREAM_BROKEN' } });
    const other = [
      { object: 'chat.completion', choices: [] },
      { object: 'response', status: 'queued', output: [] },
    ];
    for (const document of other)
      expect(read(bytesOf(JSON.stringify(document))).result).toMatchObject({
        fault: { code: 'INVALID_RESPONSE' },
      });
  });

  it('the parser of the package openai reads the events of the stand-in as the answer that it describes', async () => {
    const given: Answer = {
      output: [{ reasoning: ['One.'] }, { text: 'Look: ' }, { call: 'look', arguments: '{"a":1}' }],
    };
    const client = new OpenAI({
      apiKey: 'sk-test',
      fetch: async (_url, init) => {
        expect(refusalOf(JSON.parse(String(init?.body)))).toBeNull();
        const headers = { 'content-type': 'text/event-stream' };
        return new Response(eventsOf(BODY, given).join(''), { headers });
      },
    });
    const { input, ...fields } = BODY;
    const response = await client.responses
      .stream({ ...fields, include: [...fields.include], input, stream: true })
      .finalResponse();
    expect(response.output).toMatchObject(responseOf(BODY, given).output as object[]);
    expect(response.output_text).toBe('Look: ');
  });
});
