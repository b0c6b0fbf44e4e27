import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createMemoryDisk } from '../../../src/persistence/memory/index.ts';
import { perTest } from '../../support/lifetime.ts';
import { namesOn } from '../../support/memory-disk.ts';
import { createDaemon, type TestDaemon } from './daemon.ts';

describe('a post', () => {
  const daemon = perTest(() => createDaemon());

  it('of a conversation that was deleted since has no effect and no error when it is redelivered (POSTS-4)', async () => {
    const disk = createMemoryDisk();
    const first = createDaemon({ disk });
    const old = [1, 2].map((n) => first.bus.delivery('alice', 'demo', { id: `m${n}`, content: 'secret' }));
    const other = first.bus.delivery('alice', 'other', 'stays');
    for (const delivery of [...old, other]) await first.posts.deliver(delivery);
    await first.workers.delete('demo');
    const later = first.bus.delivery('alice', 'demo', { id: 'm9', content: 'a new beginning' });
    await first.end(); // the position was never saved

    const second = createDaemon({ disk });
    for (const delivery of [...old, other, later]) await second.posts.deliver(delivery);
    expect((await second.entries()).map(({ id }) => id)[0]).toBe('m9');
    expect((await second.entries()).some(({ id }) => id === 'm1' || id === 'm2')).toBe(false);
    expect((await second.entries('other')).filter(({ type }) => type === 'message').length).toBe(1);
    expect([...first.bus.dead, ...second.bus.dead]).toEqual([]);
    await second.end();
  });

  it('is not void after the deletion of a conversation that never existed', async () => {
    const disk = createMemoryDisk();
    const first = createDaemon({ disk });
    await first.posts.deliver(first.bus.delivery('alice', 'demo', 'hello'));
    await first.workers.delete('never-there');
    await first.end();
    expect(namesOn(disk, 'deleted.')).toEqual([]);
  });

  it('a post that was acknowledged before a deletion and is read after it has no effect; a later one starts a new conversation', async () => {
    const unread = daemon.bus.delivery('alice', 'demo', { id: 'm1', content: 'secret' });
    expect(await daemon.request('delete', { conversation: 'demo' })).toMatchObject({
      body: { deleted: true, existed: true },
    });
    const later = daemon.bus.delivery('alice', 'demo', { id: 'm2', content: 'a new beginning' });
    await daemon.posts.deliver(unread);
    expect(await daemon.entries()).toEqual([]);
    await daemon.posts.deliver(later);
    const posted = (await daemon.entries()).filter(({ type }) => type === 'message');
    expect(posted.map(({ id }) => id)).toEqual(['m2']);
    expect(daemon.bus.dead).toEqual([]);
  });

  it('that another store settled is no conversation here, but a deletion covers it in a replay', async () => {
    const old = daemon.bus.delivery('alice', 'demo', { id: 'm1', content: 'secret' });
    daemon.runtime.progress.isElsewhere = ({ sequence }) => sequence === old.position.sequence;
    expect(await daemon.request('delete', { conversation: 'demo' })).toMatchObject({
      body: { deleted: true, existed: false },
    });
    await daemon.posts.deliver(old);
    expect(await daemon.entries()).toEqual([]); // DELETE-1
    const later = daemon.bus.delivery('alice', 'demo', { id: 'm2', content: 'a new beginning' });
    expect(later.position.sequence).toBe(2);
    expect(await daemon.request('delete', { conversation: 'demo' })).toMatchObject({
      body: { deleted: true, existed: true },
    });
  });

  it('that is retried during the deletion of its conversation is deleted with it', async () => {
    vi.useFakeTimers();
    try {
      daemon.faults.push(new Error('no space left'));
      const trying = daemon.deliver({ id: 'm1', content: 'secret' });
      await vi.advanceTimersByTimeAsync(10);
      await daemon.workers.delete('demo');
      await vi.advanceTimersByTimeAsync(2_000);
      await trying;
      expect(await daemon.entries()).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('that began a conversation after the deletion was received is answered although the deletion is executed later (DELETE-2)', async () => {
    const asked = await daemon.runtime.lastPost('demo');
    const posting = daemon.deliver({ id: 'm1', content: 'a new beginning' });
    expect(await daemon.workers.delete('demo', asked)).toMatchObject({ existed: false }); // the post is being appended
    await posting;
    expect(await daemon.workers.delete('demo', asked)).toMatchObject({ existed: false }); // its turn runs
    await vi.waitFor(() => expect(daemon.calls.length).toBe(1));
    expect(daemon.calls[0]?.signal.aborted).toBe(false);
    daemon.calls[0]?.answer('noted');
    await vi.waitFor(async () =>
      expect(
        (await daemon.entries()).map((entry) => (entry.type === 'message' ? entry.content : null)),
      ).toContain('noted'),
    );
  });
});

it('a deletion of an unknown conversation is refused each time; one with an age limit is not', async () => {
  const daemon = createDaemon();
  const nothing = { posts: 0, deadLetters: 0, isWhole: true };
  vi.spyOn(daemon.bus.bus.eraser, 'erase').mockResolvedValue(nothing);
  const request = { conversation: 'never-there' };
  for (let n = 0; n < 2; n++) {
    const refusal = { code: 'NOT_FOUND', message: 'there is no conversation never-there' };
    expect(await daemon.request('delete', request)).toMatchObject({ ok: false, refusal });
  }
  const lastEntryBefore = '2026-01-01T00:00:00Z';
  expect(await daemon.request('delete', { ...request, lastEntryBefore })).toMatchObject({
    body: { deleted: true, existed: false },
  });
  await daemon.end();
});

it('a deletion of a conversation that was deleted succeeds again', async () => {
  const daemon = createDaemon();
  vi.spyOn(daemon.bus.bus.eraser, 'erase').mockResolvedValue({ posts: 0, deadLetters: 0, isWhole: true });
  await daemon.request('post', { conversation: 'demo', id: 'p', content: 'Hi', publisher: 'ann' });
  for (const existed of [true, false])
    expect(await daemon.request('delete', { conversation: 'demo' })).toMatchObject({
      body: { deleted: true, existed },
    });
  await daemon.end();
});

describe('the texts of a deleted conversation in the streams', () => {
  let daemon: TestDaemon;
  beforeEach(() => {
    vi.useFakeTimers();
    daemon = createDaemon();
  });
  afterEach(async () => {
    vi.useRealTimers();
    await daemon.end();
  });
  const remove = () => daemon.request('delete', { conversation: 'demo' });

  it('are erased up to the newest post that the deletion covers', async () => {
    await daemon.deliver('hello');
    daemon.runtime.progress.settledUpTo({ stream: 's1', sequence: 1 });
    expect(await remove()).toMatchObject({ body: { erased: { posts: 1 }, left: [] } });
    expect(daemon.bus.erased).toEqual([{ conversation: 'demo', stream: 's1', sequence: 1 }]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(daemon.bus.erased.length).toBe(1);
  });

  it('that are not settled yet are named in the answer and erased once they are (ERASURE-1)', async () => {
    await daemon.deliver('hello');
    expect(await remove()).toMatchObject({
      body: { left: ['posts in the stream that are not settled yet'] },
    });
    await vi.advanceTimersByTimeAsync(600);
    const tries = daemon.bus.erased.length;
    expect(tries).toBeGreaterThan(1);
    daemon.runtime.progress.settledUpTo({ stream: 's1', sequence: 1 });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(daemon.bus.erased.length).toBe(tries + 1);
  });

  it('stay for a later attempt when the server does not answer, and the deletion succeeds (ERASURE-2)', async () => {
    await daemon.deliver('hello');
    daemon.runtime.progress.settledUpTo({ stream: 's1', sequence: 1 });
    daemon.bus.control.erasing = new Error('no answer');
    expect(await remove()).toMatchObject({
      body: { deleted: true, left: ['posts and dead letters in the streams: no answer'] },
    });
    delete daemon.bus.control.erasing;
    const before = daemon.bus.erased.length;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(daemon.bus.erased.length).toBe(before + 1);
    expect(await daemon.entries()).toEqual([]);
  });

  it('are erased soon after a start at which the server did not answer (ERASURE-1)', async () => {
    const left = { conversation: 'old', stream: 's1', sequence: 1 };
    const { eraser } = daemon.bus.bus;
    const leftOf = vi.spyOn(eraser, 'leftOf').mockRejectedValueOnce(new Error('no answer'));
    leftOf.mockResolvedValueOnce([left]).mockResolvedValue([]);
    daemon.runtime.progress.settledUpTo(left);
    daemon.erasure.start();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(daemon.bus.erased).toEqual([left]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(leftOf).toHaveBeenCalledTimes(2);
  });

  it('do not change how many entries the answer names, whether the conversation is in memory or not', async () => {
    for (const isInMemory of [true, false]) {
      await daemon.deliver('hello');
      await vi.waitFor(() => expect(daemon.calls.length).toBe(isInMemory ? 1 : 2));
      daemon.calls.at(-1)?.answer('Hi.');
      await vi.waitFor(async () => expect((await daemon.entries()).at(-1)?.type).toBe('turn-ended'));
      const entries = (await daemon.entries()).length;
      if (!isInMemory) await daemon.workers.closeAll();
      expect(await remove()).toMatchObject({ body: { existed: true, erased: { entries } } });
    }
  });
});
