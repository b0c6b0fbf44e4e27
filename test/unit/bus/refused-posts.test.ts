import { type JetStreamManager, type NatsConnection, NatsError } from 'nats';
import { beforeEach, describe, expect, it } from 'vitest';
import { RefusedPosts } from '../../../src/bus/nats/ingress/refused-posts.ts';
import type { Delivery } from '../../../src/bus/port.ts';
import { createSubjects } from '../../../src/bus/subjects.ts';

let reads = 0;
let fault: NatsError;
let refused: RefusedPosts;

beforeEach(() => {
  reads = 0;
  fault = new NatsError('no message found', '404');
  fault.api_error = { code: 404, err_code: 10037, description: 'no message found' };
  const getMessage = async () => {
    reads += 1;
    throw fault;
  };
  refused = new RefusedPosts({
    connection: {} as NatsConnection,
    manager: { streams: { getMessage } } as unknown as JetStreamManager,
    subjects: createSubjects(),
  });
});

const post = (sequence: number) =>
  ({
    publisher: 'alice',
    conversation: 'demo',
    takenAt: sequence,
    position: { stream: 's', sequence },
  }) as Delivery;

describe('the letters of one publisher in a conversation', () => {
  it('the letters are read once for all posts that are refused at the same time', async () => {
    const posts = Array.from({ length: 256 }, (_, at) => post(at + 1));
    expect(await Promise.all(posts.map((one) => refused.has(one)))).not.toContain(true);
    expect(reads).toBe(1);
  });

  it('the letters are read once in a flood, and again for a post whose letter is no longer cached', async () => {
    for (let sequence = 1; sequence <= 10_000; sequence++) {
      expect(await refused.has(post(sequence))).toBe(false);
      refused.add(post(sequence));
    }
    expect(await refused.has(post(10_000))).toBe(true);
    expect(await refused.has(post(9_500))).toBe(true);
    expect(reads).toBe(1);
    await refused.has(post(1));
    expect(reads).toBe(2);
  });

  it('the letters are read again after a failed read', async () => {
    const missing = fault;
    fault = new NatsError('timeout', 'TIMEOUT');
    await expect(refused.has(post(1))).rejects.toThrow();
    fault = missing;
    expect(await refused.has(post(2))).toBe(false);
  });
});
