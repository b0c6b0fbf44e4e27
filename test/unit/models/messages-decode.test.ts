import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MessagesDecoder } from '../../../src/models/anthropic/decode.ts';
import { messageOf, type SaidBlock, streamOf } from '../../support/anthropic-provider.ts';
import { signatureOf } from '../../support/messages-rules.ts';
import { bytesOf, read as readWith } from './reading.ts';

const read = (bytes: Uint8Array, cuts: readonly number[] = [], isCut = false) =>
  readWith(bytes, cuts, isCut, new MessagesDecoder());

function answer(blocks: readonly SaidBlock[], stopReason?: string) {
  const { result } = read(bytesOf(...streamOf(messageOf('claude', blocks, COUNTED, stopReason))));
  return result;
}

const COUNTED = { input_tokens: 7, cache_read_input_tokens: 2_000, cache_creation_input_tokens: 300 };
const SAID: readonly SaidBlock[] = [
  { type: 'thinking', thinking: 'Hm… 世界 👋🏽' },
  { type: 'redacted_thinking', data: 'AAEC' },
  { type: 'text', text: 'Ich lese zwei Dateien. 👋🏽' },
  { type: 'tool_use', name: 'read', input: { path: 'é', lines: [1, 2] } },
  { type: 'tool_use', name: 'list', input: {} },
];
const RICH = bytesOf(...streamOf(messageOf('claude', SAID, COUNTED)));
const WHOLE = {
  content: 'Ich lese zwei Dateien. 👋🏽',
  reasoning: 'Hm… 世界 👋🏽',
  toolCalls: [
    { id: expect.stringMatching(/^toolu_/), name: 'read', arguments: '{"path":"é","lines":[1,2]}' },
    { id: expect.stringMatching(/^toolu_/), name: 'list', arguments: '{}' },
  ],
  usage: {
    ...{ inputTokens: 2_307, cachedInputTokens: 2_000, cacheWriteTokens: 300 },
    ...{ outputTokens: expect.any(Number), reasoningTokens: expect.any(Number) },
  },
  model: 'claude',
  finishReason: 'tool_use',
  blocks: [
    { type: 'reasoning', length: 11, opaque: { signature: signatureOf('Hm… 世界 👋🏽') } },
    { type: 'opaque', opaque: { type: 'redacted_thinking', data: 'AAEC' } },
    { type: 'text', length: 27 },
    { type: 'call' },
    { type: 'call' },
  ],
};

