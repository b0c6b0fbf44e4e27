import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ModelDelta } from '../../../src/agents/model-port.ts';
import { ChatDecoder } from '../../../src/models/chat/decode.ts';
import { AnswerReader } from '../../../src/models/reader.ts';
import { expectEqual } from '../../support/expect-equal.ts';
import { chunk, event } from '../../support/fake-provider.ts';
import { itLong } from '../../support/long.ts';
import { OPAQUE_ANSWERS } from '../../support/provider-rules.ts';
import { answerOf, bytesOf, call, calls, DONE, faultOf, read } from './reading.ts';

const RICH = bytesOf(
  ': keep-alive\n\n',
  chunk({ role: 'assistant', content: '' }),
  chunk({ reasoning_content: 'Hm… ' }),
  chunk({ content: 'Grüße, 世界 👋🏽\n' }),
  'event: ping\nid: 7\ndata: {}\n\n',
  calls(call({ index: 0, id: 'call_0' }, 'read', '')),
  calls(call({ index: 0 }, undefined, '{"path":"é')),
  calls(call({ index: 0 }, undefined, '"}')),
  chunk({ content: 'Ende.' }),
  chunk({}, 'tool_calls'),
  event({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 4 } }),
  DONE,
);

describe('reading a streamed answer', () => {
  it('a chunk of several lines is delivered as soon as it is complete', () => {
    const reader = new AnswerReader(new ChatDecoder());
    const lines = chunk({ content: 'Hi.' }).replaceAll(',', ',\ndata: ');
    expect(reader.push(bytesOf(lines.slice(0, -1)))).toEqual([]);
    expect(reader.push(bytesOf('\n'))).toEqual([{ type: 'text', delta: 'Hi.' }]);
  });

  it('an answer is the same wherever its stream is split', () => {
    const whole = read(RICH);
    expect(whole.result).toMatchObject({
      kind: 'whole',
      answer: {
        content: 'Grüße, 世界 👋🏽\nEnde.',
        reasoning: 'Hm… ',
        toolCalls: [{ id: 'call_0', name: 'read', arguments: '{"path":"é"}' }],
        usage: { inputTokens: 5, outputTokens: 4 },
      },
    });
    for (let cut = 0; cut <= RICH.length; cut += 1) expectEqual(read(RICH, [cut]), whole);
    const places = fc.array(fc.nat(RICH.length), { maxLength: 60 });
    fc.assert(fc.property(places, (cuts) => expectEqual(read(RICH, cuts), whole)));
  });

  it.each(['\n', '\r\n', '\r'])(
    'an answer is the same with line ends %j, wherever it is split',
    (lineEnd) => {
      const text = new TextDecoder().decode(RICH).replaceAll('\n', lineEnd);
      const bytes = bytesOf(text);
      const whole = read(RICH);
      for (let cut = 0; cut <= bytes.length; cut += 1) expectEqual(read(bytes, [cut]), whole);
    },
  );

  it('the deltas of an answer form the answer when put together', () => {
    const texts = fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 12 });
    fc.assert(
      fc.property(texts, texts, texts, (words, thoughts, pieces) => {
        const { deltas, result } = read(
          bytesOf(
            ...thoughts.map((reasoning) => chunk({ reasoning })),
            ...words.map((content) => chunk({ content })),
            calls(call({ index: 3, id: 'a' }, 'tool')),
            ...pieces.map((piece) => calls(call({ index: 3 }, undefined, `x${piece}`))),
            chunk({}, 'stop'),
          ),
        );
        const joined = (type: ModelDelta['type']) =>
          deltas.flatMap((delta) => (delta.type === type ? [delta.delta] : [])).join('');
        expect(result).toMatchObject({
          kind: 'whole',
          answer: {
            content: words.join('') || null,
            toolCalls: [{ id: 'a', name: 'tool', arguments: pieces.map((piece) => `x${piece}`).join('') }],
          },
        });
        expect(joined('text')).toBe(words.join(''));
        expect(joined('reasoning')).toBe(thoughts.join(''));
        expect(joined('tool_call_delta')).toBe(pieces.map((piece) => `x${piece}`).join(''));
      }),
    );
  });

  it('reading an answer never throws, whatever bytes arrive', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => void read(bytes)));
    fc.assert(fc.property(fc.json(), (json) => void read(bytesOf(`data: ${json}\n\n`))));
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        read(bytesOf(event({ choices: [{ delta: value }] }), event({ choices: value, usage: value })));
        read(bytesOf(event({ choices: [{ delta: { tool_calls: value, content: value } }] })));
      }),
    );
  });

  it('an answer is complete without [DONE], and with [DONE] but no finish reason', () => {
    expect(answerOf(chunk({ content: 'Hi.' }), chunk({}, 'stop')).content).toBe('Hi.');
    expect(answerOf(chunk({ content: 'Hi.' }), DONE)).toEqual({
      content: 'Hi.',
      toolCalls: [],
      model: 'fake-model',
    });
  });

  it('an answer may end without its last empty line', () => {
    expect(answerOf(chunk({ content: 'Hi.' }), chunk({}, 'stop').trimEnd()).finishReason).toBe('stop');
  });

  it('a stream that ends without a finish reason is broken, and the partial answer is kept', () => {
    const { result, partial } = read(bytesOf(chunk({ reasoning: 'Hm.' }), chunk({ content: 'Half' })));
    expect(result).toMatchObject({ kind: 'broken', fault: { code: 'STREAM_BROKEN' } });
    expect(partial).toEqual({ content: 'Half', reasoning: 'Hm.' });
  });

  it('a stream with no event, or only [DONE], is broken', () => {
    expect(faultOf('')).toMatchObject({ code: 'STREAM_BROKEN', retryable: true });
    expect(faultOf(DONE).message).toContain('before it began');
  });

  it.each([
    ['stop', 'EMPTY_ANSWER'],
    ['tool_calls', 'EMPTY_ANSWER'],
    ['MALFORMED_FUNCTION_CALL', 'INVALID_RESPONSE'],
    ['function_call_filter: MALFORMED_FUNCTION_CALL', 'INVALID_RESPONSE'],
    ['insufficient_system_resource', 'PROVIDER_ERROR'],
    ['network_error', 'PROVIDER_ERROR'],
  ])(
    'an answer with nothing in it that ends with %s is broken, and another attempt may help',
    (reason, code) => {
      const message = { role: 'assistant', content: null };
      const document = JSON.stringify({ choices: [{ index: 0, message, finish_reason: reason }] });
      const usage = event({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 0 } });
      const stream = [chunk({ role: 'assistant', content: '' }), chunk({}, reason), usage, DONE];
      expect(faultOf(document)).toMatchObject({ code, retryable: true });
      expect(faultOf(...stream)).toMatchObject({ code, retryable: true });
    },
  );

  it('an answer that the provider took back is broken, whatever came before', () => {
    const fault = faultOf(chunk({ content: 'Half' }), chunk({}, 'insufficient_system_resource'), DONE);
    expect(fault).toMatchObject({ code: 'PROVIDER_ERROR' });
    expect(fault.message).toContain('(insufficient_system_resource)');
  });

  it('an answer that was cut before any text is the failure of its turn, but one without an end is broken', () => {
    expect(answerOf(chunk({}, 'length'), DONE)).toMatchObject({ content: null, finishReason: 'length' });
    expect(answerOf(chunk({ reasoning: 'Hm.' }, 'stop'), DONE)).toMatchObject({
      content: null,
      reasoning: 'Hm.',
    });
    const { result } = read(bytesOf(chunk({}, 'stop')), [], true);
    expect(result).toMatchObject({ kind: 'broken', fault: { code: 'STREAM_BROKEN', retryable: true } });
  });

  it('a chunk that is not a JSON object breaks the stream', () => {
    expect(faultOf(chunk({ content: 'Hi' }), 'data: {"choices":[\n\n')).toMatchObject({
      code: 'STREAM_BROKEN',
    });
    expect(faultOf('data: 12\n\n').message).toContain('not a JSON object: 12');
  });

  it('an answer whose body breaks off or reports an error after the finish reason is kept, and marked as cut (ANSWER-READER-3)', () => {
    const said = [chunk({ content: 'Hi.' }), chunk({}, 'stop')];
    const cut = { content: 'Hi.', finishReason: 'interrupted' };
    expect(answerOf(...said, 'data: {"us')).toMatchObject(cut);
    expect(answerOf(...said, event({ error: { message: 'Overloaded' } }))).toMatchObject(cut);
    const readCut = (...pieces: string[]) => read(bytesOf(...pieces), [], true).result;
    expect(readCut(...said)).toMatchObject({ kind: 'whole', answer: cut });
    expect(readCut(...said, DONE)).toMatchObject({ kind: 'whole', answer: { finishReason: 'stop' } });
    const limited = [chunk({ content: 'Hi.' }), chunk({}, 'max_tokens')];
    expect(readCut(...limited)).toMatchObject({ kind: 'whole', answer: { finishReason: 'max_tokens' } });
  });

  it('an error object in the stream ends the answer', () => {
    const error = { message: 'Overloaded', type: 'overloaded_error' };
    expect(faultOf(chunk({ content: 'Hi' }), event({ error }))).toMatchObject({ code: 'PROVIDER_ERROR' });
    expect(faultOf(`event: error\n${event(error)}`).message).toContain('Overloaded');
    expect(faultOf(event({ object: 'error', message: 'prompt is too long', code: 400 })).code).toBe(
      'CONTEXT_TOO_LONG',
    );
    expect(faultOf(event({ error: 'out of memory' })).message).toContain('out of memory');
    const choice = { finish_reason: 'error', delta: {}, error: { code: 502, message: 'upstream' } };
    expect(faultOf(event({ choices: [choice] }))).toMatchObject({ code: 'PROVIDER_ERROR', retryable: true });
  });

  it('an answer consists of the first choice, and its content may have parts or be a refusal', () => {
    const other = event({ choices: [{ index: 1, delta: { content: 'no' } }] });
    const parts = [
      { type: 'thinking', thinking: [{ text: 'Hm.' }] },
      { type: 'text', text: 'Yes. ' },
    ];
    const answer = answerOf(other, chunk({ content: parts }), chunk({ refusal: 'I will not.' }, 'stop'));
    expect(answer).toMatchObject({ content: 'Yes. I will not.', reasoning: 'Hm.' });
  });

  it('a whole message that repeats the deltas is not added to the answer', () => {
    const last = event({ choices: [{ message: { content: 'Hi.' }, finish_reason: 'stop' }] });
    expect(answerOf(chunk({ content: 'Hi.' }), last).content).toBe('Hi.');
    expect(answerOf(last).content).toBe('Hi.');
  });
});

