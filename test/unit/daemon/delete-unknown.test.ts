import { expect, it, vi } from 'vitest';
import { createWorld } from './world.ts';

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
