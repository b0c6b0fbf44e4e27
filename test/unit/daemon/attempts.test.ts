import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createMemoryDisk } from '../../../src/persistence/memory/index.ts';
import { createWorld, type World } from './world.ts';

/** N7 over restarts: what a world is left with when its process ends, the next one begins with. */
describe('a post that was there before the daemon', () => {
  const disk = createMemoryDisk();
  let world: World;
  beforeEach(() => {
    vi.useFakeTimers();
    Object.assign(disk, createMemoryDisk());
  });
  afterEach(async () => {
    vi.useRealTimers();
    await world.end();
  });

  const begin = (...posts: readonly { sequence: number; begun: number }[]) => {
    world = createWorld({ disk, ...(posts.length > 0 && { attempts: { stream: 's1', posts } }) });
  };
  const deliver = (sequence: number, conversation = 'demo', isOld = true) => {
    const body = { id: `m${sequence}`, content: `content ${sequence}` };
    const more = { position: { stream: 's1', sequence }, isOld };
    return world.posts.deliver(world.bus.delivery('alice', conversation, body, more));
  };
  const messages = async (conversation = 'demo') =>
    (await world.entries(conversation)).filter(({ type }) => type === 'message').map(({ id }) => id);
  const marks = () => disk.attempts?.posts;
  /** Each attempt, with what was marked by then. */
  function watchAttempts(): (readonly [string, unknown])[] {
    const seen: [string, unknown][] = [];
    world.happened.push = (...what: string[]) => {
      for (const one of what) if (one.startsWith('appended message')) seen.push([one, marks()]);
      return 0;
    };
    return seen;
  }

  it('is marked before it is tried, and one that comes now is not', async () => {
    begin();
    const seen = watchAttempts();
    await Promise.all([deliver(1), deliver(2, 'other'), deliver(3, 'third', false)]);
    expect(seen[0]?.[1]).toEqual([
      { sequence: 1, begun: 2 },
      { sequence: 2, begun: 2 },
    ]);
    expect(disk.logs.size).toBe(3);
    await deliver(4, 'fourth', false);
    expect(marks()).toHaveLength(2); // nothing was written for them
  });

  it('is not overtaken by a later one of its conversation', async () => {
    begin({ sequence: 2, begun: 2 });
    const all = [deliver(1), deliver(2), deliver(3), deliver(4, 'demo', false)];
    await vi.advanceTimersByTimeAsync(10_000);
    await Promise.all(all);
    expect(await messages()).toEqual(['m1', 'm2', 'm3', 'm4']);
  });

  it('is tried later and alone when it was marked, while others are served', async () => {
    begin({ sequence: 1, begun: 4 }, { sequence: 2, begun: 2 });
    const all = [deliver(1), deliver(2, 'second'), deliver(3, 'third')];
    await vi.advanceTimersByTimeAsync(100);
    expect([...disk.logs.keys()]).toEqual(['third']);
    const seen = watchAttempts();
    await vi.advanceTimersByTimeAsync(10_000);
    await Promise.all(all);
    expect([...disk.logs.keys()]).toEqual(['third', 'demo', 'second']);
    expect(seen[0]?.[1]).toContainEqual({ sequence: 1, begun: 5 });
    expect(seen[0]?.[1]).toContainEqual({ sequence: 2, begun: 2 }); // did not begin: counts nothing
    expect(seen[1]?.[1]).toEqual([{ sequence: 2, begun: 3 }]);
  });

  it('becomes a dead letter when five attempts came to no end, and its conversation goes on', async () => {
    begin({ sequence: 1, begun: 5 });
    await Promise.all([deliver(1), deliver(2)]);
    expect(world.bus.dead).toMatchObject([
      { refused: { code: 'DECISION_FAILED', message: expect.stringContaining('5 times') } },
    ]);
    expect(await messages()).toEqual(['m2']);
  });

  it('is no dead letter when it is in the log already', async () => {
    begin();
    await deliver(1);
    await world.end();
    begin({ sequence: 1, begun: 5 });
    const again = deliver(1);
    await vi.advanceTimersByTimeAsync(10_000);
    await again;
    expect(world.bus.dead).toEqual([]);
    expect(await messages()).toEqual(['m1']);
  });

  it('is not held responsible for a full disk', async () => {
    begin();
    world.faults.push(new Error('ENOSPC: no space left'));
    const waiting = deliver(1);
    await vi.advanceTimersByTimeAsync(100);
    await deliver(2, 'other');
    expect(marks()).toEqual([{ sequence: 2, begun: 2 }]);
    await vi.advanceTimersByTimeAsync(5_000);
    await waiting;
    expect(await messages()).toEqual(['m1']);
  });

  it('waits where its mark cannot be written, and what is behind it waits too', async () => {
    begin();
    let full = true;
    const { saveIngressAttempts: save } = world.runtime.store;
    world.runtime.store.saveIngressAttempts = (attempts) =>
      full ? Promise.reject(new Error('ENOSPC: no space left')) : save.call(world.runtime.store, attempts);
    const all = [deliver(1), deliver(2, 'demo', false)];
    await vi.advanceTimersByTimeAsync(1_500);
    full = false;
    expect(world.appends).toEqual([]);
    await vi.advanceTimersByTimeAsync(5_000);
    await Promise.all(all);
    expect(await messages()).toEqual(['m1', 'm2']);
  });

  it('stays unsettled when the daemon stops before its turn', async () => {
    begin({ sequence: 1, begun: 4 });
    const stopped = expect(deliver(1)).rejects.toMatchObject({ code: 'STOPPING' });
    await vi.advanceTimersByTimeAsync(10);
    world.shutdown.abort();
    await stopped;
    expect(world.bus.dead).toEqual([]);
  });

  it('is forgotten with the life of its stream, and when it is settled', async () => {
    begin({ sequence: 1, begun: 5 }, { sequence: 9, begun: 5 });
    const { attempts } = world.runtime;
    const place = (sequence: number, stream = 's1') => ({ position: { stream, sequence }, isOld: true });
    expect(attempts.before(place(1))).toBe(5);
    attempts.settledUpTo({ stream: 'other', sequence: 8 });
    attempts.settledUpTo({ stream: 's1', sequence: 8 });
    expect([1, 9].map((sequence) => attempts.before(place(sequence)))).toEqual([1, 5]);
    expect(attempts.before(place(9, 's2'))).toBe(1);
    await attempts.begin(place(3, 's2'), 2);
    expect(attempts.before(place(9))).toBe(1);
  });

  it('that fails to be decided on keeps its count for the next daemon', async () => {
    begin();
    const { rules } = world.runtime;
    Object.defineProperty(rules, 'phases', {
      get: () => {
        throw new TypeError('a bug');
      },
    });
    void deliver(1, 'demo', false).catch(() => undefined);
    await vi.advanceTimersByTimeAsync(2_500);
    expect(marks()).toEqual([{ sequence: 1, begun: 3 }]);
    world.shutdown.abort();
  });
});