describe('an answer that is not streamed', () => {
  const document = {
    model: 'm',
    choices: [{ message: { content: 'Hi.', tool_calls: [call({ id: 'i' }, 'a', '{}')] } }],
  };

  it('an answer that is not streamed gives one delta of each kind', () => {
    const { deltas, result } = read(bytesOf(' \n', JSON.stringify(document, null, 2)), [1, 3, 17]);
    expect(deltas).toEqual([
      { type: 'text', delta: 'Hi.' },
      { type: 'tool_call_delta', position: 0, name: 'a', delta: '{}' },
    ]);
    expect(result).toMatchObject({ kind: 'whole', answer: { content: 'Hi.', model: 'm' } });
  });

  it.each([
    [
      'JSON that is no completion',
      '{"hello":"world"}',
      /no chat completion: \{"hello":"world"\}\. Check baseURL/,
    ],
    ['JSON without choices', '{"choices":[]}', /no chat completion/],
    ['JSON that is cut', '{"choices":[{"mess', /no answer of this protocol but/],
    ['an HTML page', '<html>nginx</html>', /an HTML page. Check baseURL/],
  ])('an answer is refused if it is %s', (_, body, message) => {
    const fault = faultOf(body);
    expect(fault).toMatchObject({ code: 'INVALID_RESPONSE', retryable: false });
    expect(fault.message).toMatch(message);
  });

  it('an answer with an error object is that error', () => {
    expect(faultOf('[{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}]')).toMatchObject({
      code: 'RATE_LIMITED',
      retryable: true,
    });
  });
});

