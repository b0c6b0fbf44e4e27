import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EMPTY_STATE } from '../../../src/conversation/index.ts';
import { rowOf } from '../../../src/daemon/conversations/projections.ts';
import type { ConversationWorker } from '../../../src/daemon/conversations/worker/worker.ts';
import { OpenWorkers } from '../../../src/daemon/conversations/workers.ts';
import { createMemoryDisk, type MemoryDisk } from '../../../src/persistence/memory/index.ts';
import { namesOn } from '../../support/memory-disk.ts';
import { AMONG_OTHERS, claimingOwner, createDaemon, postCommand, type TestDaemon } from './daemon.ts';

describe('the conversations in memory', () => {
  let disk: MemoryDisk;
  let daemon: TestDaemon;
  beforeEach(() => {
    vi.useFakeTimers();
    disk = createMemoryDisk();
    daemon = createDaemon({ disk });
  });
  afterEach(async () => {
    await daemon.end();
    vi.useRealTimers();
  });

  it('are evicted when they are idle and have no outstanding work (WORKERS-2)', async () => {
    await daemon.workers.recover();
    await daemon.workers.submit('demo', postCommand('m1', 'hello'));
    const busy = await daemon.workers.use('demo');
    await vi.advanceTimersByTimeAsync(200_000);
    expect(await daemon.workers.use('demo')).toBe(busy); // its turn runs
    daemon.calls[0]?.answer('hi');
    await vi.advanceTimersByTimeAsync(200_000);
    expect(busy.isRetired).toBe(true);
    expect(namesOn(disk, 'open.')).toEqual([]);
    expect(disk.documents.get('row.demo')).toMatchObject({ id: 'demo', title: 'hello', length: 5 });
    expect(disk.documents.get('state.demo')).toMatchObject({ id: 'demo', length: 5 });

    const again = await daemon.workers.use('demo');
    expect(again).not.toBe(busy);
    expect(again.state.length).toBe(5);
    expect(await daemon.workers.submit('demo', postCommand('m1', 'hello'))).toMatchObject({
      duplicate: true,
    });
  });

  /** A conversation in memory whose turn has ended. */
  async function answered() {
    await daemon.workers.recover();
    await daemon.workers.submit('demo', postCommand('m1', 'hello'));
    daemon.calls[0]?.answer('hi');
    await vi.advanceTimersByTimeAsync(10);
    return daemon.workers.use('demo');
  }

  it('can be opened again when their row could not be saved at the eviction', async () => {
    const worker = await answered();
    const { store } = daemon.runtime;
    const saveRow = store.saveRow.bind(store);
    store.saveRow = async () => {
      throw new Error('no answer');
    };
    await vi.advanceTimersByTimeAsync(200_000);
    expect(worker.isRetired).toBe(true);
    expect(daemon.lines.join('\n')).toMatch(/warn a conversation list entry is stale.*demo.*no answer/);
    store.saveRow = saveRow;
    expect((await daemon.workers.use('demo')).state.length).toBe(5);
    expect(await daemon.workers.submit('demo', postCommand('m2', 'again'))).toMatchObject({ kind: 'posted' });
  });

  it('stay in memory while they are read (WORKERS-2)', async () => {
    const worker = await answered();
    for (let minute = 0; minute < 5; minute++) {
      await vi.advanceTimersByTimeAsync(50_000);
      expect(await daemon.workers.existing('demo')).toBe(worker);
    }
  });

  it('are opened once for concurrent callers (WORKERS-1)', async () => {
    const [first, second] = await Promise.all([daemon.workers.use('demo'), daemon.workers.use('demo')]);
    expect(first).toBe(second);
  });

  it('are compared with a shared log when they were in memory before, since one that is opened reads its log', async () => {
    const newest = vi.fn(async () => null);
    const { runtime } = daemon;
    Object.defineProperty(runtime.store, 'shared', { value: { newest } });
    Object.assign(runtime, { ownership: claimingOwner(AMONG_OTHERS, runtime.store) });
    await daemon.workers.current('demo', true);
    expect(newest).not.toHaveBeenCalled();
    await daemon.workers.current('demo', true);
    expect(newest).toHaveBeenCalledOnce();
  });

  it('can be opened during their deletion, and are then new and empty', async () => {
    await daemon.workers.submit('demo', postCommand('m1', 'hello'));
    const deleted = daemon.workers.delete('demo');
    const posted = daemon.workers.submit('demo', postCommand('m2', 'again'));
    const deletedAgain = daemon.workers.delete('demo');
    const posts = Promise.allSettled([posted, daemon.workers.submit('demo', postCommand('m3', 'and again'))]);
    await Promise.all([deleted, deletedAgain]);
    await posts;
    const entries = await daemon.entries();
    expect(entries.map(({ index }) => index)).toEqual(entries.map((_, at) => at));
    expect(entries.some(({ id }) => id === 'm1')).toBe(false);
  });

  it('that are deleted while a report waits for disk space retry nothing', async () => {
    await daemon.workers.submit('demo', postCommand('m1', 'hello'));
    daemon.faults.push(new Error('no space left'));
    daemon.calls[0]?.answer('hi');
    await vi.advanceTimersByTimeAsync(10);
    expect(daemon.lines.filter((line) => line.includes('could not be appended')).length).toBe(1);
    await daemon.workers.delete('demo');
    await vi.advanceTimersByTimeAsync(10_000);
    expect(vi.getTimerCount()).toBe(0);
    await daemon.workers.submit('demo', postCommand('m2', 'a new life'));
    await vi.advanceTimersByTimeAsync(10_000);
    expect((await daemon.entries()).map(({ type }) => type)).toEqual(['message', 'turn-started']);
  });

  it('are not closed when a new worker has replaced them meanwhile', async () => {
    await answered();
    await daemon.end();
    disk.documents.delete('row.demo'); // so that the next start opens it to make its row
    daemon = createDaemon({ disk });
    const { workers, runtime } = daemon;
    const anew: unknown[] = [];
    const saveRow = runtime.store.saveRow.bind(runtime.store);
    runtime.store.saveRow = async (row) => {
      if (anew.length === 0) {
        workers.drop(await workers.use('demo')); // another daemon has appended
        anew.push(await workers.use('demo'));
      }
      return saveRow(row);
    };
    await workers.rebuildRows();
    expect(await workers.use('demo')).toBe(anew[0]);
  });

  it('that could not be resumed on a full disk are resumed when they are opened', async () => {
    await daemon.workers.recover();
    await daemon.workers.submit('demo', postCommand('m1', 'hello'));
    await daemon.end();
    daemon = createDaemon({ disk });
    daemon.faults.push(new Error('no space left'));
    await daemon.workers.recover();
    expect(daemon.lines.join('\n')).toMatch(/error a conversation cannot be opened.*no space left/);
    expect(daemon.calls.length).toBe(0);
    expect((await daemon.workers.use('demo')).state.length).toBe(3);
    expect(daemon.calls.length).toBe(1);
  });

  it('are listed with their state in memory, the others with their stored row', async () => {
    await daemon.workers.submit('b', postCommand('m1', 'hello'));
    disk.documents.set('row.a', { ...EMPTY_ROW, id: 'a', length: 9 });
    disk.documents.set('row.b', { ...EMPTY_ROW, id: 'b', length: 1 });
    expect((await daemon.workers.rows()).map(({ id, length }) => [id, length])).toEqual([
      ['a', 9],
      ['b', 2],
    ]);
  });

  it('are listed by the same object until their stored row changes, so that a reader skips them', async () => {
    disk.documents.set('row.a', { ...EMPTY_ROW, id: 'a', length: 9 });
    const [before] = await daemon.workers.rows();
    expect((await daemon.workers.rows())[0]).toBe(before);
    disk.documents.set('row.a', { ...EMPTY_ROW, id: 'a', length: 10 });
    expect((await daemon.workers.rows())[0]).toMatchObject({ length: 10 });
  });

  it('that are missing in the list are rebuilt from their logs (L1)', async () => {
    await answered();
    await vi.advanceTimersByTimeAsync(200_000);
    disk.documents.delete('row.demo');
    await daemon.workers.rebuildRows();
    expect(namesOn(disk, 'row.')).toEqual(['demo']);
    expect((await daemon.workers.rows()).map(({ title }) => title)).toEqual(['hello']);
  });

  it('leave no timer after they are closed', async () => {
    await daemon.workers.recover();
    await daemon.workers.submit('demo', postCommand('m1', 'hello'));
    await daemon.workers.delete('demo');
    await daemon.end();
    expect(vi.getTimerCount()).toBe(0);
  });
});

const EMPTY_ROW = rowOf('', EMPTY_STATE, []);

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
