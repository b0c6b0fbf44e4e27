import { describe, expect, it } from 'vitest';
import {
  EMPTY_STATE,
  type Entry,
  evolve,
  SPENT_DAYS,
  spentTogether,
} from '../../../src/conversation/index.ts';

const day = (n: number) => new Date(Date.UTC(2026, 0, n)).toISOString();

function call(agent: string, createdAt: string, more: Partial<Entry> = {}): Entry {
  const author = { kind: 'agent', id: agent, name: agent };
  const usage = { inputTokens: 10, outputTokens: 2, usd: 0.5 };
  const entry = { id: createdAt, createdAt, type: 'message', role: 'assistant', author, requestHash: 'h' };
  return { index: 0, content: 'words', usage, ...entry, ...more } as Entry;
}

const fold = (...entries: readonly Entry[]) => entries.reduce(evolve, EMPTY_STATE);

describe('what a conversation used', () => {
  it('is counted by day and agent, calls of unknown cost apart', () => {
    const { spent } = fold(
      call('pm', day(1)),
      call('pm', day(1)),
      call('dev', day(1)),
      call('pm', day(2), { usage: { inputTokens: 1, outputTokens: 1 } } as Partial<Entry>),
    );
    expect(spent).toEqual([
      { day: '2026-01-01', agent: 'pm', calls: 2, tokens: 24, usd: 1, unpricedCalls: 0 },
      { day: '2026-01-01', agent: 'dev', calls: 1, tokens: 12, usd: 0.5, unpricedCalls: 0 },
      { day: '2026-01-02', agent: 'pm', calls: 1, tokens: 2, usd: 0, unpricedCalls: 1 },
    ]);
  });

  it('is remembered for the newest days with calls alone', () => {
    const { spent } = fold(...Array.from({ length: 40 }, (_, n) => call('pm', day(n + 1))));
    expect([spent.length, spent[0]?.day]).toEqual([SPENT_DAYS, '2026-01-10']);
  });

  it('begins with nothing in a fork: the copied calls were paid elsewhere', () => {
    const copy = call('pm', day(1), { copiedFrom: 'a' });
    const forked = { ...call('pm', day(1)), type: 'forked', from: 'a', at: 0 } as unknown as Entry;
    expect(fold(copy, forked).spent).toEqual([]);
    expect(fold(copy, forked, call('pm', day(1))).spent).toMatchObject([{ calls: 1 }]);
  });

  it('is summed over conversations in the order of the days', () => {
    const [one, two] = [fold(call('pm', day(2))).spent, fold(call('pm', day(1)), call('pm', day(2))).spent];
    expect(spentTogether([...one, ...two]).map(({ day, calls }) => [day, calls])).toEqual([
      ['2026-01-01', 1],
      ['2026-01-02', 2],
    ]);
  });
});