describe('deviations of servers from the protocol', () => {
  it.each([
    ['<think>Hm. So.</think>\n\nYes.', 'Hm. So.', 'Yes.'],
    ['\n<thinking>a </think> b</thinking>Yes.', 'a </think> b', 'Yes.'],
    ['<think></think>Yes.', undefined, 'Yes.'],
    ['<thought>Hm.</thought>Yes.', 'Hm.', 'Yes.'],
    ['[THINK]Hm.[/THINK]Yes.', 'Hm.', 'Yes.'],
    ['<seed:think>Hm.</seed:think>Yes.', 'Hm.', 'Yes.'],
    ['<think>cut off', 'cut off', null],
    ['<think>cut off</thi', 'cut off</thi', null],
    ['Use <think>x</think>.', undefined, 'Use <think>x</think>.'],
    ['<think>a</think>\n\n<think>b</think>Yes.', 'a\n\nb', 'Yes.'],
    ['<think></think><thinking>b</thinking> <think>c', 'b\n\nc', null],
    ['<think>a</think><think></think>Yes.', 'a', 'Yes.'],
    ['<think>a</think> <thin ice>', 'a', '<thin ice>'],
    ['<think>a</think> <thi', 'a', '<thi'],
    ['<think>a</think> \n', 'a', null],
    ['<thin ice>', undefined, '<thin ice>'],
    ['<think>a</think>b <think>c</think>', 'a', 'b <think>c</think>'],
    [' <thi', undefined, ' <thi'],
  ])(
    'the content %j has the reasoning %j and the text %j, wherever it is split',
    (content, reasoning, text) => {
      for (let cut = 0; cut <= content.length; cut += 1) {
        const pieces = [chunk({ content: content.slice(0, cut) }), chunk({ content: content.slice(cut) })];
        const answer = answerOf(...pieces, chunk({}, 'stop'));
        expect([answer.reasoning, answer.content]).toEqual([reasoning, text]);
        const { deltas } = read(bytesOf(...pieces, chunk({}, 'stop')));
        const said = deltas.flatMap((delta) => (delta.type === 'text' ? [delta.delta] : [])).join('');
        expect(said).toBe(text ?? '');
      }
      const byLetter = [...content].map((letter) => chunk({ content: letter }));
      expect(answerOf(...byLetter, chunk({}, 'stop'))).toMatchObject({ content: text });
      const document = { choices: [{ index: 0, message: { content }, finish_reason: 'stop' }] };
      expect(answerOf(JSON.stringify(document))).toMatchObject({ content: text });
    },
  );

  it('any number of blocks in one piece is read', () => {
    const content = `${'<think>a</think>'.repeat(50_000)}Yes.`;
    const answer = answerOf(chunk({ content }, 'stop'));
    expect(answer.content).toBe('Yes.');
    expect(answer.reasoning?.length).toBe(50_000 * 3 - 2);
  });

  it('a `function_call`, streamed or whole, is a tool call', () => {
    const expected = [{ id: 'call_0', name: 'look', arguments: '{"at":"x"}' }];
    const streamed = answerOf(
      chunk({ function_call: { name: 'look', arguments: '' } }),
      chunk({ function_call: { arguments: '{"at":' } }),
      chunk({ function_call: { arguments: '"x"}' } }),
      chunk({}, 'function_call'),
    );
    expect(streamed.toolCalls).toEqual(expected);
    const message = { content: null, function_call: { name: 'look', arguments: '{"at":"x"}' } };
    const document = { choices: [{ index: 0, message, finish_reason: 'function_call' }] };
    expect(answerOf(JSON.stringify(document)).toolCalls).toEqual(expected);
  });

  it('a usage of zero tokens is ignored', () => {
    const usage = (prompt: number, completion: number) =>
      event({
        choices: [],
        usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: 0 },
      });
    expect(answerOf(chunk({ content: 'Hi' }, 'stop'), usage(0, 0)).usage).toBeUndefined();
    expect(answerOf(chunk({ content: 'Hi' }, 'stop'), usage(0, 3)).usage).toMatchObject({ outputTokens: 3 });
  });

  it.each([
    ['Gemini and xAI, which leave out the reasoning', [100, 10, 910], 810],
    ['OpenAI', [100, 10, 110], 10],
    ['no completion', [100, undefined, 130], 30],
    ['a total that is too small', [100, 10, 0], 10],
    ['an impossible total', [100, 10, 1e300], 10],
  ])(
    'the output tokens of %s are the larger of the completion and the total without the prompt',
    (_, counts, expected) => {
      const [prompt_tokens, completion_tokens, total_tokens] = counts;
      const usage = event({ choices: [], usage: { prompt_tokens, completion_tokens, total_tokens } });
      expect(answerOf(chunk({ content: 'Hi' }, 'stop'), usage).usage?.outputTokens).toBe(expected);
    },
  );

  it.each([
    ['OpenAI', { prompt_tokens_details: { cached_tokens: 80 }, cached_tokens: 7 }],
    ['Kimi', { cached_tokens: 80 }],
    ['DeepSeek', { prompt_cache_hit_tokens: 80, prompt_cache_miss_tokens: 20 }],
  ])('the tokens that %s read from its cache are counted where it reports them', (_, counts) => {
    const usage = { prompt_tokens: 100, completion_tokens: 5, total_tokens: 105, ...counts };
    const answer = answerOf(chunk({ content: 'Hi' }, 'stop'), event({ choices: [], usage }));
    expect(answer.usage).toEqual({ inputTokens: 100, cachedInputTokens: 80, outputTokens: 5 });
  });

  it('an impossible usage is ignored', () => {
    const used = (usage: object) =>
      answerOf(chunk({ content: 'Hi' }, 'stop'), event({ choices: [], usage })).usage;
    for (const input of [-5, 1.5, 1e300, '12', null]) {
      expect(used({ prompt_tokens: input, completion_tokens: 3 })).toBeUndefined();
    }
    expect(used({ prompt_tokens: 5, completion_tokens: -3 })).toEqual({ inputTokens: 5, outputTokens: 0 });
    const details = (cached: number) => ({
      prompt_tokens: 5,
      completion_tokens: 1,
      prompt_tokens_details: { cached_tokens: cached },
    });
    expect(used(details(99))).toEqual({ inputTokens: 5, cachedInputTokens: 5, outputTokens: 1 });
    expect(used(details(-1))).toEqual({ inputTokens: 5, outputTokens: 1 });
  });

  it.each([
    ['content', 'text'],
    ['reasoning_content', 'reasoning'],
  ])(
    'an unpaired surrogate in `%s` is U+FFFD, and a pair split over two chunks is one character',
    (field, type) => {
      const said = (...pieces: string[]) => {
        const { deltas, result } = read(
          bytesOf(
            ...pieces.map((piece) => event({ choices: [{ index: 0, delta: { [field]: piece } }] })),
            chunk({ content: type === 'reasoning' ? 'x' : '' }, 'stop'),
          ),
        );
        if (result.kind !== 'whole') throw new Error('expected an answer');
        const given = deltas.flatMap((delta) =>
          delta.type === type && 'delta' in delta ? [delta.delta] : [],
        );
        const whole = type === 'text' ? result.answer.content : result.answer.reasoning;
        expect(given.join('')).toBe(whole);
        return whole;
      };
      expect(said('half \ud83d end')).toBe('half \ufffd end');
      expect(said('\ude00 first')).toBe('\ufffd first');
      expect(said('last \ud83d')).toBe('last \ufffd');
      expect(said('pair \ud83d', '\ude00 joined')).toBe('pair 😀 joined');
      expect(said('\ud83d', '\ud83d', '\ude00')).toBe('\ufffd😀');
    },
  );
});

