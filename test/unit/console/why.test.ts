import { describe, expect, it } from 'vitest';
import { previousAnswer, segmentsOf } from '../../../src/console/model/answer.ts';
import type { ExplainedRequest } from '../../../src/conversation/index.ts';
import { answer, logOf, say } from './support.ts';

const requestOf = (report: object) => ({ messages: [], report }) as unknown as ExplainedRequest;

describe('the account of a request in the console', () => {
  it('the bar of a request shows its content, the reserve for the answer, and the free part of the window', () => {
    const segments = segmentsOf(
      requestOf({
        tokens: 300,
        window: 1_000,
        reserved: 100,
        tokens_by_group: { prefix: 200, trigger: 100, turn: 0 },
      }),
    );
    expect(segments.map(({ group, tokens }) => [group, tokens])).toEqual([
      ['prefix', 200],
      ['trigger', 100],
      ['for the answer', 100],
      ['free', 600],
    ]);
    expect(segments.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
  });

  it('the bar of a request is never overfull if the window is too small', () => {
    const segments = segmentsOf(
      requestOf({ tokens: 3_000, window: 1_000, reserved: 100, tokens_by_group: { history: 3_000 } }),
    );
    expect(segments.map(({ group }) => group)).toEqual(['history', 'for the answer']);
    expect(segments.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
  });

  it("a request is compared with the one of the same agent's previous answer", () => {
    const log = logOf(answer('pm', 'one'), say('x'), answer('dev', 'two'), answer('pm', 'three'));
    expect(previousAnswer(log, 3, 'pm')).toBe(0);
    expect(previousAnswer(log, 0, 'pm')).toBe(null);
    expect(previousAnswer(log, 2, 'dev')).toBe(null);
  });
});
