import { afterEach, describe, expect, it } from 'vitest';
import { type LeaseHolder, leasedOwnership } from '../../../src/daemon/cluster/lease.ts';
import { createMemoryDisk } from '../../../src/persistence/memory/index.ts';
import { createWorld, postCommand, type World } from './world.ts';

/** One daemon of several, as its peers see it. No other daemon owns anything. */
const ALONE: LeaseHolder = {
  daemon: 'one',
  ingressLife: () => undefined,
  mayTakeOver: () => true,
  mayAct: async () => true,
  publishGivenUp: () => undefined,
};

describe('a claim', () => {
  let world: World;
  afterEach(() => world.end());

  it('is lost, and starts nothing, when another daemon appended after it before the answer arrived', async () => {
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

  it('that could not be decided does not block a request for the owner of the conversation', async () => {
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
