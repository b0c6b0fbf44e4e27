import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createMemoryDisk } from '../../../src/persistence/memory/index.ts';
import { createWorld, postCommand, type World, type WorldOptions } from './world.ts';

const DAY = 86_400_000;
const START = Date.UTC(2026, 0, 1);

/** Somebody sets the clock on the wall; timers have their own. */
describe('a clock that is set forward and back', () => {
  const worlds: World[] = [];
  const open = (options: WorldOptions) => {
    const world = createWorld(options);
    worlds.push(world);
    return world;
  };
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  });
  afterEach(async () => {
    for (const world of worlds.splice(0)) await world.end();
    vi.useRealTimers();
  });

  it('changes no order: that comes from the indexes', async () => {
    const disk = createMemoryDisk();
    let asked = 0;
    const now = () => START + [0, -DAY, 5, DAY, -3 * DAY, 1][asked++ % 6]!;
    const options: WorldOptions = {
      disk,
      now,
      reply: ({ messages }) => `answer to ${messages.at(-1)?.content}`,
    };
    const world = open(options);
    for (const id of ['m1', 'm2', 'm3', 'm4']) {
      await world.workers.submit('demo', postCommand(id, id));
      await vi.waitFor(async () => expect((await world.workers.use('demo')).isIdle).toBe(true));
    }
    const entries = [...(await world.entries())];
    expect(entries.map(({ index }) => index)).toEqual(entries.map((_, place) => place));
    const said = entries.flatMap((entry) => (entry.type === 'message' ? [entry.content] : []));
    expect(said).toEqual(['m1', 'm2', 'm3', 'm4'].flatMap((id) => [id, `answer to ${id}`]));
    await worlds.pop()?.end();
    expect(await open(options).entries()).toEqual(entries);
  });

  it('gives a turn no more time than it has', async () => {
    const world: World = open({
      limits: { turnSeconds: 10 },
      now: () => (world?.happened.some((what) => what.startsWith('published')) ? START - DAY : START),
    });
    await world.workers.submit('demo', postCommand('m1', 'hello'));
    await vi.advanceTimersByTimeAsync(11_000);
    const ended = (await world.entries()).find((entry) => entry.type === 'turn-ended');
    expect(ended).toMatchObject({ outcome: 'limited' });
  });

  it('keeps no conversation in memory that rests', async () => {
    let wall = START;
    const world = open({ now: () => wall, reply: () => 'done' });
    await world.workers.recover();
    await world.workers.submit('demo', postCommand('m1', 'hello'));
    await vi.waitFor(async () => expect((await world.workers.use('demo')).isIdle).toBe(true));
    wall -= DAY;
    await vi.advanceTimersByTimeAsync(10_000);
    const { open: inMemory } = world.workers as unknown as { open: Map<string, unknown> };
    await vi.waitFor(() => expect(inMemory.size).toBe(0));
  });
});
