import { describe, expect, it } from 'vitest';
import {
  createTurnWatch,
  type Entry,
  entrySchema,
  finishNotice,
  finishReasonOf,
} from '../../../src/conversation/index.ts';
import { agent, ended, started } from '../cli/support.ts';
import { Team } from './team.ts';
import { messagesOf, World } from './world.ts';

function answer(world: World, slug: string, content: string, finishReason: string | undefined): void {
  const { turnId } = world.callOf(slug);
  const report = { agent: slug, turnId, duration: 0, requestHash: 'h', upTo: world.entries.length };
  world.do({ type: 'model-answered', ...report, answer: { content, toolCalls: [], finishReason } });
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
      const world = new World().posted('hello');
      answer(world, 'pm', 'cut off', finishReason);
      world.post('and now?');
      return JSON.stringify(messagesOf(world.view('pm')));
    };
    expect(viewWith('length')).toBe(viewWith());
    expect(viewWith('length')).toContain('cut off');
  });

  it('the asker of a delegation sees that the answer was cut', () => {
    const team = new Team().posted('hello');
    team.act('pm', null, ['delegate', { to: 'dev', request: 'build' }]);
    answer(team, 'dev', 'Half of', 'length');
    const result = team.entries.findLast((entry) => entry.type === 'message' && entry.role === 'tool');
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
      const world = new World().posted('hello');
      answer(world, 'pm', content, reason);
      expect(world.entries.at(-1)).toMatchObject({ type: 'turn-ended', outcome: 'failed' });
      expect(world.entries.at(-2)).toMatchObject({ content: expect.stringContaining(`"code":"${code}"`) });
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
