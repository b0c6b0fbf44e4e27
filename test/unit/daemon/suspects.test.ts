import { describe, expect, it, vi } from 'vitest';
import type { IngressDelivery } from '../../../src/bus/index.ts';
import { Suspects } from '../../../src/daemon/sharing/suspects.ts';
import type { IngressPosition } from '../../../src/persistence/index.ts';

/** What several daemons know of posts that may have ended one of them. */
describe('a post that comes again where several daemons share the work', () => {
  const delivery = { position: { stream: 's1', sequence: 7 } } as IngressDelivery;

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
    const guard = (isRepeated = true) =>
      new Suspects(marks, leaving.signal).guard(delivery, isRepeated, deliver, giveUp);
    return { kept, leaving, giveUp, deliver, seen, guard };
  }

  it('is marked while it is tried, and no more when the daemon has survived it', async () => {
    const { guard, seen, kept } = share();
    await guard();
    expect(seen).toEqual([2]);
    await expect.poll(() => kept.begun).toBeNull();
  });

  it('is no suspect any more though it failed: the daemon is there', async () => {
    const { guard, deliver, kept } = share();
    deliver.mockRejectedValueOnce(new Error('no room'));
    await expect(guard()).rejects.toThrow('no room');
    await expect.poll(() => kept.begun).toBeNull();
  });

  it('is only looked up where an earlier one may have been meant', async () => {
    const { guard, seen } = share();
    await guard(false);
    expect(seen).toEqual([null]);
  });

  it('counts on from what another daemon marked, and is given up after five', async () => {
    const two = share(2);
    await two.guard();
    expect(two.seen).toEqual([3]);
    const five = share(5);
    await five.guard(false);
    expect([five.giveUp.mock.calls, five.seen]).toEqual([[[5]], []]);
  });

  it('is not tried when its mark cannot be read or made, or the daemon leaves', async () => {
    const { guard, kept, deliver } = share();
    kept.fault = new Error('no server');
    await expect(guard()).rejects.toThrow('no server');
    const leaves = share(4);
    leaves.leaving.abort();
    await expect(leaves.guard()).rejects.toThrow('leaves');
    expect([deliver.mock.calls, leaves.deliver.mock.calls]).toEqual([[], []]);
  });
});
