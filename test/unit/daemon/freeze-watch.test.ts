import { afterEach, describe, expect, it, vi } from 'vitest';
import { FreezeWatch } from '../../../src/daemon/cluster/membership.ts';

describe('the freeze watch', () => {
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

  it('reports a freeze once, with its duration', () => {
    const { freezes, freeze } = startWatch();
    vi.advanceTimersByTime(5 * LONGEST_GAP_MS);
    expect(freezes).toEqual([]);
    freeze(30_000);
    vi.advanceTimersByTime(5 * LONGEST_GAP_MS);
    expect(freezes).toEqual([expect.closeTo(30_000, -3)]);
  });

  it('ignores a shorter gap', () => {
    const { freezes, freeze } = startWatch();
    freeze(LONGEST_GAP_MS / 2);
    vi.advanceTimersByTime(LONGEST_GAP_MS);
    expect(freezes).toEqual([]);
  });

  it('detects a freeze before any timer runs when it is checked', () => {
    const { watch, freezes, freeze } = startWatch();
    freeze(30_000);
    watch.check();
    watch.check();
    expect(freezes).toHaveLength(1);
  });
});