describe('content of a wrong type', () => {
  it.each([7, true, { text: 'x' }])(
    'content of a wrong type is a failure, not an empty answer: %j',
    (content) => {
      const message = `The provider sent a content that is ${JSON.stringify(content)}: a text or a list of parts was expected.`;
      const fault = { code: 'INVALID_RESPONSE', message, retryable: false };
      expect(faultOf(JSON.stringify({ choices: [{ message: { content } }] }))).toEqual(fault);
      expect(
        faultOf(event({ choices: [{ index: 0, delta: { content }, finish_reason: 'stop' }] }), DONE),
      ).toEqual(fault);
    },
  );

  it.each(['null', '7', '[]'])('the chunk %s is reported as not being an object', (data) => {
    expect(faultOf(event(data)).message).toBe(`The provider sent a chunk that is not a JSON object: ${data}`);
  });
});

describe('fields that the protocol does not name', () => {
  const blocksOf = (form: { readonly message?: object; readonly call?: object }) => [
    ...(form.message ? [{ type: 'opaque', opaque: form.message }] : []),
    ...(form.call ? [{ type: 'call', opaque: form.call }] : []),
  ];

  it.each(Object.entries(OPAQUE_ANSWERS))(
    'the answer of %s keeps them, wherever its stream is split (OPAQUE-FIELDS-1)',
    (_, form) => {
      const bytes = bytesOf(...form.deltas.map((delta) => chunk(delta)), chunk({}, 'tool_calls'), DONE);
      for (let cut = 0; cut <= bytes.length; cut += 7) {
        const { result } = read(bytes, [cut]);
        if (result.kind !== 'whole') throw new Error('expected an answer');
        expect(result.answer.blocks).toEqual(blocksOf(form));
      }
    },
  );

  it.each(Object.entries(OPAQUE_ANSWERS))('the answer of %s keeps them if it is not streamed', (_, form) => {
    const tool_calls = [
      { id: 'x1', type: 'function', function: { name: 'a', arguments: '{}' }, ...form.call },
    ];
    const message = {
      role: 'assistant',
      content: null,
      refusal: null,
      annotations: [],
      ...form.message,
      tool_calls,
    };
    const answer = answerOf(
      JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'tool_calls' }] }),
    );
    expect(answer.blocks).toEqual(blocksOf(form));
  });

  it('what Groq only reports is not kept: it refuses a message with a field that it does not know', () => {
    const answer = answerOf(
      chunk({ role: 'assistant', content: '' }),
      ...['We', ' need'].map((reasoning) => chunk({ reasoning, channel: 'analysis' })),
      chunk({ content: 'Hi', executed_tools: [{ index: 0, type: 'search', arguments: '{}' }] }),
      chunk({}, 'stop'),
    );
    expect(answer).toMatchObject({ content: 'Hi', reasoning: 'We need' });
    expect(answer.blocks).toBeUndefined();
  });

  it('a field that not every reader could read again is left out, and so is an empty one (OPAQUE-FIELDS-2)', () => {
    const deep = `${'['.repeat(5_000)}${']'.repeat(5_000)}`;
    const fields = `"deep":${deep},"half":"\\ud83d","big":1e999,"none":null,"empty":[],"off":false,"kept":{"a":"\\\\ud83d 😀"}`;
    const answer = answerOf(
      event(`{"choices":[{"index":0,"delta":{"content":"Hi","__proto__":{"x":1},${fields}}}]}`),
      DONE,
    );
    const kept = JSON.parse('{"__proto__":{"x":1},"kept":{"a":"\\\\ud83d 😀"}}');
    expect(answer.blocks).toEqual([{ type: 'opaque', opaque: kept }]);
  });

  itLong('many pieces are joined in linear time', () => {
    // in quadratic time, they exceed the timeout of a test
    const items = Array.from({ length: 50_000 }, (_, index) =>
      chunk({ reasoning_details: [{ index, text: 'a' }] }),
    );
    const [joined] = answerOf(...items, chunk({ content: 'Hi' }, 'stop')).blocks ?? [];
    expect(joined).toMatchObject({ opaque: { reasoning_details: { length: 50_000 } } });
    const keys = Array.from({ length: 50_000 }, (_, at) =>
      chunk({ extra_content: { a: { [`k${at}`]: 1 } } }),
    );
    expect(answerOf(...keys, chunk({ content: 'Hi' }, 'stop')).blocks).toHaveLength(1);
  });
});

