import { type JetStreamManager, type NatsConnection, NatsError } from 'nats';
import { expect, it } from 'vitest';
import { RefusedPosts } from '../../../src/bus/nats/refused-posts.ts';
import type { IngressDelivery } from '../../../src/bus/port.ts';
import { createSubjects } from '../../../src/bus/subjects.ts';

it('letters of one publisher are remembered up to a limit, then read again from the stream', async () => {
  const missing = new NatsError('no message found', '404');
  missing.api_error = { code: 404, err_code: 10037, description: 'no message found' };
  let reads = 0;
  const getMessage = async () => {
    reads += 1;
    throw missing;
  };
  const refused = new RefusedPosts({
    connection: {} as NatsConnection,
    manager: { streams: { getMessage } } as unknown as JetStreamManager,
    subjects: createSubjects(),
  });
  const post = (sequence: number) =>
    ({
      publisher: 'alice',
      conversation: 'demo',
      takenAt: sequence,
      position: { stream: 's', sequence },
    }) as IngressDelivery;
  for (let sequence = 1; sequence <= 1_000; sequence++) {
    expect(await refused.has(post(sequence))).toBe(false);
    refused.add(post(sequence));
  }
  expect(await refused.has(post(1_000))).toBe(true);
  expect(reads).toBe(1);
  refused.add(post(1_001));
  await refused.has(post(1_002));
  expect(reads).toBe(2);
});
