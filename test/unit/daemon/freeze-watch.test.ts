import { afterEach, describe, expect, it, vi } from 'vitest';
import { FreezeWatch } from '../../../src/daemon/cluster/self.ts';

describe('a daemon that watches the time', () => {
  const LONGEST_GAP_MS = 1_000;
  let watch: FreezeWatch | undefined;
  afterEach(() => {
    watch?.stop();
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  function startWatch() {
    vi.useFakeTimers();
    const ran = performance.now.bind(performance);
    let frozenMs = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => ran() + frozenMs);
    const freezes: number[] = [];
    watch = new FreezeWatch(LONGEST_GAP_MS, (milliseconds) => void freezes.push(milliseconds));
    const freeze = (milliseconds: number) => {
      frozenMs += milliseconds;
    };
    return { watch, freezes, freeze };
  }

  it('finds that it was frozen, once, and for how long', () => {
    const { freezes, freeze } = startWatch();
    vi.advanceTimersByTime(5 * LONGEST_GAP_MS);
    expect(freezes).toEqual([]);
    freeze(30_000);
    vi.advanceTimersByTime(5 * LONGEST_GAP_MS);
    expect(freezes).toEqual([expect.closeTo(30_000, -3)]);
  });

  it('takes what is shorter for a busy moment', () => {
    const { freezes, freeze } = startWatch();
    freeze(LONGEST_GAP_MS / 2);
    vi.advanceTimersByTime(LONGEST_GAP_MS);
    expect(freezes).toEqual([]);
  });

  it('knows of a freeze before any timer runs, when it is told to look', () => {
    const { watch, freezes, freeze } = startWatch();
    freeze(30_000);
    watch.look();
    watch.look();
    expect(freezes).toHaveLength(1);
  });
});
