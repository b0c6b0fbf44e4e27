import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createMemoryDisk } from '../../../src/persistence/memory/index.ts';
import { createWorld, postCommand, type World, type WorldOptions } from './world.ts';

const DAY = 86_400_000;
const START = Date.UTC(2026, 0, 1);

/** Sets the wall clock. Timers use a monotonic clock. */
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

  it('does not change the order of entries, which follows from their indexes', async () => {
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

  it.each([
    ['back', -DAY],
    ['forward', DAY],
  ])('does not change the remaining time of a turn when it is set %s', async (_, jump) => {
    const world: World = open({
      limits: { turnSeconds: 10 },
      now: () => (world?.happened.some((what) => what.startsWith('published')) ? START + jump : START),
    });
    await world.workers.submit('demo', postCommand('m1', 'hello'));
    await vi.advanceTimersByTimeAsync(9_000);
    const ended = async () => (await world.entries()).find((entry) => entry.type === 'turn-ended');
    expect(await ended()).toBeUndefined();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await ended()).toMatchObject({ outcome: 'limited' });
  });

  it.each([-DAY, DAY])(
    'does not change the measured duration of a call when it is set by %d ms',
    async (jump) => {
      let wall = START;
      let elapsed = 0;
      const world = open({ now: () => wall, elapsed: () => elapsed });
      await world.workers.submit('demo', postCommand('m1', 'hello'));
      wall += jump;
      elapsed += 1_500;
      world.calls[0]?.answer('hello yourself');
      await vi.waitFor(async () => expect((await world.workers.use('demo')).isIdle).toBe(true));
      const answer = (await world.entries()).find(
        (entry) => entry.type === 'message' && entry.role === 'assistant',
      );
      expect(answer).toMatchObject({ duration: 1_500 });
    },
  );

  it('does not change the working time of a turn, which excludes the time without a daemon', async () => {
    const disk = createMemoryDisk();
    const limits = { turnSeconds: 10 };
    let elapsed = 5_000_000;
    const before = open({ disk, limits, now: () => START, elapsed: () => elapsed });
    await before.workers.submit('demo', postCommand('m1', 'hello'));
    elapsed += 6_000;
    before.calls[0]?.answer(null, [{ id: 'x', name: 'none', arguments: '' }]);
    await vi.waitFor(() => expect(before.calls).toHaveLength(2));
    await worlds.pop()?.end();

    const after = open({ disk, limits, now: () => START + DAY, elapsed: () => 7 }); // a clock of its own
    await after.workers.recover();
    await vi.waitFor(() => expect(after.calls).toHaveLength(1));
    const ended = async () => (await after.entries()).find((entry) => entry.type === 'turn-ended');
    await vi.advanceTimersByTimeAsync(3_900);
    expect(await ended()).toBeUndefined();
    await vi.advanceTimersByTimeAsync(200);
    expect(await ended()).toMatchObject({ outcome: 'limited' });
  });

  it('does not delay the eviction of idle conversations, and evicts no busy one', async () => {
    let wall = START;
    let elapsed = 0;
    const world = open({ now: () => wall, elapsed: () => elapsed, reply: () => 'done' });
    await world.workers.recover();
    await world.workers.submit('demo', postCommand('m1', 'hello'));
    await vi.waitFor(async () => expect((await world.workers.use('demo')).isIdle).toBe(true));
    wall += DAY;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(world.workers.size).toBe(1);
    wall -= 2 * DAY;
    elapsed += 61_000;
    await vi.advanceTimersByTimeAsync(10_000);
    await vi.waitFor(() => expect(world.workers.size).toBe(0));
  });
});
