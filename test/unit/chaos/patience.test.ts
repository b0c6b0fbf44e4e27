import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ProgressTimeout } from '../../chaos/observe.ts';

describe('the time limit for outstanding work', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
  afterEach(() => void vi.useRealTimers());
  const pass = (ms: number) => void vi.advanceTimersByTime(ms);

  it('the wait ends after a time without new entries, and not while there are some', () => {
    const patience = new ProgressTimeout(1_000);
    for (let entries = 0; entries < 10; entries++) {
      pass(900);
      expect(patience.isOver(entries)).toBe(false);
    }
    pass(900);
    expect(patience.isOver(9)).toBe(false);
    pass(200);
    expect(patience.isOver(9)).toBe(true);
  });

  it('the wait has a total limit, as a team may continue for ever', () => {
    const patience = new ProgressTimeout(1_000);
    let entries = 0;
    while (!patience.isOver(entries++) && entries < 10_000) pass(900);
    expect(entries).toBeLessThan(10_000);
  });
});
