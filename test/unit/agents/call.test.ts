import { describe, expect, it } from 'vitest';
import {
  type CallContext,
  callModel,
  LivePublisher,
  type Model,
  type ModelDelta,
  type ModelOutcome,
} from '../../../src/agents/index.ts';
import type { LiveChunk } from '../../../src/conversation/index.ts';
import { systemTimers } from '../../../src/kernel/index.ts';
import { SimulatedTime } from '../../../src/testing/simulation.ts';
import { modelRequest } from './support.ts';

const request = modelRequest({ hash: 'the-hash' });
const report = { agent: 'dev', turnId: 't1', duration: 7, requestHash: 'the-hash', upTo: 5 };
const text = (delta: string): ModelDelta => ({ type: 'text', delta });
const partial = { content: 'half of', reasoning: 'because' };
const FAILED = { kind: 'failed', code: 'TIMEOUT', message: 'Too slow.', partial, retryable: false } as const;
const FAILURE = { type: 'model-failed', partial: 'half of' };

function call(
  attempts: { deltas?: ModelDelta[]; outcome: ModelOutcome | Error }[],
  more: Partial<CallContext> = {},
) {
  const chunks: LiveChunk[] = [];
  let count = 0;
  let ids = 0;
  let time = 100;
  const timers = { ...systemTimers, sleep: async () => undefined };
  const model: Model = {
    async call(_, { onDelta }) {
      const attempt = attempts[count++];
      attempt?.deltas?.forEach(onDelta);
      if (!attempt || attempt.outcome instanceof Error)
        throw attempt?.outcome ?? new Error('asked too often');
      return attempt.outcome;
    },
  };
  const context: CallContext = {
    model,
    retry: { attempts: 2, baseMs: 1, maxMs: 1 },
    signal: new AbortController().signal,
    elapsed: () => (time += 7),
    live: {
      publisher: new LivePublisher(timers, () => `call-${ids++}`),
      publish: (chunk) => chunks.push(chunk),
    },
    timers,
    price: null,
    random: () => 0,
    ...more,
  };
  return { command: callModel(request, { upTo: 5 }, context), chunks };
}

describe('a model call of a turn', () => {
  it.each([
    [256, 'model-answered'],
    [257, 'model-failed'],
  ])('a model call with an answer of %i calls of tools is reported as %s', async (count, type) => {
    const toolCalls = Array.from({ length: count }, () => ({ id: 'i', name: 'x', arguments: '{}' }));
    const { command } = call([{ outcome: { kind: 'answered', answer: { content: 'so far', toolCalls } } }]);
    const failed = { code: 'TOO_MANY_TOOL_CALLS', partial: 'so far' };
    expect(await command).toMatchObject({ type, ...(type === 'model-failed' && failed) });
  });

  it('a model call reports an answer with all its fields', async () => {
    const answer = {
      content: 'done',
      reasoning: 'thought',
      usage: { inputTokens: 3, outputTokens: 1 },
      model: 'fake-1',
      toolCalls: [{ id: 'c1', name: 'recall', arguments: '{"from":0}' }],
    };
    const [{ id, ...asked }] = answer.toolCalls as [(typeof answer.toolCalls)[0]];
    expect(await call([{ outcome: { kind: 'answered', answer } }]).command).toEqual({
      type: 'model-answered',
      answer: { ...answer, toolCalls: [{ id, type: 'function', function: asked }] },
      ...report,
    });
  });

  it('a model call omits empty reasoning', async () => {
    const outcome = { kind: 'answered', answer: { content: 'x', reasoning: '', toolCalls: [] } } as const;
    const command = await call([{ outcome }]).command;
    expect(command).toMatchObject({ answer: { content: 'x', reasoning: undefined } });
  });

  it.each<[string, ModelOutcome | Error, object]>([
    ['a failure with the partial answer', FAILED, { ...FAILURE, code: 'TIMEOUT', message: 'Too slow.' }],
    [
      'an abort with the partial answer',
      { kind: 'aborted', partial },
      { type: 'model-aborted', partial: 'half of' },
    ],
    [
      'an exception of the adapter as a failure (L16)',
      new Error('undefined is not a function'),
      { ...FAILURE, code: 'INTERNAL', message: 'undefined is not a function', partial: '' },
    ],
  ])('a model call reports %s', async (_, outcome, reported) => {
    expect(await call([{ outcome }]).command).toEqual({ ...reported, ...report });
  });

  it('a model call reports whole milliseconds', async () => {
    const times = [1_000.9, 1_004.1];
    const elapsed = () => times.shift() ?? 0;
    const { command } = call([{ outcome: { kind: 'aborted', partial } }], { elapsed });
    expect(await command).toMatchObject({ duration: 3 });
  });

  it('the chunks of each attempt are numbered from 0, with a call id per attempt', async () => {
    const busy = { ...FAILED, code: 'RATE_LIMITED', message: 'Busy.', retryable: true };
    const deltas: ModelDelta[] = [
      { type: 'reasoning', delta: 'hm' },
      { type: 'text', delta: 'Hel' },
      { type: 'text', delta: 'lo' },
      { type: 'tool_call_delta', position: 1, name: 'recall', delta: '{"a' },
    ];
    const answered = { kind: 'answered', answer: { content: 'Hello', toolCalls: [] } } as const;
    const { command, chunks } = call([{ outcome: busy }, { deltas, outcome: answered }]);
    await command;
    const base = { turnId: 't1', call: 'call-1' };
    expect(chunks).toEqual([
      { ...base, n: 0, type: 'reasoning', delta: 'hm' },
      { ...base, n: 1, type: 'text', delta: 'Hello' },
      { ...base, n: 2, type: 'tool_call_delta', delta: '{"a', toolCallId: 'call-1_1', toolName: 'recall' },
    ]);
  });

  const broken = { ...FAILED, code: 'STREAM_BROKEN', message: 'Broken.' };
  it.each<[string, ModelOutcome | Error]>([
    ['is answered', { kind: 'answered', answer: { content: 'half of', toolCalls: [] } }],
    ['fails', broken],
    ['is aborted', { kind: 'aborted', partial }],
    ['ends with an exception', new Error('a bug')],
  ])('a model call that %s has published all its text before (LIVE-TEXT-3)', async (_, outcome) => {
    const deltas: ModelDelta[] = [text('half'), text(' '), text('of')];
    const { command, chunks } = call([{ deltas, outcome }]);
    await command;
    expect(chunks.map(({ delta }) => delta)).toEqual(['half', ' of']);
  });

  it('attempts that were retried do not count as running (LIVE-TEXT-1)', async () => {
    const time = new SimulatedTime(0);
    const live = new LivePublisher(time.timers, () => 'call');
    const published: string[] = [];
    const publish = ({ delta }: LiveChunk) => void published.push(delta);
    const busy = { ...broken, retryable: true };
    const retry = { attempts: 50, baseMs: 1, maxMs: 1 };
    await call(Array(50).fill({ outcome: busy }), { live: { publisher: live, publish }, retry }).command;
    const attempt = live.begin('t2', publish);
    attempt.add(text('a'));
    attempt.add(text('b'));
    await time.advance(20, async () => undefined);
    expect(published).toEqual(['a', 'b']);
  });
});