/** Read in quadratic time, these exceed the timeout of a test. */
it.each([
  ['blanks', ' ', 16_000_000],
  ['line breaks', '\n', 16_000_000],
  ['unfinished titles', '<title', 100_000],
  ['lines of one event', 'data: a\n', 1_000_000],
])('an answer that consists only of %s is read in linear time', (_what, part, count) => {
  const piece = Buffer.from(part.repeat(Math.min(count, 10_000)));
  const reader = new AnswerReader(new ChatDecoder());
  for (let read = 0; read < count; read += 10_000) reader.push(piece);
  expect(reader.end(false).result.kind).toBe('broken');
});

it('an answer of 200,000 calls of tools is read in time, and is not kept whole', () => {
  const reader = new AnswerReader(new ChatDecoder());
  for (let read = 0; read < 200; read++)
    reader.push(
      bytesOf(
        calls(...Array.from({ length: 1_000 }, (_, at) => call({ index: read * 1_000 + at }, 'a', '{}'))),
      ),
    );
  reader.push(bytesOf(chunk({}, 'tool_calls')));
  const { result } = reader.end(false);
  expect(result.kind === 'whole' && result.answer.toolCalls.length).toBe(257);
});

it('an HTML error page is reported with its title, which is cut if it is long', () => {
  expect(faultOf('<html><title>Bad gateway</title>').message).toContain('“Bad gateway”');
  expect(faultOf(`data: ${'x '.repeat(1_000_000)}\n\n`).message).toMatch(/: (x )+x?…/);
});

