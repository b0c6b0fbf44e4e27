import { describe, expect, it } from 'vitest';
import { OpenWorkers } from '../../../src/daemon/conversations/open-workers.ts';
import type { ConversationWorker } from '../../../src/daemon/conversations/worker/worker.ts';

const NOW = 1_000_000;

async function withOpen(...workers: { id: string; length?: number; unusedMs?: number; isIdle?: boolean }[]) {
  const open = new OpenWorkers();
  for (const { id, length = 10, unusedMs = 1, isIdle = true } of workers) {
    const worker = { id, state: { length }, lastUsedAt: NOW - unusedMs, isIdle };
    open.add(id, Promise.resolve(worker as unknown as ConversationWorker));
  }
  await open.all();
  return open;
}

const named = (workers: readonly ConversationWorker[]) => workers.map(({ id }) => id);

describe('workers in memory', () => {
  it('may be evicted when they were idle for a minute', async () => {
    const open = await withOpen({ id: 'new' }, { id: 'old', unusedMs: 60_001 });
    expect(open.isFull).toBe(false);
    expect(named(open.idle(NOW))).toEqual(['old']);
  });

  it('may be evicted at once when there are many', async () => {
    const open = await withOpen(...Array.from({ length: 501 }, (_, n) => ({ id: `c${n}` })));
    expect([open.isFull, open.idle(NOW).length]).toEqual([true, 501]);
  });

  it('may be evicted when the logs of idle ones are long, the least recently used first', async () => {
    const open = await withOpen(
      { id: 'third', length: 100_000, unusedMs: 33_000 },
      { id: 'at-work', length: 900_000, isIdle: false },
      { id: 'first', length: 150_000, unusedMs: 31_000 },
      { id: 'second', length: 99_999, unusedMs: 32_000 },
      { id: 'fourth', unusedMs: 34_000 },
    );
    expect([open.isFull, named(open.idle(NOW))]).toEqual([true, ['third', 'fourth']]);
  });

  it('are not evicted while they are in use, however long their logs are', async () => {
    const open = await withOpen(
      { id: 'long', length: 900_000, unusedMs: 5_000 },
      { id: 'longer', length: 900_001, unusedMs: 19_000 },
    );
    expect([open.isFull, open.idle(NOW)]).toEqual([true, []]);
    open.delete('long');
    open.delete('longer');
    expect(open.isFull).toBe(false);
  });

  it('are removed when their log cannot be read', async () => {
    const open = await withOpen({ id: 'demo' });
    const failed = Promise.reject(new Error('damaged'));
    open.add('bad', failed);
    await expect(failed).rejects.toThrow('damaged');
    expect([named(await open.all()), open.opening('bad'), open.size]).toEqual([['demo'], undefined, 1]);
  });

  it('are not removed when an earlier opening that they replaced fails', async () => {
    const open = await withOpen();
    let reject = (_: Error): void => {};
    const promise = new Promise<ConversationWorker>((_, fail) => {
      reject = fail;
    });
    open.add('demo', promise);
    open.delete('demo');
    const again = Promise.resolve({ id: 'demo', state: { length: 1 } } as ConversationWorker);
    open.add('demo', again);
    reject(new Error('damaged'));
    await promise.catch(() => undefined);
    expect(open.opening('demo')).toBe(again);
  });
});
