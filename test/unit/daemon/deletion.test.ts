import { describe, expect, it, vi } from 'vitest';
import { createMemoryDisk } from '../../../src/persistence/memory/index.ts';
import { perTest } from '../../support/lifetime.ts';
import { namesOn } from '../../support/memory-disk.ts';
import { createWorld } from './world.ts';

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
