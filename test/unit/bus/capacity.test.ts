import type { JetStreamManager } from 'nats';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Capacity, capacityIn } from '../../../src/bus/nats/ingress/capacity.ts';
import { recordingLog } from './support.ts';

describe('the capacity of the ingress stream', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const LIFE = '2026-11-22T12:00:00Z';

  function setUp() {
    const server = {
      ...{ isAway: false, looks: 0, bytes: 0, messages: 5, largest: -1 },
      ...{ changes: [] as number[], purged: [] as number[], first: 1 },
    };
    const manager = {
      streams: {
        info: async () => {
          server.looks += 1;
          if (server.isAway) throw new Error('TIMEOUT');
          const { bytes, messages, first: first_seq } = server;
          const state = { bytes, messages, first_seq, last_seq: 50 };
          return { created: LIFE, state, config: { max_msg_size: server.largest } };
        },
        update: async (_: string, { max_msg_size }: { max_msg_size: number }) => {
          server.largest = max_msg_size;
          server.changes.push(max_msg_size);
        },
        purge: async (_: string, { seq }: { seq: number }) => {
          server.purged.push(seq);
          server.first = seq;
        },
      },
    };
    const { log, lines } = recordingLog();
    const options = { stream: 'PARLEY_IN', log, maxBytes: 1_000, margin: 10 };
    const capacity = new Capacity({ ...options, manager: manager as unknown as JetStreamManager });
    return { capacity, server, lines };
  }

  it('the stream is closed at its limit and reopened at 75 % (CAPACITY-2)', async () => {
    const { capacity, server, lines } = setUp();
    server.bytes = 999;
    await capacity.look();
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
    await capacity.stop();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('the stream is not closed for a single post, which may be the newest settled one (CAPACITY-2)', async () => {
    const { capacity, server } = setUp();
    server.bytes = 5_000;
    server.largest = 1;
    await capacity.look();
    expect(server.changes).toEqual([]);
    server.messages = 1;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(server.changes).toEqual([-1]);
    await capacity.stop();
  });

  it('a stream that another daemon left closed is reopened at the first look', async () => {
    const { capacity, server } = setUp();
    server.largest = 1;
    await capacity.look();
    expect(server.changes).toEqual([-1]);
    await capacity.stop();
  });

  it('settled posts are removed within a second, also if no further post is read, and a margin of them stays (CAPACITY-4)', async () => {
    const { capacity, server } = setUp();
    await capacity.look();
    capacity.settledUpTo({ stream: LIFE, sequence: 20 });
    await vi.advanceTimersByTimeAsync(1_000);
    capacity.settledUpTo({ stream: LIFE, sequence: 40 });
    await vi.advanceTimersByTimeAsync(2_000);
    expect(server.purged).toEqual([11, 31]);
    await capacity.stop();
  });

  it('while the stream is more than half full, fewer settled posts stay, and never none (CAPACITY-5)', async () => {
    const { capacity, server } = setUp();
    server.bytes = 600;
    capacity.settledUpTo({ stream: LIFE, sequence: 40 });
    await capacity.look();
    expect(server.purged).toEqual([31, 36, 39, 40]);
    await capacity.stop();
  });

  it('nothing is removed from a stream that was created again, or that lost its end (CAPACITY-4)', async () => {
    const { capacity, server } = setUp();
    for (const position of [
      { stream: 'an earlier one', sequence: 40 },
      { stream: LIFE, sequence: 51 },
    ]) {
      capacity.settledUpTo(position);
      await capacity.look();
    }
    expect(server.purged).toEqual([]);
    await capacity.stop();
  });

  it('a look is repeated until the server answers, and each failure is logged once', async () => {
    const { capacity, server, lines } = setUp();
    server.isAway = true;
    server.bytes = 2_000;
    capacity.settledUpTo({ stream: LIFE, sequence: 30 });
    await capacity.look();
    await vi.advanceTimersByTimeAsync(3_000);
    expect(server.looks).toBe(4);
    expect(lines.map(({ message }) => message)).toEqual([expect.stringMatching(/retrying/)]);
    server.isAway = false;
    await vi.advanceTimersByTimeAsync(1_000);
    expect([server.changes, server.purged[0]]).toEqual([[1], 21]);
    server.isAway = true; // another time
    await vi.advanceTimersByTimeAsync(3_000);
    expect(lines.filter(({ message }) => message.includes('retrying'))).toHaveLength(2);
    await capacity.stop();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('unprocessed posts may have a quarter of the storage of the account', async () => {
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
