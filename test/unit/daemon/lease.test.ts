import { afterEach, describe, expect, it } from 'vitest';
import { leasedOwnership } from '../../../src/daemon/cluster/lease.ts';
import type { Self } from '../../../src/daemon/cluster/self.ts';
import { createMemoryDisk } from '../../support/memory-store/memory-store.ts';
import { createWorld, postCommand, type World } from './world.ts';

/** One daemon of several, as others know it; nobody else has anything. */
const ALONE: Self = {
  daemon: 'one',
  ingressLife: () => undefined,
  mayTakeOver: () => true,
  mayAct: async () => true,
  gaveUp: () => undefined,
};

describe('a claim', () => {
  let world: World;
  afterEach(() => world.end());

  it('is over, and starts nothing, when others have appended behind its append before its answer came', async () => {
    world = createWorld();
    const { runtime, workers } = world;
    Object.assign(runtime, { ownership: leasedOwnership(ALONE) });
    world.faults.push({ kind: 'appended', length: 9 }); // the log's own length says otherwise
    await expect(workers.submit('demo', postCommand('m1', 'hello'))).rejects.toMatchObject({
      code: 'CONVERSATION_MOVED',
    });
    expect(world.calls).toEqual([]);
    expect(workers.holds('demo')).toBe(false);
  });

  it('that could not be decided is over: who asks whose the conversation is is answered', async () => {
    const disk = createMemoryDisk();
    world = createWorld({ disk });
    await world.workers.submit('demo', postCommand('m1', 'hello'));
    await world.end();
    world = createWorld({ disk });
    const { runtime, workers } = world;
    Object.assign(runtime, { ownership: leasedOwnership(ALONE) });
    const { toolRecords } = runtime.store;
    const read = toolRecords.read.bind(toolRecords);
    toolRecords.read = () => Promise.reject(new Error('the server fell silent'));
    const claim = { type: 'claim', daemon: 'one', audited: [] } as const;
    await workers.use('demo');
    await expect(workers.submit('demo', claim)).rejects.toThrow('the server fell silent');
    expect(await workers.willHold('demo')).toBe(false);
    toolRecords.read = read;
    await workers.submit('demo', claim);
    expect(await workers.willHold('demo')).toBe(true);
  });
});
