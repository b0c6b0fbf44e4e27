import { describe, expect, it, vi } from 'vitest';
import { Suspects } from '../../../src/daemon/cluster/suspects.ts';
import { tryAgain } from '../../../src/daemon/ingress/fatal-posts.ts';
import type { IngressPosition } from '../../../src/persistence/index.ts';

/** What several daemons know of posts that may have ended one of them. */
describe('a redelivered post when several daemons share the work', () => {
  const position = { stream: 's1', sequence: 7 };

  function share(marked: number | null = null) {
    const kept = { begun: marked, fault: null as Error | null };
    const marks = {
      async attempts() {
        if (kept.fault) throw kept.fault;
        return kept.begun;
      },
      async saveAttempts(_: IngressPosition, begun: number | null) {
        if (kept.fault) throw kept.fault;
        kept.begun = begun;
      },
    };
    const leaving = new AbortController();
    const giveUp = vi.fn(async () => true);
    const seen: (number | null)[] = [];
    const deliver = vi.fn(async () => void seen.push(kept.begun));
    const bring = async (isRepeated = true) => {
      const suspect = await new Suspects(marks).suspect(position, isRepeated);
      await (suspect ? tryAgain(suspect, deliver, giveUp, leaving.signal) : deliver());
    };
    return { kept, leaving, giveUp, deliver, seen, bring };
  }

  it('has a stored count while it is tried, and none after the daemon has survived it', async () => {
    const { bring, seen, kept } = share();
    await bring();
    expect(seen).toEqual([2]);
    await expect.poll(() => kept.begun).toBeNull();
  });

  it('is no suspect after a failed attempt that the daemon survived', async () => {
    const { bring, deliver, kept } = share();
    deliver.mockRejectedValueOnce(new Error('no room'));
    await expect(bring()).rejects.toThrow('no room');
    await expect.poll(() => kept.begun).toBeNull();
  });

  it('has its count read only when an earlier post may have one', async () => {
    const { bring, seen } = share();
    await bring(false);
    expect(seen).toEqual([null]);
  });

  it('continues the count of another daemon, and is given up after five attempts', async () => {
    const two = share(2);
    await two.bring();
    expect(two.seen).toEqual([3]);
    const five = share(5);
    await five.bring(false);
    expect(five.giveUp.mock.calls).toEqual([
      [{ code: 'DECISION_FAILED', message: expect.stringContaining('5 times'), hint: expect.any(String) }],
    ]);
    expect(five.seen).toEqual([]);
    await expect.poll(() => five.kept.begun).toBeNull();
  });

  it('is tried after five attempts too if it is in the log, which changes nothing', async () => {
    vi.useFakeTimers();
    const { bring, giveUp, seen, kept } = share(5);
    giveUp.mockResolvedValueOnce(false);
    const brought = bring();
    await vi.advanceTimersByTimeAsync(3_900);
    expect(seen).toEqual([]);
    await vi.advanceTimersByTimeAsync(200);
    await brought.finally(() => vi.useRealTimers());
    expect([seen, kept.begun]).toEqual([[6], null]);
  });

  it('is not tried when its count cannot be read or stored, or the daemon leaves', async () => {
    const { bring, kept, deliver } = share();
    kept.fault = new Error('no server');
    await expect(bring()).rejects.toThrow('no server');
    const leaves = share(4);
    leaves.leaving.abort();
    await expect(leaves.bring()).rejects.toMatchObject({ code: 'STOPPING' });
    expect([deliver.mock.calls, leaves.deliver.mock.calls]).toEqual([[], []]);
  });
});
