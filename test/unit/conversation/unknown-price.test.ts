import { describe, expect, it } from 'vitest';
import { money, renderUsage, renderUsed } from '../../../src/cli/render/cost.ts';
import { money as consoleMoney } from '../../../src/console/model/format.ts';
import { type Entry, NOTHING_USED, usedTogether, usedWith } from '../../../src/conversation/index.ts';

const usage = { inputTokens: 10, outputTokens: 2 };

function call(more: Partial<Entry>): Entry {
  const author = { kind: 'agent', id: 'pm', name: 'Pam' };
  const entry = {
    index: 0,
    id: 'a',
    createdAt: '',
    type: 'message',
    role: 'assistant',
    author,
    requestHash: 'h',
  };
  return { ...entry, content: 'words', ...more } as Entry;
}

describe('the cost of model calls', () => {
  it.each([
    ['a price and usage', { usage: { ...usage, usd: 0.5 } }, 0],
    ['a price of zero', { usage: { ...usage, usd: 0 } }, 0],
    ['usage and no price', { usage }, 1],
    ['no usage', {}, 1],
    ['a failure without text', { partType: 'error', content: 'LLM_ERROR {}' }, 0],
    ['a failure after some text', { partType: 'error', content: 'Some\n\nLLM_ERROR {}' }, 1],
    ['a failure with usage and no price', { partType: 'error', usage }, 1],
  ])('a call with %s counts as one of unknown cost where the cost is not known', (_, more, unpricedCalls) => {
    const used = usedWith(NOTHING_USED, call(more as Partial<Entry>));
    expect(used).toMatchObject({ calls: 1, unpricedCalls });
    expect(usedTogether([used, used]).unpricedCalls).toBe(2 * unpricedCalls);
  });

  it('an unknown cost is shown as unknown, alone and beside a known one', () => {
    const unknown = usedWith(NOTHING_USED, call({ usage }));
    const both = usedWith(unknown, call({ usage: { ...usage, usd: 0.12 } }));
    expect(renderUsed(unknown)).toBe('1 call, 10 tokens in, 2 out, cost unknown');
    expect(renderUsed(both)).toBe('2 calls, 20 tokens in, 4 out, $0.1200 + unknown');
    expect(renderUsage(usage)).toBe('10 tokens in, 2 out, cost unknown');
    expect([money(0), money(0, 1), money(0.12, 1), money(0.12)]).toEqual([
      '-',
      'unknown',
      '$0.1200 + unknown',
      '$0.1200',
    ]);
    expect([consoleMoney(0), consoleMoney(0, 2), consoleMoney(0.12, 1)]).toEqual([
      '-',
      'unknown',
      '$0.12 + unknown',
    ]);
  });
});
