import { describe, expect, it } from 'vitest';
import {
  Conversation,
  EMPTY_STATE,
  type Entry,
  evolve,
  type NewEntry,
  SPENT_DAYS,
  spentTogether,
  tokenRatioOf,
} from '../../../src/conversation/index.ts';
import { rulesFor } from './core.ts';
import { ALICE, DEV, logOf, PM, said, started } from './recall-log.ts';

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

/** The factor of an agent's estimates: the last count of its provider divided by the estimate of that request. */

const ratios = (...drafts: NewEntry[]) => {
  const { state } = new Conversation(rulesFor(['pm', 'dev']), logOf(...drafts));
  return [tokenRatioOf(state, 'pm'), tokenRatioOf(state, 'dev')];
};
const answered = (author: typeof PM, inputTokens: number, more: object = {}): NewEntry =>
  said(author, 'ok', { usage: { inputTokens, outputTokens: 5 }, estimatedTokens: 1_000, ...more });
const reduced = (more: object = {}): NewEntry =>
  ({
    ...{ type: 'summary', author: PM, agent: 'pm', turnId: 'turn-0', entries: [[0, 0]] },
    ...{ fromIndex: 0, toIndex: 0, content: 'S', ...more },
  }) as NewEntry;

it('the token ratio is one as long as no provider reported usage', () => {
  expect(ratios(said(ALICE, 'hi'), said(PM, 'hello'))).toEqual([1, 1]);
});

it('the token ratio follows the newest report, and stays where there is none', () => {
  expect(ratios(answered(PM, 1_500))).toEqual([1.5, 1]);
  expect(ratios(answered(PM, 1_500), answered(PM, 2_500))).toEqual([2.5, 1]);
  expect(ratios(answered(PM, 2_500), answered(PM, 900))).toEqual([0.9, 1]);
  expect(ratios(answered(PM, 2_500), said(PM, 'silent'))).toEqual([2.5, 1]);
  expect(ratios(answered(PM, 2_500), answered(PM, 0))).toEqual([2.5, 1]);
});

it('the token ratio stays between 0.8 and 4: one wrong report does not end a conversation', () => {
  expect(ratios(answered(PM, 10))).toEqual([0.8, 1]);
  expect(ratios(answered(PM, 1_000_000))).toEqual([4, 1]);
});

it('the token ratio is separate for each agent, since each has its own model', () => {
  expect(ratios(answered(PM, 1_500), answered(DEV, 3_000), answered(PM, 1_200))).toEqual([1.2, 3]);
});

it('after a refusal as too long the token ratio is at least the reported one, until the next report', () => {
  const turn = [said(ALICE, 'go', { to: ['pm'] }), answered(PM, 1_500), started('pm', 0)];
  expect(ratios(...turn, reduced())).toEqual([1.5, 1]); // The window was full: the estimate was right.
  expect(ratios(...turn, reduced({ tokenRatio: 2.2 }))).toEqual([2.2, 1]);
  expect(ratios(...turn, reduced({ tokenRatio: 2.2 }), reduced())).toEqual([2.2, 1]);
  const next = answered(PM, 1_800, { turnId: 'turn-0' });
  expect(ratios(...turn, reduced({ tokenRatio: 2.2 }), next)).toEqual([1.8, 1]);
});
