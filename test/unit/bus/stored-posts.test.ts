import { type JetStreamManager, NatsError } from 'nats';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ConnectionWatch } from '../../../src/bus/nats/connection/connection-life.ts';
import { fetchPost, isGone } from '../../../src/bus/nats/ingress/stored-posts.ts';
import { createSubjects } from '../../../src/bus/subjects.ts';
import { recordingLog } from './support.ts';

describe('a post of the backlog', () => {
  afterEach(() => void vi.useRealTimers());

  const missing = new NatsError('no message found', '404');
  missing.api_error = { code: 404, err_code: 10037, description: 'no message found' };

  /** A server that has the post, and finds it after this many requests. */
  function stand(failures: number) {
    const server = { asked: 0 };
    const stored = {
      subject: 'parley.in.a.b',
      seq: 5,
      data: new Uint8Array([1]),
      timestamp: '2026-11-22T12:00:00Z',
    };
    const streams = {
      getMessage: async () => {
        server.asked += 1;
        if (server.asked <= failures) throw missing;
        return stored;
      },
      info: async () => ({ state: { first_seq: 5, last_seq: 9 } }),
    };
    const { log, lines } = recordingLog();
    const sources = {
      manager: { streams } as unknown as JetStreamManager,
      subjects: createSubjects(),
      log,
      watch: { connected: async () => true } as unknown as ConnectionWatch,
    };
    return {
      posts: { fetch: (sequence: number) => fetchPost(sources, sequence, new AbortController().signal) },
      server,
      lines,
    };
  }

  it('a post is read again when the server first answers "not found" although it has the post', async () => {
    const { posts, server } = stand(2);
    expect(await posts.fetch(5)).toMatchObject({ sequence: 5 });
    expect(server.asked).toBe(3);
  });

  it('a post that the server cannot read is skipped with an error in the log, so that later posts continue', async () => {
    vi.useFakeTimers();
    const { posts, lines } = stand(Number.POSITIVE_INFINITY);
    const fetched = posts.fetch(5);
    await vi.advanceTimersByTimeAsync(59_000);
    expect(await Promise.race([fetched, Promise.resolve('waits')])).toBe('waits');
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await fetched).toBeNull();
    expect(lines.at(-1)).toMatchObject({ level: 'error', message: expect.stringMatching(/cannot read/) });
  });
});

/** A server that does not find a message may still have it. */
describe('a message that is not found', () => {
  const serverWith = (info: () => object): JetStreamManager =>
    ({ streams: { info: async () => info() } }) as unknown as JetStreamManager;
  const holding = serverWith(() => ({ state: { first_seq: 5, last_seq: 9, deleted: [7] } }));

  it.each([
    [4, true],
    [5, false],
    [7, true],
    [9, false],
    [10, true],
  ])('message %i of a stream with 5 to 9 without 7 is gone: %s', async (sequence, gone) => {
    expect(await isGone(holding, 'PARLEY_IN', sequence)).toBe(gone);
  });

  it('a message exists if the server does not list it as deleted', async () => {
    const whole = serverWith(() => ({ state: { first_seq: 1, last_seq: 2 } }));
    expect(await isGone(whole, 'PARLEY_IN', 2)).toBe(false);
  });

  it('a message is gone if its stream is missing, but not if the server does not answer', async () => {
    const missing = new NatsError('stream not found', '404');
    missing.api_error = { code: 404, err_code: 10059, description: 'stream not found' };
    const failing = (error: Error) =>
      serverWith(() => {
        throw error;
      });
    expect(await isGone(failing(missing), 'PARLEY_IN', 1)).toBe(true);
    await expect(isGone(failing(new Error('TIMEOUT')), 'PARLEY_IN', 1)).rejects.toThrow('TIMEOUT');
  });
});
