import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lanesOf, PEOPLE } from '../../../src/console/model/timeline/lanes.ts';
import { barsOf, summaryOf } from '../../../src/console/model/timeline/shapes.ts';
import { type Interval, timeScale } from '../../../src/console/model/timeline/time-scale.ts';
import { answer, at, begin, calling, end, logOf, other, result, say } from './support.ts';

describe('the lanes of a conversation', () => {
  const log = logOf(
    say('build it'), // 1
    begin('pm'), // 2
    calling(
      'pm',
      'shell',
      {},
      { after: 3, duration: 2_000, usage: { inputTokens: 100, outputTokens: 10, usd: 0.5 } },
    ), // 5
    other('tool-started', { call: { index: 2, position: 0 } }), // 6
    result(2, 'done', { after: 4, duration: 3_900 }), // 10
    end('pm', 'waiting', 1), // 11
    begin('pm', { after: 9 }), // 20
    other('handoff', { from: 'pm', to: 'dev', summary: 'x' }), // 21
    end('pm', 'completed', 1), // 22
    begin('dev'), // 23
    answer('dev', 'so', { after: 2, duration: 9_000 }), // 25
  );
  const lanes = lanesOf(log);
  const spans = (lane: string, kind: string) =>
    lanes.spans.filter((span) => span.lane === lane && span.kind === kind).map(({ from, to }) => [from, to]);

  it('a failed turn is a bar of its own kind, above the others, and the summary counts it', () => {
    const failed = lanesOf(
      logOf(begin('pm'), end('pm', 'failed', 1), begin('pm'), end('pm', 'completed', 1)),
    );
    const scale = timeScale(failed.spans);
    const bars = barsOf(failed.spans, { scale, rows: failed.agents, width: 400, from: 0, visible: 400 });
    expect(bars.map(({ kind, isFailed }) => [kind, isFailed])).toEqual([
      ['turn', false],
      ['turn', true],
    ]);
    expect(summaryOf(failed)).toBe('1 agent, 2 turns, 1 failed turn');
  });

  it('LANES-1: lanes begin and end at their entries, and open ones end with the log', () => {
    expect(lanes.agents).toEqual(['pm', 'dev']);
    expect(spans(PEOPLE, 'post')).toEqual([[at(1), at(1)]]);
    expect(spans('pm', 'turn')).toEqual([
      [at(2), at(11)],
      [at(20), at(22)],
    ]);
    expect(spans('pm', 'wait')).toEqual([[at(11), at(20)]]);
    expect(spans('pm', 'call')).toEqual([[at(3), at(5)]]);
    expect(spans('pm', 'tool')).toEqual([[at(6), at(10)]]);
    expect(spans('dev', 'turn')).toEqual([[at(23), at(25)]]);
  });

  it('LANES-1: what waits ends with a turn that is stopped meanwhile', () => {
    const call = { index: 1, position: 0 };
    const stopped = lanesOf(
      logOf(
        begin('pm'), // 1
        calling('pm', 'shell'), // 2
        other('approval-requested', { approvalId: 'a', call, risk: 'risky', mayHaveRun: false }), // 3
        end('pm', 'waiting', 1), // 4
        result(1, '[not run: the turn was aborted]', { after: 60 }), // 64
        end('pm', 'aborted', 1), // 65
        say('and now?', { after: 600 }),
      ),
    );
    const waits = stopped.spans.filter(({ kind }) => kind === 'wait' || kind === 'approval');
    expect(waits.map(({ from, to, isOpen }) => [from, to, isOpen])).toEqual([
      [at(3), at(65), undefined],
      [at(4), at(65), undefined],
    ]);
  });

  it('LANES-1: in a copy, what was open ends with what was copied, however late the copy was made', () => {
    const copy = logOf(
      begin('pm'), // 1
      calling('pm', 'shell'), // 2
      other('tool-started', { call: { index: 1, position: 0 } }), // 3
      other('forked', { from: 'demo', at: 2, after: 800 }),
      end('pm', 'aborted', 1),
      begin('pm'), // 805
      end('pm', 'completed', 1),
    );
    const lasted = lanesOf(copy).spans.filter(({ kind }) => kind === 'turn' || kind === 'tool');
    expect(lasted.map(({ kind, from, to }) => [kind, from, to])).toEqual([
      ['turn', at(1), at(3)],
      ['tool', at(3), at(3)],
      ['turn', at(805), at(806)],
    ]);
  });

  it('LANES-1: a turn that continues after a crash is one turn from its beginning', () => {
    const crashed = lanesOf(
      logOf(begin('pm'), begin('pm', { after: 30, resumed: true }), end('pm', 'completed', 1)),
    );
    expect(crashed.spans.map(({ kind, from, to }) => [kind, from, to])).toEqual([['turn', at(1), at(32)]]);
  });

  it('LANES-2: a model call lies within its turn, whatever its duration says', () => {
    expect(spans('dev', 'call')).toEqual([[at(23), at(25)]]);
  });

  it('lanes show which agent handed over, and what each agent received', () => {
    expect(lanes.passages).toEqual([{ kind: 'handoff', from: 'pm', to: 'dev', at: at(21), index: 7 }]);
    expect(lanes.spending.get('pm')).toEqual({
      calls: 1,
      inputTokens: 100,
      cachedInputTokens: 0,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
      outputTokens: 10,
      usd: 0.5,
      unpricedCalls: 0,
      modelMs: 2_000,
      toolMs: 3_900,
    });
  });

  it('lanes show how long a call waited for a person', () => {
    const waiting = lanesOf(
      logOf(
        begin('pm'),
        calling('pm', 'shell'),
        other('approval-requested', {
          approvalId: 'a',
          call: { index: 1, position: 0 },
          risk: 'risky',
          mayHaveRun: false,
        }),
        other('approval-answered', { approvalId: 'a', answer: 'deny', after: 60 }),
        say('later'),
      ),
    );
    expect(waiting.spans.filter(({ kind }) => kind === 'approval')).toMatchObject([
      { lane: 'pm', from: at(3), to: at(63) },
    ]);
  });

  it('the time in which a server waits for the answer to its form is no time of its tool', () => {
    const call = { index: 1, position: 0 };
    const asked = { approvalId: 'a', call, risk: 'risky', mayHaveRun: false };
    const { spending } = lanesOf(
      logOf(
        begin('pm'),
        calling('pm', 'book'),
        other('tool-started', { call }),
        other('approval-requested', asked),
        other('approval-answered', { approvalId: 'a', call, answer: 'approve', after: 60 }),
        result(1, 'done', { after: 2, duration: 3_000 }),
      ),
    );
    expect(spending.get('pm')?.toolMs).toBe(3_000);
  });

  it('an empty log has no lanes', () => {
    expect(lanesOf([])).toMatchObject({ agents: [], spans: [], passages: [] });
  });
});

