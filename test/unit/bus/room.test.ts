import type { JetStreamManager } from 'nats';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CapacityGuard, capacityIn } from '../../../src/bus/nats/ingress/capacity-guard.ts';
import { recordingLog } from './support.ts';

/** The stream of posts is closed while it is full; its fullness is looked at while it matters (CAPACITY-GUARD-2, CAPACITY-GUARD-3). */
describe('the room of posts that wait', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  function stand() {
    const server = { isAway: false, looks: 0, bytes: 0, messages: 5, largest: -1, changes: [] as number[] };
    const manager = {
      streams: {
        info: async () => {
          server.looks += 1;
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
    const options = { stream: 'PARLEY_IN', log, room: 1_000 };
    const room = new CapacityGuard({ ...options, manager: manager as unknown as JetStreamManager });
    return { room, server, lines };
  }

  it('closes the stream when it holds so much, and opens it again when it holds less', async () => {
    const { room, server, lines } = stand();
    server.bytes = 999;
    await room.look();
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
      ['info', expect.stringMatching(/takes posts again/)],
    ]);
    await room.stop();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('looks at a stream that holds little when something is read, and seldom otherwise', async () => {
    const { room, server } = stand();
    await room.look();
    await vi.advanceTimersByTimeAsync(4_999);
    expect(server.looks).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(server.looks).toBe(2);
    room.stir();
    room.stir();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(server.looks).toBe(3);
    server.bytes = 63; // more than a sixteenth
    room.stir();
    await vi.advanceTimersByTimeAsync(3_000);
    expect(server.looks).toBe(6);
    await room.stop();
  });

  it('is not closed by one post alone, which may be the newest settled one', async () => {
    const { room, server } = stand();
    server.bytes = 5_000;
    server.largest = 1;
    await room.look();
    expect(server.changes).toEqual([]);
    server.messages = 1;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(server.changes).toEqual([-1]);
    await room.stop();
  });

  it('tries again until the server answers, and says so once', async () => {
    const { room, server, lines } = stand();
    server.isAway = true;
    server.bytes = 2_000;
    await room.look();
    await vi.advanceTimersByTimeAsync(3_000);
    expect(lines.map(({ message }) => message)).toEqual([expect.stringMatching(/cannot be seen/)]);
    server.isAway = false;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(server.changes).toEqual([1]);
    await room.stop();
  });

  it('opens a stream that another daemon left closed, at its first look', async () => {
    const { room, server } = stand();
    server.largest = 1;
    await room.look();
    expect(server.changes).toEqual([-1]);
    await room.stop();
  });

  it('is no more than a quarter of what the account may store', async () => {
    const { log, lines } = recordingLog();
    const account = (max_storage: number) =>
      ({ getAccountInfo: async () => ({ limits: { max_storage } }) }) as unknown as JetStreamManager;
    expect(await capacityIn(account(-1), 1_000, log)).toBe(1_000);
    expect(await capacityIn(account(4_000), 1_000, log)).toBe(1_000);
    expect(lines).toEqual([]);
    expect(await capacityIn(account(2_000), 1_000, log)).toBe(500);
    expect(lines.map(({ message }) => message)).toEqual([expect.stringMatching(/may store little/)]);
  });
});
