import { expect, it } from 'vitest';
import { costOf, overBudget, reservationFor } from '../../../src/agents/index.ts';

const PRICE = {
  inputPerMillion: 10,
  cachedInputPerMillion: 1,
  cacheWritePerMillion: 12.5,
  outputPerMillion: 50,
};
const MANY = { ...PRICE, inputTokens: 200_000, inputPerMillion: 20, outputPerMillion: 100 };

it.each([
  ['input and output', { inputTokens: 1_000, outputTokens: 100 }, 0.01 + 0.005],
  ['reasoning, a part of output', { inputTokens: 0, outputTokens: 100, reasoningTokens: 90 }, 0.005],
  [
    'what a cache gave and took, parts of input',
    { inputTokens: 1_000, cachedInputTokens: 600, cacheWriteTokens: 300, outputTokens: 0 },
    0.001 + 0.0006 + 0.00375,
  ],
  ['a request of the limit of the higher price', { inputTokens: 200_000, outputTokens: 0 }, 2],
  [
    'a request above the limit, all at the higher price',
    { inputTokens: 200_001, outputTokens: 1_000 },
    4.10002,
  ],
])('a call costs the price of each kind of tokens: %s', (_, usage, usd) => {
  expect(costOf(usage, { ...PRICE, above: [MANY] })).toBeCloseTo(usd, 8);
});

it('what is written into a cache costs as other input if it has no price', () => {
  const { cacheWritePerMillion: _, ...price } = PRICE;
  expect(costOf({ inputTokens: 1_000, cacheWriteTokens: 1_000, outputTokens: 0 }, price)).toBeCloseTo(
    0.01,
    8,
  );
});

it('the reservation of a call covers a request that is written into a cache', () => {
  const usage = { inputTokens: 250_000, cacheWriteTokens: 250_000, outputTokens: 1_000 };
  for (const price of [PRICE, { ...PRICE, above: [MANY] }, { ...PRICE, cacheWritePerMillion: 1 }]) {
    const { usd } = reservationFor(250_000, 1_000, price);
    expect(usd).toBeGreaterThanOrEqual(costOf(usage, price));
    expect(usd).toBeGreaterThanOrEqual(costOf({ ...usage, cacheWriteTokens: 0 }, price));
  }
});

it('what a limit says has amounts with the same decimals', () => {
  const budget = { usedTokens: 0, usedUsd: 0.56, tokensPerConversation: null, usdPerConversation: 0.6 };
  expect(overBudget(budget, [{ tokens: 1, usd: 0.0501 }])?.message).toBe(
    '$0.5600 are spent, and the next call may take it to $0.6101; the limit is $0.6000',
  );
});
