import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createMemoryDisk } from '../../../src/persistence/memory/index.ts';
import { createDaemon, postCommand, type TestDaemon, type TestDaemonOptions } from './daemon.ts';

const DAY = 86_400_000;
const START = Date.UTC(2026, 0, 1);

/** Sets the wall clock. Timers use a monotonic clock. */
describe('a clock that is set forward and back', () => {
  const daemons: TestDaemon[] = [];
  const open = (options: TestDaemonOptions) => {
    const daemon = createDaemon(options);
    daemons.push(daemon);
    return daemon;
  };
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  });
  afterEach(async () => {
    for (const daemon of daemons.splice(0)) await daemon.end();
    vi.useRealTimers();
  });

  it('does not change the order of entries, which follows from their indexes', async () => {
    const disk = createMemoryDisk();
    let asked = 0;
    const now = () => START + [0, -DAY, 5, DAY, -3 * DAY, 1][asked++ % 6]!;
    const options: TestDaemonOptions = {
      disk,
      now,
      reply: ({ messages }) => `answer to ${messages.at(-1)?.content}`,
    };
    const daemon = open(options);
    for (const id of ['m1', 'm2', 'm3', 'm4']) {
      await daemon.workers.submit('demo', postCommand(id, id));
      await vi.waitFor(async () => expect((await daemon.workers.use('demo')).isIdle).toBe(true));
    }
    const entries = [...(await daemon.entries())];
    expect(entries.map(({ index }) => index)).toEqual(entries.map((_, place) => place));
    const said = entries.flatMap((entry) => (entry.type === 'message' ? [entry.content] : []));
    expect(said).toEqual(['m1', 'm2', 'm3', 'm4'].flatMap((id) => [id, `answer to ${id}`]));
    await daemons.pop()?.end();
    expect(await open(options).entries()).toEqual(entries);
  });

  it.each([
    ['back', -DAY],
    ['forward', DAY],
  ])('does not change the remaining time of a turn when it is set %s', async (_, jump) => {
    const daemon: TestDaemon = open({
      limits: { turnSeconds: 10 },
      now: () => (daemon?.happened.some((what) => what.startsWith('published')) ? START + jump : START),
    });
    await daemon.workers.submit('demo', postCommand('m1', 'hello'));
    await vi.advanceTimersByTimeAsync(9_000);
    const ended = async () => (await daemon.entries()).find((entry) => entry.type === 'turn-ended');
    expect(await ended()).toBeUndefined();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await ended()).toMatchObject({ outcome: 'limited' });
  });

  it.each([-DAY, DAY])(
    'does not change the measured duration of a call when it is set by %d ms',
    async (jump) => {
      let wall = START;
      let elapsed = 0;
      const daemon = open({ now: () => wall, elapsed: () => elapsed });
      await daemon.workers.submit('demo', postCommand('m1', 'hello'));
      wall += jump;
      elapsed += 1_500;
      daemon.calls[0]?.answer('hello yourself');
      await vi.waitFor(async () => expect((await daemon.workers.use('demo')).isIdle).toBe(true));
      const answer = (await daemon.entries()).find(
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
    await daemons.pop()?.end();

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
    const daemon = open({ now: () => wall, elapsed: () => elapsed, reply: () => 'done' });
    await daemon.workers.recover();
    await daemon.workers.submit('demo', postCommand('m1', 'hello'));
    await vi.waitFor(async () => expect((await daemon.workers.use('demo')).isIdle).toBe(true));
    wall += DAY;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(daemon.workers.size).toBe(1);
    wall -= 2 * DAY;
    elapsed += 61_000;
    await vi.advanceTimersByTimeAsync(10_000);
    await vi.waitFor(() => expect(daemon.workers.size).toBe(0));
  });
});
