import { afterEach, describe, expect, it, vi } from 'vitest';
import { createMemoryDisk } from '../../../src/persistence/memory/index.ts';
import { AMONG_OTHERS, claimingOwner, createDaemon, postCommand, type TestDaemon } from './daemon.ts';

describe('a claim', () => {
  let daemon: TestDaemon;
  afterEach(() => daemon.end());

  it('is lost, and starts nothing, when another daemon appended after it before the answer arrived', async () => {
    daemon = createDaemon();
    const { runtime, workers } = daemon;
    Object.assign(runtime, { ownership: claimingOwner(AMONG_OTHERS, runtime.store) });
    daemon.faults.push({ kind: 'appended', length: 9 }); // the log's own length says otherwise
    await expect(workers.submit('demo', postCommand('m1', 'hello'))).rejects.toMatchObject({
      code: 'CONVERSATION_MOVED',
    });
    expect(daemon.calls).toEqual([]);
    expect(workers.holds('demo')).toBe(false);
  });

  it('is kept when a reader asked the server before it was appended, and is answered afterwards', async () => {
    daemon = createDaemon();
    const { runtime, workers } = daemon;
    Object.assign(runtime, { ownership: claimingOwner(AMONG_OTHERS, runtime.store) });
    let answerLate = () => {};
    const newest = vi.fn(async () => null);
    newest.mockReturnValueOnce(
      new Promise((resolve) => {
        answerLate = () => resolve(null);
      }),
    );
    Object.defineProperty(runtime.store, 'shared', { value: { newest } });
    const worker = await workers.use('demo');
    const reading = workers.current('demo');
    await expect.poll(() => newest.mock.calls.length).toBe(1);
    await workers.submit('demo', postCommand('m1', 'hello'));
    answerLate(); // the log was empty
    expect(await reading).toBe(worker);
    expect(worker.isRetired).toBe(false);
    await expect.poll(() => daemon.calls.length).toBe(1);
  });

  it('that could not be decided does not block a request for the owner of the conversation', async () => {
    const disk = createMemoryDisk();
    daemon = createDaemon({ disk });
    await daemon.workers.submit('demo', postCommand('m1', 'hello'));
    await daemon.end();
    daemon = createDaemon({ disk });
    const { runtime, workers } = daemon;
    Object.assign(runtime, { ownership: claimingOwner(AMONG_OTHERS, runtime.store) });
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
