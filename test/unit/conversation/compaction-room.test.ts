import { describe, expect, it } from 'vitest';
import {
  type Entry,
  estimateTokens,
  type ReductionInput,
  type ReductionPlan,
} from '../../../src/conversation/index.ts';
import { asks, exchanges, limitsOf, planOf, summed, WORDS } from './compaction-support.ts';
import { ALICE, called, logOf, PM, result, said, started } from './recall-log.ts';

describe('the smallest window that a reduction can reach', () => {
  const steps = [called(PM, WORDS, ['shell', '{}']), result(PM, 2, WORDS)];
  const summary = { covered: [[0, 10]], leftOut: [], shortened: [] } as unknown as ReductionPlan;
  const standing = summed(logOf(...exchanges(3), ...asks(12)), summary, WORDS);
  const ASKED = estimateTokens('now?');
  const SHORT = 60 + 30;

  it.each<[string, number, readonly Entry[], Partial<ReductionInput>, Partial<ReductionPlan>]>([
    [
      'a lone summary in fewer words',
      ASKED + estimateTokens('=== SUMMARY OF ENTRIES 0 TO 10 ===\nS'),
      ...[standing, {}, { covered: [[0, 10], [14, 14]], isRewrite: true }] as const, // biome-ignore format: one line
    ],
    [
      'a message that was never shown, before others that were',
      ASKED + SHORT,
      ...([logOf(...exchanges(2), ...asks(8)), { isUnshown: (index: number) => index === 0 }] as const),
      { leftOut: [[0, 0]], covered: [[2, 6]], isRewrite: false },
    ],
    [
      'a mere pointer to the newest result',
      estimateTokens('go') + estimateTokens(WORDS) + estimateTokens('[shortened: recall 3]'),
      logOf(said(ALICE, 'go', { to: ['pm'] }), started('pm', 0), ...steps),
      {},
      { shortened: [3], previewLength: 0 },
    ],
  ])(
    'a reduction is planned where its result equals the window, and not one token below: %s',
    (_, least, log, more, plan) => {
      expect(planOf(log, limitsOf(least), more)).toMatchObject(plan);
      expect(planOf(log, limitsOf(least - 1), more)).toBeNull();
    },
  );

  it('no reduction is planned where the summary is as short as possible, so that it is not rewritten endlessly', () => {
    for (const room of [20, 60, 100])
      expect(planOf(standing, limitsOf(room), { write: () => WORDS })).toBeNull();
  });
});
