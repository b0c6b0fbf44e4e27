import { describe, expect, it } from 'vitest';
import { Mailbox } from '../../../src/daemon/conversations/worker/worker.ts';

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
