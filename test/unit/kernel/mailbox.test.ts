import { describe, expect, it } from 'vitest';
import { Mailbox } from '../../../src/kernel/index.ts';
import { coalesce } from '../../../src/kernel/mailbox.ts';

describe('a mailbox', () => {
  it('items of one tick are handled together, and then all that waited meanwhile (MAILBOX-1)', async () => {
    const batches: number[][] = [];
    let running = 0;
    const gates: (() => void)[] = [];
    const mailbox = new Mailbox<number>(async (items) => {
      running++;
      expect(running).toBe(1);
      batches.push(items);
      await new Promise<void>((resolve) => gates.push(resolve));
      running--;
    });
    expect(mailbox.isIdle).toBe(true);
    mailbox.send(1);
    mailbox.send(2);
    expect(mailbox.isIdle).toBe(false);
    await expect.poll(() => gates.length).toBe(1);
    mailbox.send(3);
    mailbox.send(4);
    gates.shift()?.();
    await expect.poll(() => gates.length).toBe(1);
    gates.shift()?.();
    await mailbox.idle();
    expect(batches).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(mailbox.isIdle).toBe(true);
  });

  it('a handler may send items, and the mailbox is idle only after these', async () => {
    const seen: number[] = [];
    const mailbox: Mailbox<number> = new Mailbox(async ([first = 0]) => {
      seen.push(first);
      if (first < 3) mailbox.send(first + 1);
    });
    mailbox.send(1);
    await mailbox.idle();
    expect(seen).toEqual([1, 2, 3]);
    mailbox.send(9);
    await mailbox.idle();
    expect(seen).toEqual([1, 2, 3, 9]);
  });
});

/** Work whose runs the test ends. */
function steered(): { work: () => Promise<void>; runs: { end: (error?: Error) => void }[] } {
  const runs: { end: (error?: Error) => void }[] = [];
  const work = () =>
    new Promise<void>((resolve, reject) => {
      runs.push({ end: (error) => (error === undefined ? resolve() : reject(error)) });
    });
  return { work, runs };
}

describe('coalesce', () => {
  it('all calls during a run share one later run', async () => {
    const { work, runs } = steered();
    const request = coalesce(work);
    const first = request();
    const later = [request(), request(), request()];
    expect(runs).toHaveLength(1);
    runs[0]?.end();
    await first;
    await Promise.resolve();
    expect(runs).toHaveLength(2);
    runs[1]?.end();
    await Promise.all(later);
    expect(runs).toHaveLength(2);
  });

  it('a failed run fails only its own callers, and the others get a new run', async () => {
    const { work, runs } = steered();
    const request = coalesce(work);
    const first = request();
    const second = request();
    runs[0]?.end(new Error('disk'));
    await expect(first).rejects.toThrow('disk');
    await Promise.resolve();
    runs[1]?.end();
    await second;
    const third = request();
    runs[2]?.end();
    await third;
    expect(runs).toHaveLength(3);
  });
});
