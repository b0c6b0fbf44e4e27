import type { JetStreamManager } from 'nats';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Purger } from '../../../src/bus/nats/ingress/purger.ts';
import { recordingLog } from './support.ts';

/** Settled posts are freed, however often the server does not answer (PURGER-3). */
describe('the purger of settled posts', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const LIFE = '2026-11-22T12:00:00Z';

  function stand() {
    const server = { isAway: true, looks: 0, purged: [] as number[] };
    const manager = {
      streams: {
        info: async () => {
          server.looks += 1;
          if (server.isAway) throw new Error('TIMEOUT');
          const state = { first_seq: 1, last_seq: 50, bytes: 100 };
          return { created: LIFE, state, config: {} };
        },
        purge: async (_: string, { seq }: { seq: number }) => void server.purged.push(seq),
      },
    };
    const { log, lines } = recordingLog();
    const options = { stream: 'PARLEY_IN', log, margin: 10, every: 1_000, maxBytes: 1_000 };
    const purger = new Purger({ ...options, manager: manager as unknown as JetStreamManager });
    return { purger, server, lines };
  }

  it('the purger retries until the server answers, and logs the failure once', async () => {
    const { purger, server, lines } = stand();
    purger.settledUpTo({ stream: LIFE, sequence: 30 });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(server.looks).toBeGreaterThan(3);
    expect(lines.map(({ message }) => message)).toEqual(['settled posts cannot be purged; retrying']);
    server.isAway = false;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(server.purged).toEqual([21]);
    expect(lines).toHaveLength(1);
    server.isAway = true; // another time
    purger.settledUpTo({ stream: LIFE, sequence: 31 });
    await vi.advanceTimersByTimeAsync(3_000);
    expect(lines).toHaveLength(2);
    await purger.stop();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('the purger removes posts that were settled after the last purge, even if no further post is read', async () => {
    const { purger, server } = stand();
    server.isAway = false;
    purger.settledUpTo({ stream: LIFE, sequence: 20 });
    await vi.advanceTimersByTimeAsync(0);
    purger.settledUpTo({ stream: LIFE, sequence: 40 });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(server.purged).toEqual([11, 31]);
    await purger.stop();
  });
});
