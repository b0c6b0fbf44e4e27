import { ErrorCode, NatsError } from 'nats';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Answers, type Broker } from '../../../src/persistence/jetstream/broker.ts';
import { openStreamLog } from '../../../src/persistence/jetstream/stream-log.ts';
import { apiError } from '../../support/api-error.ts';
import { errorWith } from '../../support/error-with.ts';
import { entry } from './support.ts';

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
    const { log } = await openStreamLog({ ...source, onForeign: () => undefined }, () => undefined);
    const appending = log.append(0, [entry(0)]);
    await expect.poll(() => published).toBeGreaterThan(1); // The append is retried.
    giveUp.abort();
    await expect(appending).rejects.toMatchObject(errorWith('LOG_UNAVAILABLE', 'has nothing in its place'));
    await log.close();
  });
});

/** ANSWERS-1 */
describe('the answers of a JetStream server', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
  afterEach(() => void vi.useRealTimers());

  const begin = (isConnected = true) =>
    new Answers(
      () => 1_000,
      () => isConnected,
    );
  const full = apiError(10_077, 'write 1.blk: no space left on device', 503);
  const refused = (answers: Answers, about: string, error: Error = full) =>
    answers.watch(about, Promise.reject(error)).catch(() => undefined);

  it('a server that does not answer in time has a fault, until it answers', async () => {
    const answers = begin();
    let answer: (value: number) => void = () => undefined;
    const asked = answers.watch(
      'append to LOG',
      new Promise<number>((resolve) => {
        answer = resolve;
      }),
    );
    await vi.advanceTimersByTimeAsync(999);
    expect(answers.fault).toBeNull();
    await vi.advanceTimersByTimeAsync(1);
    expect(answers.fault).toMatchObject(errorWith('NATS_SILENT', 'could not append to LOG'));
    answer(7);
    expect(await asked).toBe(7);
    expect(answers.fault).toBeNull();
    await refused(answers, 'read LOG', new NatsError('TIMEOUT', ErrorCode.Timeout));
    expect(answers.fault).toMatchObject({ code: 'NATS_SILENT' });
  });

  it('a refusal for lack of space is a fault with the words of the server, until the next answer about the same thing', async () => {
    const answers = begin();
    await refused(answers, 'append to LOG');
    await answers.watch('read LOG', Promise.resolve());
    expect(answers.fault).toMatchObject({
      code: 'STORE_FULL',
      message: 'could not append to LOG: write 1.blk: no space left on device',
    });
    await refused(answers, 'append to LOG', apiError(10_071, 'wrong last sequence', 503));
    expect(answers.fault).toBeNull();
  });

  it('a fault that is not repeated ends after some time, because nothing may ask again', async () => {
    const answers = begin();
    await refused(answers, 'append to LOG');
    await vi.advanceTimersByTimeAsync(9_000);
    await refused(answers, 'append to LOG');
    await vi.advanceTimersByTimeAsync(9_000);
    expect(answers.fault).not.toBeNull();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(answers.fault).toBeNull();
  });

  it('what was asked over a lost connection is no fault of the server', async () => {
    const answers = begin(false);
    await refused(answers, 'append to LOG');
    expect(answers.fault).toBeNull();
  });
});
