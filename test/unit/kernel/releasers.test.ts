import { describe, expect, it } from 'vitest';
import { Releasers } from '../../../src/kernel/index.ts';

describe('releasers', () => {
  it('releases run one after the other in reverse order, also after a failure', async () => {
    const order: string[] = [];
    const releasers = new Releasers();
    releasers.add('first', () => void order.push('first'));
    releasers.add('second', async () => {
      order.push('second begins');
      await Promise.resolve();
      order.push('second ends');
      throw new Error('stuck');
    });
    releasers.add('third', () => {
      order.push('third');
      throw new Error('gone');
    });
    expect(await releasers.release()).toEqual(['third: gone', 'second: stuck']);
    expect(order).toEqual(['third', 'second begins', 'second ends', 'first']);
  });

  it('concurrent calls of release share one run', async () => {
    let count = 0;
    const releasers = new Releasers();
    releasers.add('one', () => void count++);
    const [first, second] = await Promise.all([releasers.release(), releasers.release()]);
    await releasers.release();
    expect([first, second, count]).toEqual([[], [], 1]);
  });
});
