import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  checkLaws,
  createTurnWatch,
  type Entry,
  entrySchema,
  failedAnswer,
  finishNotice,
  finishReasonOf,
  splitFailedAnswer,
  splitMessage,
} from '../../../src/conversation/index.ts';
import { agent, ended, started } from '../cli/support.ts';
import { Core, messagesOf } from './core.ts';
import { TeamCore } from './team-core.ts';

function answer(core: Core, slug: string, content: string, finishReason: string | undefined): void {
  const { turnId } = core.callOf(slug);
  const report = { agent: slug, turnId, duration: 0, requestHash: 'h', upTo: core.entries.length };
  core.do({ type: 'model-answered', ...report, answer: { content, toolCalls: [], finishReason } });
}

describe('why a model ended its answer', () => {
  it.each<[string | undefined, string | undefined]>([
    ['STOP', 'stop'],
    ['end_turn', 'stop'],
    ['MAX_TOKENS', 'length'],
    ['function_call', 'tool_calls'],
    ['SAFETY', 'content_filter'],
    ['constructor', 'constructor'],
    ['Some\nthing\u001b[31m new', 'Some thing [31m new'],
    ['😀'.repeat(100), '😀'.repeat(64)],
    [' \u0000', undefined],
    [undefined, undefined],
    ['pause_turn', 'pause'],
    ['model_context_window_exceeded', 'length'],
    ['RECITATION', 'content_filter'],
  ])('the reason %j of a provider is kept as %j', (given, kept) => {
    expect(finishReasonOf(given)).toBe(kept);
  });

  it('an unknown reason is quoted, so that it cannot pass for other words', () => {
    expect(finishNotice('odd "thing"')).toBe('ended for the reason "odd \\"thing\\""');
    expect([finishNotice('stop'), finishNotice('tool_calls'), finishNotice(undefined)]).toEqual([
      null,
      null,
      null,
    ]);
  });

  it('an entry with the reason of a later version is valid', () => {
    expect(entrySchema.safeParse(agent(0, 'pm', 'x', { finishReason: 'later' })).success).toBe(true);
  });

  it('V16: the view of an answer is the same with and without a reason', () => {
    const viewWith = (finishReason?: string) => {
      const core = new Core().posted('hello');
      answer(core, 'pm', 'cut off', finishReason);
      core.post('and now?');
      return JSON.stringify(messagesOf(core.view('pm')));
    };
    expect(viewWith('length')).toBe(viewWith());
    expect(viewWith('length')).toContain('cut off');
  });

  it('the asker of a delegation sees that the answer was cut', () => {
    const core = new TeamCore().posted('hello');
    core.act('pm', null, ['delegate', { to: 'dev', request: 'build' }]);
    answer(core, 'dev', 'Half of', 'length');
    const result = core.entries.findLast((entry) => entry.type === 'message' && entry.role === 'tool');
    expect(result).toMatchObject({
      content: 'Half of\n\n[dev did not finish: its answer was cut at the output limit (length)]',
    });
  });

  it.each(
    ['', ' \n', '\u200b\u2060'].flatMap((content) => [
      [content, 'length', 'OUTPUT_LIMIT'],
      [content, 'interrupted', 'STREAM_BROKEN'],
      [content, 'stop', 'EMPTY_ANSWER'],
      [content, 'other', 'EMPTY_ANSWER'],
    ]),
  )(
    'L16: an answer %j that ends with %s before any visible character is the failure %s',
    (content, reason, code) => {
      const core = new Core().posted('hello');
      answer(core, 'pm', content, reason);
      expect(core.entries.at(-1)).toMatchObject({ type: 'turn-ended', outcome: 'failed' });
      expect(core.entries.at(-2)).toMatchObject({ content: expect.stringContaining(`"code":"${code}"`) });
    },
  );

  it('only the last answer of a turn can mark the turn as cut', () => {
    const cutAfter = (entries: Entry[]) => {
      const watch = createTurnWatch();
      for (const entry of entries) watch.observe(entry);
      return watch.cut;
    };
    const cut = { finishReason: 'length', turnId: started(0, 'pm', [0]).turnId };
    const whole = { ...cut, finishReason: 'stop' };
    const began = started(1, 'pm', [0]);
    expect(cutAfter([began, agent(2, 'pm', 'x', cut), agent(3, 'pm', 'y', whole), ended(4, 'pm')])).toEqual(
      [],
    );
    expect(cutAfter([began, agent(2, 'pm', 'x', whole), agent(3, 'pm', 'y', cut), ended(4, 'pm')])).toEqual([
      { agent: 'pm', by: 'length' },
    ]);
  });
});

const failure = { code: 'MODEL_TIMEOUT', message: 'no answer\nwithin 30 s' };

