import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Attempts } from '../../../src/daemon/ingress/attempts.ts';
import { createMemoryDisk, createMemoryStore } from '../../../src/persistence/memory/index.ts';

describe('what the last daemon was deciding on when it ended', () => {
  const last = { stream: 's1', sequences: [4, 6] };
  const left = ({ attempts, ...more }: { attempts?: object; deciding?: null } = {}) => {
    const disk = createMemoryDisk();
    Object.assign(disk, { deciding: last }, more);
    if (attempts) disk.documents.set('attempts', attempts);
    return disk;
  };
  const count = (attempts: Attempts, ...sequences: number[]) =>
    sequences.map((sequence) => attempts.before({ stream: 's1', sequence }));

  it('counts once more, durably, and nothing else does', async () => {
    const known = { stream: 's1', posts: [{ sequence: 4, begun: 2 }] };
    const disk = left({ attempts: known });
    const attempts = await Attempts.open(createMemoryStore(disk));
    expect(count(attempts, 4, 5, 6)).toEqual([3, 0, 1]);
    expect(disk.deciding).toBeNull();
    expect(disk.documents.get('attempts')).toEqual({
      stream: 's1',
      posts: [
        { sequence: 4, begun: 3 },
        { sequence: 6, begun: 1 },
      ],
    });
  });

  it('counts in its own life of the stream', async () => {
    const disk = left({ attempts: { stream: 's0', posts: [{ sequence: 4, begun: 4 }] } });
    expect(count(await Attempts.open(createMemoryStore(disk)), 4, 6)).toEqual([1, 1]);
  });

  it('is nothing after any other end', async () => {
    const known = { stream: 's1', posts: [{ sequence: 4, begun: 2 }] };
    const disk = left({ deciding: null, attempts: known });
    expect(count(await Attempts.open(createMemoryStore(disk)), 4, 6)).toEqual([2, 0]);
    expect(disk.documents.get('attempts')).toEqual(known);
  });

  it('is not known to the one after that when this one survived it', async () => {
    const posts = Array.from({ length: 20 }, (_, n) => ({ sequence: n + 10, begun: 2 }));
    const disk = left({ attempts: { stream: 's1', posts } });
    const store = createMemoryStore(disk);
    const attempts = await Attempts.open(store);
    const save = vi.spyOn(store, 'saveIngressAttempts');
    for (let sequence = 1; sequence < 29; sequence++) attempts.survived({ stream: 's1', sequence });
    await expect
      .poll(() => disk.documents.get('attempts'))
      .toMatchObject({ posts: [{ sequence: 29, begun: 2 }] });
    expect(save).toHaveBeenCalledTimes(2); // the first, and all others at once
    await store.close();
    expect(count(await Attempts.open(createMemoryStore(disk)), 4, 6, 10, 29)).toEqual([0, 0, 0, 2]);
  });

  it('costs posts without a count no save', async () => {
    const store = createMemoryStore(left({ deciding: null }));
    const save = vi.spyOn(store, 'saveIngressAttempts');
    const attempts = await Attempts.open(store);
    attempts.readFrom('s1');
    attempts.survived({ stream: 's1', sequence: 4 });
    attempts.settledUpTo({ stream: 's1', sequence: 4 });
    expect(save).not.toHaveBeenCalled();
  });

  it('is survived all the same where that cannot be kept', async () => {
    const store = createMemoryStore(left());
    const attempts = await Attempts.open(store);
    const save = vi.spyOn(store, 'saveIngressAttempts');
    save.mockRejectedValue(new Error('ENOSPC: no space left'));
    attempts.survived({ stream: 's1', sequence: 4 });
    await expect.poll(() => save.mock.calls.length).toBe(1);
    expect(count(attempts, 4, 6)).toEqual([0, 1]);
  });

  it('is known to the next daemon where its count cannot be kept', async () => {
    const store = createMemoryStore(left());
    store.saveIngressAttempts = () => Promise.reject(new Error('ENOSPC: no space left'));
    expect(count(await Attempts.open(store), 4, 6)).toEqual([1, 1]);
  });
});

describe('suspects of one daemon', () => {
  const stopping = new AbortController();
  const suspect = (attempts: Attempts, sequence: number) =>
    attempts.suspect({ stream: 's1', sequence })?.again ?? expect.fail('it is no suspect');
  const withCounts = (...counts: number[]) => {
    const posts = counts.map((begun, n) => ({ sequence: n + 1, begun }));
    return new Attempts(createMemoryStore(), { stream: 's1', posts });
  };
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('are tried in the order in which their time comes, also where one of them takes long', async () => {
    const attempts = withCounts(4, 1, 3, 2, 2);
    const seen: number[] = [];
    const all = [1, 2, 3, 4, 5].map((sequence) =>
      suspect(attempts, sequence)(async () => {
        seen.push(sequence);
        if (sequence === 2) await new Promise((resolve) => setTimeout(resolve, 10_000));
      }, stopping.signal),
    );
    await vi.advanceTimersByTimeAsync(9_000);
    expect(seen).toEqual([2]);
    await vi.advanceTimersByTimeAsync(1_000);
    await Promise.all(all);
    expect(seen).toEqual([2, 4, 5, 3, 1]);
  });

  it('have waited since they came, though something else stood before them', async () => {
    const again = suspect(withCounts(3), 1);
    await vi.advanceTimersByTimeAsync(2_000);
    const attempt = vi.fn(async () => undefined);
    await again(attempt, stopping.signal);
    expect(attempt).toHaveBeenCalledOnce();
  });

  it('are not tried any more when the daemon is stopped while one is', async () => {
    const attempts = withCounts(1, 1);
    const stopped = new AbortController();
    let end = (): void => undefined;
    const first = suspect(attempts, 1)(() => new Promise((resolve) => (end = resolve)), stopped.signal);
    const attempt = vi.fn(async () => undefined);
    const second = expect(suspect(attempts, 2)(attempt, stopped.signal)).rejects.toMatchObject({
      code: 'STOPPING',
    });
    await vi.advanceTimersByTimeAsync(0);
    stopped.abort();
    end();
    await Promise.all([first, second]);
    expect(attempt).not.toHaveBeenCalled();
  });
});
