import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createMemoryDisk } from '../../../src/persistence/memory/index.ts';
import { perTest } from '../../support/lifetime.ts';
import { namesOn } from '../../support/memory-disk.ts';
import { createWorld, type World } from './world.ts';

describe('a post', () => {
  const world = perTest(() => createWorld());

  it('of a conversation that was deleted since has no effect and no error when it is redelivered (POSTS-4)', async () => {
    const disk = createMemoryDisk();
    const first = createWorld({ disk });
    const old = [1, 2].map((n) => first.bus.delivery('alice', 'demo', { id: `m${n}`, content: 'secret' }));
    const other = first.bus.delivery('alice', 'other', 'stays');
    for (const delivery of [...old, other]) await first.posts.deliver(delivery);
    await first.workers.delete('demo');
    const later = first.bus.delivery('alice', 'demo', { id: 'm9', content: 'a new beginning' });
    await first.end(); // the position was never saved

    const second = createWorld({ disk });
    for (const delivery of [...old, other, later]) await second.posts.deliver(delivery);
    expect((await second.entries()).map(({ id }) => id)[0]).toBe('m9');
    expect((await second.entries()).some(({ id }) => id === 'm1' || id === 'm2')).toBe(false);
    expect((await second.entries('other')).filter(({ type }) => type === 'message').length).toBe(1);
    expect([...first.bus.dead, ...second.bus.dead]).toEqual([]);
    await second.end();
  });

  it('is not void after the deletion of a conversation that never existed', async () => {
    const disk = createMemoryDisk();
    const first = createWorld({ disk });
    await first.posts.deliver(first.bus.delivery('alice', 'demo', 'hello'));
    await first.workers.delete('never-there');
    await first.end();
    expect(namesOn(disk, 'deleted.')).toEqual([]);
  });

  it('a post that was acknowledged before a deletion and is read after it has no effect; a later one starts a new conversation', async () => {
    const unread = world.bus.delivery('alice', 'demo', { id: 'm1', content: 'secret' });
    expect(await world.request('delete', { conversation: 'demo' })).toMatchObject({
      body: { deleted: true, existed: true },
    });
    const later = world.bus.delivery('alice', 'demo', { id: 'm2', content: 'a new beginning' });
    await world.posts.deliver(unread);
    expect(await world.entries()).toEqual([]);
    await world.posts.deliver(later);
    const posted = (await world.entries()).filter(({ type }) => type === 'message');
    expect(posted.map(({ id }) => id)).toEqual(['m2']);
    expect(world.bus.dead).toEqual([]);
  });

  it('that another store settled is no conversation here, but a deletion covers it in a replay', async () => {
    const old = world.bus.delivery('alice', 'demo', { id: 'm1', content: 'secret' });
    world.runtime.progress.skips(({ sequence }) => sequence === old.position.sequence);
    expect(await world.request('delete', { conversation: 'demo' })).toMatchObject({
      body: { deleted: true, existed: false },
    });
    await world.posts.deliver(old);
    expect(await world.entries()).toEqual([]); // DELETE-1
    const later = world.bus.delivery('alice', 'demo', { id: 'm2', content: 'a new beginning' });
    expect(later.position.sequence).toBe(2);
    expect(await world.request('delete', { conversation: 'demo' })).toMatchObject({
      body: { deleted: true, existed: true },
    });
  });

  it('that is retried during the deletion of its conversation is deleted with it', async () => {
    vi.useFakeTimers();
    try {
      world.faults.push(new Error('no space left'));
      const trying = world.deliver({ id: 'm1', content: 'secret' });
      await vi.advanceTimersByTimeAsync(10);
      await world.workers.delete('demo');
      await vi.advanceTimersByTimeAsync(2_000);
      await trying;
      expect(await world.entries()).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('that began a conversation after the deletion was received is answered although the deletion is executed later (DELETE-2)', async () => {
    const asked = await world.runtime.lastPost('demo');
    const posting = world.deliver({ id: 'm1', content: 'a new beginning' });
    expect(await world.workers.delete('demo', asked)).toMatchObject({ existed: false }); // the post is being appended
    await posting;
    expect(await world.workers.delete('demo', asked)).toMatchObject({ existed: false }); // its turn runs
    await vi.waitFor(() => expect(world.calls.length).toBe(1));
    expect(world.calls[0]?.signal.aborted).toBe(false);
    world.calls[0]?.answer('noted');
    await vi.waitFor(async () =>
      expect(
        (await world.entries()).map((entry) => (entry.type === 'message' ? entry.content : null)),
      ).toContain('noted'),
    );
  });
});

it('a deletion of an unknown conversation is refused each time; one with an age limit is not', async () => {
  const world = createWorld();
  const nothing = { posts: 0, deadLetters: 0, isWhole: true };
  vi.spyOn(world.bus.bus.eraser, 'erase').mockResolvedValue(nothing);
  const request = { conversation: 'never-there' };
  for (let n = 0; n < 2; n++) {
    const refusal = { code: 'NOT_FOUND', message: 'there is no conversation never-there' };
    expect(await world.request('delete', request)).toMatchObject({ ok: false, refusal });
  }
  const lastEntryBefore = '2026-01-01T00:00:00Z';
  expect(await world.request('delete', { ...request, lastEntryBefore })).toMatchObject({
    body: { deleted: true, existed: false },
  });
  await world.end();
});

it('a deletion of a conversation that was deleted succeeds again', async () => {
  const world = createWorld();
  vi.spyOn(world.bus.bus.eraser, 'erase').mockResolvedValue({ posts: 0, deadLetters: 0, isWhole: true });
  await world.request('post', { conversation: 'demo', id: 'p', content: 'Hi', publisher: 'ann' });
  for (const existed of [true, false])
    expect(await world.request('delete', { conversation: 'demo' })).toMatchObject({
      body: { deleted: true, existed },
    });
  await world.end();
});

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
