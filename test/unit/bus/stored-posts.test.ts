import { type JetStreamManager, type Msg, type NatsConnection, NatsError } from 'nats';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ConnectionWatch } from '../../../src/bus/nats/connection/connection.ts';
import { handOverSkipped } from '../../../src/bus/nats/ingress/flood.ts';
import {
  fetchPost,
  isGone,
  nanosecondsOf,
  parseAckSubject,
  StreamConsumer,
  type StreamMessage,
} from '../../../src/bus/nats/ingress/stored-posts.ts';
import { createSubjects } from '../../../src/bus/subjects.ts';
import { isAtLeast } from '../../../src/kernel/index.ts';
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

describe('the sequence and time of a message', () => {
  const place = { deliveries: 2, sequence: 12, consumerSequence: 3, time: 1795303627396687444n };

  it('sequence and time are parsed from both forms of the reply subject, to the nanosecond', () => {
    expect(parseAckSubject('$JS.ACK.PARLEY_IN.reader.2.12.3.1795303627396687444.0')).toEqual(place);
    expect(parseAckSubject('$JS.ACK.hub.ACC.PARLEY_IN.reader.2.12.3.1795303627396687444.0')).toEqual(place);
    expect(parseAckSubject('$JS.ACK._.ACC.PARLEY_IN.reader.2.12.3.1795303627396687444.0.random')).toEqual(
      place,
    );
  });

  it.each([undefined, '', '_INBOX.x', '$JS.ACK.a.b.1.x.3.4.0', '$JS.ACK.a.b'])(
    'the subject %j has no sequence',
    (reply) => {
      expect(parseAckSubject(reply)).toBeNull();
    },
  );

  it('sequence and time of a stored message are the same, although its time has no trailing zeros', () => {
    const seconds = BigInt(Date.parse('2026-11-21T23:27:07Z')) * 1_000_000n;
    expect(nanosecondsOf('2026-11-21T23:27:07.395702905Z')).toBe(seconds + 395_702_905n);
    expect(nanosecondsOf('2026-11-21T23:27:07.3957Z')).toBe(seconds + 395_700_000n);
    expect(nanosecondsOf('2026-11-21T23:27:07Z')).toBe(seconds);
    expect(nanosecondsOf('yesterday')).toBeNull();
  });

  it.each([
    ['2.9.10', false],
    ['2.10.9', false],
    ['2.10.27', true],
    ['2.10.28-RC.1', true],
    ['2.11.0', true],
    ['3.0.0', true],
  ])('the version %s is compared with 2.10.27', (version, answer) => {
    expect(isAtLeast(version, [2, 10, 27])).toBe(answer);
  });
});

function handed(from: number, last: number, others: readonly number[]): string[] {
  const order: string[] = [];
  const messages = others.map((sequence) => ({ sequence }) as StreamMessage);
  handOverSkipped(
    from,
    { last, others: messages },
    (sequence) => order.push(`refused ${sequence}`),
    ({ sequence }) => order.push(`taken ${sequence}`),
  );
  return order;
}

describe('a skipped part of the ingress stream (SKIP-2)', () => {
  it('the posts of others between two refused posts that represent a skipped range are delivered', () => {
    expect(handed(5, 100, [50, 7])).toEqual(['refused 5', 'taken 7', 'taken 50', 'refused 100']);
  });

  it('no post of another publisher at the ends of a skipped range is refused', () => {
    expect(handed(5, 10, [5, 6, 10])).toEqual(['taken 5', 'taken 6', 'refused 7', 'refused 9', 'taken 10']);
  });

  it('a single post is refused once, and none if all posts are of others', () => {
    expect(handed(5, 6, [5])).toEqual(['taken 5', 'refused 6']);
    expect(handed(5, 6, [5, 6])).toEqual(['taken 5', 'taken 6']);
  });
});

it('a "batch completed" status after the last message of a pull does not end the consumer', async () => {
  let inbox = '';
  let hear: (message: Partial<Msg>) => void = () => undefined;
  const connection = {
    options: {},
    publish: () => undefined,
    isClosed: () => true,
    subscribe(subject: string, { callback }: { callback: (error: null, message: Msg) => void }) {
      inbox = subject;
      hear = (message) => callback(null, message as Msg);
      return { unsubscribe: () => undefined };
    },
  } as unknown as NatsConnection;
  const manager = { consumers: { add: async () => ({ num_pending: 0 }) } } as unknown as JetStreamManager;
  const consumer = await StreamConsumer.open(connection, manager, 'S', 1);
  const send = (sequence: number) =>
    hear({ subject: 'parley.in.a.b', reply: `$JS.ACK.S.C.1.${sequence}.${sequence}.1.0`, data: Buffer.of() });
  const read: number[] = [];
  const pull = () => consumer.pull(1, ({ sequence }) => void read.push(sequence));
  const first = pull();
  send(1);
  expect(await first).toEqual({ kind: 'filled' });
  const second = pull();
  hear({ subject: inbox, headers: { code: 409, description: 'Batch Completed' } as Msg['headers'] });
  send(2);
  expect(await second).toEqual({ kind: 'filled' });
  expect(read).toEqual([1, 2]);
  consumer.close();
});
