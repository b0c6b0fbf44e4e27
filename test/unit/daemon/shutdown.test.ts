import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Grace } from '../../../src/daemon/serve.ts';

describe('the grace period of a stop', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const never = new Promise<void>(() => undefined);

  it('is shared by all consecutive waits', async () => {
    const grace = new Grace(1_000);
    let over = '';
    const waiting = (async () => {
      await grace.within(never);
      over += 'posts ';
      await grace.within(never);
      over += 'turns';
    })();
    await vi.advanceTimersByTimeAsync(999);
    expect(over).toBe('');
    await vi.advanceTimersByTimeAsync(1);
    expect(over).toBe('posts turns');
    await waiting;
    expect(vi.getTimerCount()).toBe(0);
  });

  it('ends with the work, and leaves no timer', async () => {
    const grace = new Grace(1_000);
    await grace.within(Promise.resolve());
    grace.end();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('begins with the first wait', async () => {
    const grace = new Grace(1_000);
    await vi.advanceTimersByTimeAsync(5_000);
    let over = false;
    const waiting = grace.within(never).then(() => {
      over = true;
    });
    await vi.advanceTimersByTimeAsync(999);
    expect(over).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await waiting;
  });
});