describe('the scale of time', () => {
  const interval = fc
    .record({ from: fc.nat(100_000), length: fc.nat(5_000) })
    .map(({ from, length }): Interval => ({ from, to: from + length }));

  it('TIME-SCALE-1: a later moment is never left of an earlier one, and the scale is between 0 and 1', () => {
    fc.assert(
      fc.property(fc.array(interval), fc.nat(110_000), fc.nat(110_000), (intervals, one, two) => {
        const scale = timeScale(intervals);
        const [early, late] = [scale.at(Math.min(one, two)), scale.at(Math.max(one, two))];
        expect(early).toBeLessThanOrEqual(late + 1e-9);
        expect(early).toBeGreaterThanOrEqual(0);
        expect(late).toBeLessThanOrEqual(1);
      }),
    );
  });

  it('the scale counts concurrent work once', () => {
    const scale = timeScale([
      { from: 0, to: 10 },
      { from: 5, to: 15 },
    ]);
    expect([scale.worked, scale.at(7.5), scale.at(15)]).toEqual([15, 0.5, 1]);
  });

  it('TIME-SCALE-2: all long pauses have the same width', () => {
    const widthOf = (length: number) =>
      timeScale([
        { from: 0, to: 1_000 },
        { from: 1_000 + length, to: 2_000 + length },
      ]).pauses.map(({ width }) => width.toFixed(6));
    expect(widthOf(60_000)).toEqual(widthOf(86_400_000));
    expect(widthOf(60_000)).toHaveLength(1);
    expect(widthOf(10)).toEqual([]);
  });
});
