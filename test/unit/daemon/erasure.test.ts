import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createWorld, type World } from './world.ts';

describe('the texts of a deleted conversation in the streams', () => {
  let world: World;
  beforeEach(() => {
    vi.useFakeTimers();
    world = createWorld();
  });
  afterEach(async () => {
    vi.useRealTimers();
    await world.end();
  });
  const remove = () => world.request('delete', { conversation: 'demo' });

  it('are erased up to the newest post that the deletion covers', async () => {
    await world.deliver('hello');
    world.runtime.progress.settledUpTo({ stream: 's1', sequence: 1 });
    expect(await remove()).toMatchObject({ body: { erased: { posts: 1 }, left: [] } });
    expect(world.bus.erased).toEqual([{ conversation: 'demo', stream: 's1', sequence: 1 }]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(world.bus.erased.length).toBe(1);
  });

  it('that are not settled yet are named in the answer and erased once they are (ERASURE-1)', async () => {
    await world.deliver('hello');
    expect(await remove()).toMatchObject({
      body: { left: ['posts in the stream that are not settled yet'] },
    });
    await vi.advanceTimersByTimeAsync(600);
    const tries = world.bus.erased.length;
    expect(tries).toBeGreaterThan(1);
    world.runtime.progress.settledUpTo({ stream: 's1', sequence: 1 });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(world.bus.erased.length).toBe(tries + 1);
  });

  it('stay for a later attempt when the server does not answer, and the deletion succeeds (ERASURE-2)', async () => {
    await world.deliver('hello');
    world.runtime.progress.settledUpTo({ stream: 's1', sequence: 1 });
    world.bus.control.erasing = new Error('no answer');
    expect(await remove()).toMatchObject({
      body: { deleted: true, left: ['posts and dead letters in the streams: no answer'] },
    });
    delete world.bus.control.erasing;
    const before = world.bus.erased.length;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(world.bus.erased.length).toBe(before + 1);
    expect(await world.entries()).toEqual([]);
  });

  it('do not change how many entries the answer names, whether the conversation is in memory or not', async () => {
    for (const isInMemory of [true, false]) {
      await world.deliver('hello');
      await vi.waitFor(() => expect(world.calls.length).toBe(isInMemory ? 1 : 2));
      world.calls.at(-1)?.answer('Hi.');
      await vi.waitFor(async () => expect((await world.entries()).at(-1)?.type).toBe('turn-ended'));
      const entries = (await world.entries()).length;
      if (!isInMemory) await world.workers.closeAll();
      expect(await remove()).toMatchObject({ body: { existed: true, erased: { entries } } });
    }
  });
});
