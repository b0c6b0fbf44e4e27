import type { JetStreamManager } from 'nats';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CapacityGuard, capacityIn } from '../../../src/bus/nats/ingress/capacity-guard.ts';
import { recordingLog } from './support.ts';

/** CAPACITY-GUARD-2, CAPACITY-GUARD-3 */
describe('the capacity guard', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  function setUp() {
    const server = { isAway: false, polls: 0, bytes: 0, messages: 5, largest: -1, changes: [] as number[] };
    const manager = {
      streams: {
        info: async () => {
          server.polls += 1;
          if (server.isAway) throw new Error('TIMEOUT');
          return {
            state: { bytes: server.bytes, messages: server.messages },
            config: { max_msg_size: server.largest },
          };
        },
        update: async (_: string, { max_msg_size }: { max_msg_size: number }) => {
          server.largest = max_msg_size;
          server.changes.push(max_msg_size);
        },
      },
    };
    const { log, lines } = recordingLog();
    const options = { stream: 'PARLEY_IN', log, maxBytes: 1_000 };
    const guard = new CapacityGuard({ ...options, manager: manager as unknown as JetStreamManager });
    return { guard, server, lines };
  }

  it('the guard closes the stream at its limit and reopens it at 75 %', async () => {
    const { guard, server, lines } = setUp();
    server.bytes = 999;
    await guard.poll();
    expect(server.changes).toEqual([]);
    server.bytes = 1_000;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(server.changes).toEqual([1]);
    server.bytes = 751;
    await vi.advanceTimersByTimeAsync(3_000);
    expect(server.changes).toEqual([1]);
    server.bytes = 750;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(server.changes).toEqual([1, -1]);
    expect(lines.map(({ level, message }) => [level, message])).toEqual([
      ['warn', expect.stringMatching(/is full/)],
      ['info', expect.stringMatching(/accepts posts again/)],
    ]);
    await guard.stop();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('the guard polls a nearly empty stream within a second of a read, and otherwise every 5 seconds', async () => {
    const { guard, server } = setUp();
    await guard.poll();
    await vi.advanceTimersByTimeAsync(4_999);
    expect(server.polls).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(server.polls).toBe(2);
    guard.noteRead();
    guard.noteRead();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(server.polls).toBe(3);
    server.bytes = 63; // more than a sixteenth
    guard.noteRead();
    await vi.advanceTimersByTimeAsync(3_000);
    expect(server.polls).toBe(6);
    await guard.stop();
  });

  it('the guard does not close the stream for a single post, which may be the newest settled one', async () => {
    const { guard, server } = setUp();
    server.bytes = 5_000;
    server.largest = 1;
    await guard.poll();
    expect(server.changes).toEqual([]);
    server.messages = 1;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(server.changes).toEqual([-1]);
    await guard.stop();
  });

  it('the guard retries until the server answers, and logs the failure once', async () => {
    const { guard, server, lines } = setUp();
    server.isAway = true;
    server.bytes = 2_000;
    await guard.poll();
    await vi.advanceTimersByTimeAsync(3_000);
    expect(lines.map(({ message }) => message)).toEqual([expect.stringMatching(/cannot be read/)]);
    server.isAway = false;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(server.changes).toEqual([1]);
    await guard.stop();
  });

  it('the guard reopens a stream that another daemon left closed at its first poll', async () => {
    const { guard, server } = setUp();
    server.largest = 1;
    await guard.poll();
    expect(server.changes).toEqual([-1]);
    await guard.stop();
  });

  it('the guard limits unprocessed posts to a quarter of the storage of the account', async () => {
    const { log, lines } = recordingLog();
    const account = (max_storage: number) =>
      ({ getAccountInfo: async () => ({ limits: { max_storage } }) }) as unknown as JetStreamManager;
    expect(await capacityIn(account(-1), 1_000, log)).toBe(1_000);
    expect(await capacityIn(account(4_000), 1_000, log)).toBe(1_000);
    expect(lines).toEqual([]);
    expect(await capacityIn(account(2_000), 1_000, log)).toBe(500);
    expect(lines.map(({ message }) => message)).toEqual([expect.stringMatching(/little storage/)]);
  });
});
