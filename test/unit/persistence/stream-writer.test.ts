import { NatsError } from 'nats';
import { describe, expect, it } from 'vitest';
import type { Broker } from '../../../src/persistence/jetstream/broker.ts';
import { openStreamLog } from '../../../src/persistence/jetstream/stream-log.ts';
import { errorWith } from '../../support/error-with.ts';
import { entry } from './support.ts';

function apiError(code: number): NatsError {
  const error = new NatsError('refused', '400');
  error.api_error = { code: 400, err_code: code, description: 'refused' };
  return error;
}

describe('an append that the server refuses although the stream has no other entry at its position', () => {
  it('the append fails when the wait must end, and no timer or request remains', async () => {
    const giveUp = new AbortController();
    let published = 0;
    const broker = {
      connection: { isClosed: () => false, info: { max_payload: 1_048_576 } },
      watch: { connected: async () => true, whileConnected: <T>(asking: Promise<T>) => asking },
      answers: { watch: <T>(_: string, asking: Promise<T>) => asking },
      timeoutMs: 100,
      signal: giveUp.signal,
      jetstream: {
        publish: async () => {
          published += 1;
          throw apiError(10_071); // Another last sequence.
        },
      },
      manager: {
        streams: {
          getMessage: async () => {
            throw apiError(10_037); // No message.
          },
        },
      },
    } as unknown as Broker;
    const source = { broker, conversation: 'demo', stream: 'PARLEY_LOG', subject: 'parley.log.demo' };
    const { log } = await openStreamLog(
      { ...source, isFenced: true, onForeign: () => undefined },
      () => undefined,
    );
    const appending = log.append(0, [entry(0)]);
    await expect.poll(() => published).toBeGreaterThan(1); // The append is retried.
    giveUp.abort();
    await expect(appending).rejects.toMatchObject(errorWith('LOG_UNAVAILABLE', 'has nothing in its place'));
    await log.close();
  });
});