describe('tool calls in a stream', () => {
  const finish = chunk({}, 'tool_calls');
  const A = { name: 'a', arguments: '{"x":1}' };
  const B = { name: 'b', arguments: '{"y":2}' };

  it('concurrent tool calls are assembled by their index, and their names are sent once', () => {
    const { deltas, result } = read(
      bytesOf(
        calls(call({ index: 1, id: 'i' }, 'a', ''), call({ index: 2, id: 'j' }, 'b', '')),
        calls(call({ index: 2 }, undefined, '{"y"'), call({ index: 1 }, 'a', '{"x":')),
        calls(call({ index: 1, id: 'i' }, 'a', '1}'), call({ index: 2 }, undefined, ':2}')),
        finish,
      ),
    );
    expect(result).toMatchObject({
      answer: {
        toolCalls: [
          { id: 'i', ...A },
          { id: 'j', ...B },
        ],
      },
    });
    expect(deltas.filter((delta) => 'name' in delta)).toEqual([
      { type: 'tool_call_delta', position: 0, name: 'a', delta: '' },
      { type: 'tool_call_delta', position: 1, name: 'b', delta: '' },
    ]);
  });

  /** The call `a` or `b`, whole or with a piece of its arguments, and a later piece of one. */
  const a = (given: object, piece = '{"x":1}') => call(given, 'a', piece);
  const b = (given: object) => call(given, 'b', '{"y":2}');
  const more = (given: object, piece: string) => call(given, undefined, piece);
  const [first, second] = [{ index: 0 }, { index: 1 }];
  const WHOLE = calls(a({ ...first, id: 'i' }), b({ ...second, id: 'j' }));
  const MESSAGE = event({ choices: [{ message: { tool_calls: [a({ id: 'i' }), b({ id: 'j' })] } }] });
  const OBJECTS = calls(
    { index: 0, function: { name: 'a', arguments: { x: 1 } } },
    { index: 1, function: { name: 'b', arguments: { y: 2 } } },
  );
  const EACH_PIECE = ['{"x"', ':1}', ''].map((piece) => calls(a({ ...first, id: 'i' }, piece)));

  it.each([
    ['without indexes', [calls(a({ id: 'i' }, '{"x":')), calls(more({}, '1}')), calls(b({ id: 'j' }))]],
    ['with the index 0 for all', [calls(a({ ...first, id: 'i' })), calls(b({ ...first, id: 'j' }))]],
    [
      'with the index 0 and the id call_0 for all',
      [calls(a({ ...first, id: 'call_0' })), calls(b({ ...first, id: 'call_0' }))],
    ],
    ['with one id for two indexes', [calls(a({ ...first, id: 'call_0' }), b({ ...second, id: 'call_0' }))]],
    ['with no ids at all', [calls(a(first), b(second))]],
    ['with id and name in every piece', [...EACH_PIECE, calls(b({ ...second, id: 'j' }))]],
    [
      'with another id in every piece',
      [
        calls(a({ ...first, id: 'r1' }, '{"x":')),
        calls(more({ ...first, id: 'r2' }, '1}')),
        calls(b({ ...second, id: 'r3' })),
      ],
    ],
    [
      'repeated whole by their index',
      [
        calls(a({ ...first, id: 'i' }, '{"x"')),
        calls(more(first, ':1}')),
        calls(b({ ...second, id: 'j' })),
        WHOLE,
      ],
    ],
    ['repeated whole in a message', [WHOLE, MESSAGE]],
    ['with their arguments as objects', [OBJECTS]],
  ])('two tool calls are separate when they come %s', (_, pieces) => {
    const { toolCalls } = answerOf(...pieces, finish);
    expect(toolCalls).toMatchObject([A, B]);
    expect(toolCalls.every((toolCall) => toolCall.id !== '')).toBe(true);
  });

  it('two equal tool calls in one chunk are separate', () => {
    const same = a({ index: 0, id: 'call_0' });
    expect(answerOf(calls(same, same), finish).toolCalls.length).toBe(2);
  });

  it('a tool call that is repeated under another index with the same id, name and arguments is one', () => {
    const one = a({ index: 0, id: 'i' });
    const again = a({ index: 1, id: 'i' });
    const inPieces = [calls(one), calls(a({ index: 1, id: 'i' }, '{"x"')), calls(more({ index: 1 }, ':1}'))];
    for (const events of [[calls(one, again)], [calls(one), calls(again)], inPieces]) {
      expect(answerOf(...events, finish).toolCalls).toEqual([{ id: 'i', name: 'a', arguments: '{"x":1}' }]);
    }
  });

  it.each([
    ['arguments', a({ index: 1, id: 'i' }, '{"x":2}')],
    ['name', call({ index: 1, id: 'i' }, 'b', '{"x":1}')],
    ['id', a({ index: 1, id: 'j' })],
  ])('two tool calls that differ in their %s are separate (L10)', (_, other) => {
    expect(answerOf(calls(a({ index: 0, id: 'i' }), other), finish).toolCalls).toHaveLength(2);
  });

  it('two equal tool calls without an id are separate, as nothing says that they are one', () => {
    const events = [0, 1].map((index) => calls(call({ index }, 'a', '{"x":1}')));
    expect(answerOf(...events, finish).toolCalls).toHaveLength(2);
  });

  it('arguments that are not JSON are kept as the model wrote them', () => {
    expect(answerOf(calls(call({ index: 0, id: 'i' }, 'a', '{"x":')), finish).toolCalls).toMatchObject([
      { arguments: '{"x":' },
    ]);
  });
});