test('the text and the failure of a failed answer are read back as they were written', () => {
  const texts = fc.oneof(
    fc.string(),
    fc.constantFrom('', '\n', 'a\n', 'LLM_ERROR {"code":"FALSE","message":""}'),
  );
  fc.assert(
    fc.property(texts, fc.string(), fc.string(), (text, code, message) => {
      expect(splitFailedAnswer(failedAnswer({ code, message }, text))).toEqual({
        text,
        failure: { code, message },
      });
    }),
  );
});

test.each([
  ['a notation in the middle of the text', 'I saw\nLLM_ERROR {"code":"X","message":""}\nin a log'],
  ['words after the notation', 'LLM_ERROR means failure'],
  ['a null', 'LLM_ERROR null'],
])('%s is text, not a failure', (_, content) => {
  expect(splitFailedAnswer(content)).toEqual({ text: content, failure: null });
});

test.each([
  ['that is not JSON', '{broken', { code: 'LLM_ERROR', message: '{broken' }],
  ['without a code', '{"message":"lost"}', { code: 'LLM_ERROR', message: 'lost' }],
])('an imported failure %s is shown as far as it is known', (_, json, expected) => {
  expect(splitFailedAnswer(`text\n\nLLM_ERROR ${json}`)).toEqual({ text: 'text', failure: expected });
});

test('an answer that quotes a failure and did not fail is shown whole', () => {
  const content = failedAnswer(failure, 'quoted');
  expect(splitMessage({ content, partType: 'text' })).toEqual({ text: content, failure: null });
  expect(splitMessage({ content, partType: 'error' })).toEqual({ text: 'quoted', failure });
  expect(splitMessage({ content: null, partType: 'text' })).toEqual({ text: '', failure: null });
});

const NOTICE = '=== CONTINUE YOUR ANSWER ===';

function paused(): Core {
  const core = new Core().posted('go');
  core.answer(core.callOf('pm'), 'A beginning', [], 'pause');
  return core;
}

describe('a paused answer', () => {
  it('the same turn continues a paused answer, and its request ends with a notice after the answer', () => {
    const core = paused();
    const messages = messagesOf(core.view('pm'));
    expect(messages.slice(-2)).toMatchObject([
      { role: 'assistant', content: 'A beginning' },
      { content: expect.stringContaining(NOTICE) },
    ]);
    const before = core.entries.length;
    core.answer(core.callOf('pm'), 'The end.');
    expect(core.entries.slice(before).map(({ type }) => type)).toEqual([
      'message',
      'title-set',
      'turn-ended',
    ]);
    expect(checkLaws(core.entries)).toEqual([]);
  });

  it('a paused answer is continued after a crash, with the same messages', () => {
    const core = paused();
    const messages = messagesOf(core.view('pm'));
    core.crash();
    expect(messagesOf(core.view('pm'))).toEqual(messages);
    core.answer(core.callOf('pm'), 'The end.');
    expect(core.conversation.state.agents.pm?.turn).toBeNull();
    expect(checkLaws(core.entries)).toEqual([]);
  });

  it('a repeated report of a paused answer changes nothing', () => {
    const core = new Core().posted('go');
    const { agent, turnId } = core.callOf('pm');
    const { turn } = core.conversation.state.agents.pm ?? {}; // `upTo` has the value that the daemon reports.
    const answer = { content: 'A beginning', toolCalls: [], finishReason: 'pause' };
    const report = { agent, turnId, duration: 1, requestHash: 'hash', upTo: turn?.upTo ?? -1 };
    const first = core.do({ type: 'model-answered', ...report, answer });
    expect(first.effects).toMatchObject([{ type: 'call-model' }]);
    expect(core.do({ type: 'model-answered', ...report, answer }).entries).toEqual([]);
  });

  it('a steered message is delivered before the paused turn continues', () => {
    const core = new Core().posted('go');
    core.post('and quickly');
    const { entries } = core.answer(core.callOf('pm'), 'A beginning', [], 'pause');
    expect(entries.map(({ type }) => type)).toEqual(['message', 'message-delivered']);
    expect(messagesOf(core.view('pm')).at(-1)).toMatchObject({ role: 'user', content: 'and quickly' });
  });

  it('a paused answer of a stopped agent ends its turn', () => {
    const core = new Core().posted('go');
    const call = core.callOf('pm');
    core.post('stop that', { delivery: 'interrupt' });
    core.answer(call, 'A beginning', [], 'pause');
    expect(core.entries.some((entry) => entry.type === 'turn-ended' && entry.outcome === 'aborted')).toBe(
      true,
    );
    expect(checkLaws(core.entries)).toEqual([]);
  });
});
