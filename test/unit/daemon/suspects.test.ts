import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createMemoryDisk } from '../../../src/persistence/memory/index.ts';
import { createWorld, type World } from './world.ts';

/** Of several daemons: `shared-posts.test.ts`. */
describe('a suspect of one daemon', () => {
  const position = { stream: 's1', sequence: 1 };
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

  /** The post as it is delivered by a daemon that finds so many attempts at it. */
  async function deliver(begun: number): Promise<void> {
    const posts = [{ sequence: position.sequence, begun }];
    world = createWorld({ disk, attempts: { stream: position.stream, posts } });
    const delivery = world.bus.delivery('alice', 'demo', { id: 'm1', content: 'hello' }, { position });
    await world.posts.deliver(delivery);
  }
  const messages = async () =>
    (await world.entries()).filter(({ type }) => type === 'message').map(({ id }) => id);

  it('becomes a dead letter after five attempts, which says why', async () => {
    await deliver(5);
    expect(world.bus.dead).toMatchObject([
      {
        refused: {
          code: 'DECISION_FAILED',
          message: 'the daemon ended while it decided on it, 5 times',
          hint: expect.stringContaining('report it'),
        },
      },
    ]);
    expect(await messages()).toEqual([]);
  });

  it('is no dead letter when the log has it', async () => {
    await deliver(0);
    await world.end();
    const again = deliver(5);
    await vi.advanceTimersByTimeAsync(10_000);
    await again;
    expect(world.bus.dead).toEqual([]);
    expect(await messages()).toEqual(['m1']);
  });

  it('is tried again before that, later', async () => {
    const trying = deliver(4);
    await vi.advanceTimersByTimeAsync(2_900);
    expect([...disk.logs.keys()]).toEqual([]);
    await vi.advanceTimersByTimeAsync(200);
    await trying;
    expect(await messages()).toEqual(['m1']);
  });

  it('does not wait when one attempt came to no end', async () => {
    await deliver(1);
    expect(await messages()).toEqual(['m1']);
  });

  it('stays in the stream when the daemon stops before it is tried', async () => {
    const trying = expect(deliver(4)).rejects.toMatchObject({ code: 'STOPPING' });
    await vi.advanceTimersByTimeAsync(10);
    world.shutdown.abort();
    await trying;
    expect([world.bus.dead, [...disk.logs.keys()]]).toEqual([[], []]);
  });
});