describe('reading an answer of the Messages API', () => {
  it('an answer is the same wherever its stream is split', () => {
    const whole = read(RICH);
    expect(whole.result).toEqual({ kind: 'whole', answer: WHOLE });
    for (let cut = 0; cut <= RICH.length; cut += 1) expect(read(RICH, [cut])).toEqual(whole);
    const places = fc.array(fc.nat(RICH.length), { maxLength: 60 });
    fc.assert(fc.property(places, (cuts) => void expect(read(RICH, cuts)).toEqual(whole)));
  });

  it('a whole document gives the same answer as a stream', () => {
    const document = bytesOf(JSON.stringify(messageOf('claude', SAID, COUNTED)));
    expect(read(document).result).toEqual({ kind: 'whole', answer: WHOLE });
  });

  it('the deltas of an answer form the answer when put together', () => {
    const { deltas } = read(RICH);
    const of = (type: string, position?: number) =>
      deltas
        .filter((delta) => delta.type === type && (!('position' in delta) || delta.position === position))
        .map(({ delta }) => delta)
        .join('');
    expect([of('text'), of('reasoning')]).toEqual([WHOLE.content, WHOLE.reasoning]);
    expect([of('tool_call_delta', 0), of('tool_call_delta', 1)]).toEqual([
      '{"path":"é","lines":[1,2]}',
      '{}',
    ]);
    expect(deltas.flatMap((delta) => ('name' in delta ? [delta.name] : []))).toEqual(['read', 'list']);
  });

  it('an answer in the usual order with nothing opaque has no blocks', () => {
    expect(answer(SAID.slice(2))).toMatchObject({ kind: 'whole', answer: { finishReason: 'tool_use' } });
    expect(answer(SAID.slice(2))).not.toHaveProperty('answer.blocks');
  });

  it('a text after a call begins a paragraph, and the order is kept', () => {
    const said = [SAID[2], SAID[4], { type: 'text', text: 'Done.' }] as readonly SaidBlock[];
    expect(answer(said)).toMatchObject({
      answer: {
        content: 'Ich lese zwei Dateien. 👋🏽\n\nDone.',
        blocks: [
          { type: 'text', length: 27 },
          { type: 'call' },
          { type: 'text', length: 2 },
          { type: 'text', length: 5 },
        ],
      },
    });
  });

  it('a block of an unknown type is kept whole, with its streamed input', () => {
    const unknown = { type: 'server_tool_use', id: 'srv_1', name: 'web_search', input: {} };
    const events = [
      { type: 'message_start', message: { model: 'claude', usage: { input_tokens: 3, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: unknown },
      {
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'input_json_delta', partial_json: '{"query":' },
      },
      { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: '"x"}' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Found.' } },
      { type: 'content_block_delta', index: 1, delta: { type: 'an_unknown_delta', text: '?' } },
      { type: 'an_unknown_event' },
      { type: 'message_delta', delta: { stop_reason: 'pause_turn' }, usage: { output_tokens: 4 } },
      { type: 'message_stop' },
    ];
    const bytes = bytesOf(...events.map((event) => `data: ${JSON.stringify(event)}\n\n`));
    expect(read(bytes).result).toMatchObject({
      answer: {
        content: 'Found.',
        finishReason: 'pause_turn',
        usage: { inputTokens: 3, outputTokens: 4 },
        blocks: [
          { type: 'opaque', opaque: { ...unknown, input: { query: 'x' } } },
          { type: 'text', length: 6 },
        ],
      },
    });
  });

  it.each(['end_turn', 'stop_sequence', 'max_tokens', 'refusal', 'model_context_window_exceeded'])(
    'the stop reason %s is reported with the text',
    (stopReason) => {
      expect(answer([{ type: 'text', text: 'So' }], stopReason)).toMatchObject({
        answer: { content: 'So', finishReason: stopReason },
      });
    },
  );

  it('a call that was cut before its arguments has none: it is not taken for a call without arguments', () => {
    const list = { type: 'tool_use', name: 'list', input: {} } as const;
    const calls = (blocks: readonly SaidBlock[], stopReason?: string) => {
      const message = messageOf('claude', blocks, COUNTED, stopReason);
      return [bytesOf(...streamOf(message)), bytesOf(JSON.stringify(message))].map((bytes) => {
        const { result } = read(bytes);
        return result.kind === 'whole' && result.answer.toolCalls.map((call) => call.arguments);
      });
    };
    expect(calls([list, list], 'max_tokens')).toEqual([
      ['{}', ''],
      ['{}', ''],
    ]);
    expect(calls([list, { type: 'text', text: 'So' }], 'max_tokens')).toEqual([['{}'], ['{}']]);
    expect(calls([list, list])).toEqual([
      ['{}', '{}'],
      ['{}', '{}'],
    ]);
  });

  it('a refusal without a word is reported as the work of a filter, with what it cost', () => {
    expect(answer([], 'refusal')).toMatchObject({
      answer: { content: null, finishReason: 'content_filter', usage: { inputTokens: 2_307 } },
    });
  });

  it('an empty answer is a fault', () => {
    expect(answer([])).toMatchObject({ kind: 'broken', fault: { code: 'EMPTY_ANSWER', retryable: true } });
  });

  it('an answer whose stream ends before its stop reason is broken, and one that ends after it is interrupted', () => {
    const pieces = streamOf(messageOf('claude', [{ type: 'text', text: 'So' }], COUNTED));
    const until = (count: number) => read(bytesOf(...pieces.slice(0, count)), [], true).result;
    expect(until(-2)).toMatchObject({ kind: 'broken', fault: { code: 'STREAM_BROKEN' } });
    expect(until(-1)).toMatchObject({
      kind: 'whole',
      answer: { content: 'So', finishReason: 'interrupted' },
    });
  });

  it.each([
    ['overloaded_error', 'PROVIDER_ERROR', true],
    ['rate_limit_error', 'RATE_LIMITED', true],
    ['api_error', 'PROVIDER_ERROR', true],
    ['invalid_request_error', 'BAD_REQUEST', false],
    ['authentication_error', 'UNAUTHORIZED', false],
  ])('an event with the error %s is the fault %s', (type, code, retryable) => {
    const error = { type: 'error', error: { type, message: 'Sorry' } };
    const bytes = bytesOf(`event: error\ndata: ${JSON.stringify(error)}\n\n`);
    expect(read(bytes).result).toMatchObject({ kind: 'broken', fault: { code, retryable } });
    expect(read(bytesOf(JSON.stringify(error))).result).toMatchObject({ fault: { code, retryable } });
  });

  it('a document of another protocol is refused with what it is', () => {
    const { result } = read(bytesOf('{"choices":[]}'));
    expect(result).toMatchObject({ kind: 'broken', fault: { code: 'INVALID_RESPONSE' } });
  });
});
