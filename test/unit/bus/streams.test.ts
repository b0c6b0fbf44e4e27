import { ErrorCode, type JetStreamManager, NatsError, type StreamConfig } from 'nats';
import { describe, expect, it } from 'vitest';
import { brokerError } from '../../../src/bus/nats/streams/broker-error.ts';
import { ensureStreams } from '../../../src/bus/nats/streams/streams.ts';
import { createSubjects } from '../../../src/bus/subjects.ts';
import { storeError } from '../../../src/persistence/jetstream/broker.ts';
import * as store from '../../../src/persistence/jetstream/streams.ts';
import { apiError } from '../../support/api-error.ts';

/** A server that creates streams, with `change` applied to the requested configuration. */
function serverThat(change: (config: Partial<StreamConfig>) => Partial<StreamConfig>): JetStreamManager {
  const streams = {
    info: async () => {
      throw apiError(10059);
    },
    add: async (config: Partial<StreamConfig>) => ({ config: change(config), created: 'now' }),
  };
  return { streams } as unknown as JetStreamManager;
}

describe('creating the streams', () => {
  const ensure = (change: (config: Partial<StreamConfig>) => Partial<StreamConfig>) =>
    ensureStreams(serverThat(change), createSubjects(), {});

  it('the stream check accepts a server that echoes all settings', async () => {
    expect((await ensure((config) => config)).created).toBe('now');
  });

  it('the stream check treats an omitted setting as off', async () => {
    const echo = await ensure(({ allow_rollup_hdrs, sealed, deny_purge, max_age, ...config }) => config);
    expect(echo.created).toBe('now');
  });

  it('the stream check refuses a server that drops a setting silently (NATS-STREAMS-2)', async () => {
    await expect(ensure(({ discard, ...config }) => config)).rejects.toMatchObject({
      code: 'STREAM_CONFIG_CONFLICT',
    });
    await expect(ensure((config) => ({ ...config, allow_rollup_hdrs: true }))).rejects.toMatchObject({
      message: expect.stringMatching(/allow_rollup_hdrs is true, must be false/),
    });
  });
});

describe('creating a stream that another daemon creates at the same time', () => {
  /** Refuses every creation, because another daemon has just made it. */
  function racingServer(code: number): JetStreamManager {
    const made = new Map<string, Partial<StreamConfig>>();
    const streams = {
      info: async (name: string) => {
        const config = made.get(name);
        if (!config) throw apiError(10059);
        return { config, created: 'now', state: { messages: 0 } };
      },
      add: async (config: Partial<StreamConfig>) => {
        made.set(config.name ?? '', config);
        throw apiError(code);
      },
    };
    return { streams } as unknown as JetStreamManager;
  }

  it.each([10058, 10065])(
    'both stores use the stream when the server answers with error %i',
    async (code) => {
      const subjects = createSubjects();
      expect((await ensureStreams(racingServer(code), subjects, {})).created).toBe('now');
      expect(await store.ensureStoreStreams(racingServer(code), subjects)).toBe('PARLEY_LOG now');
    },
  );

  it('subjects of another stream are still a conflict', async () => {
    const streams = {
      info: async () => {
        throw apiError(10059);
      },
      add: async () => {
        throw apiError(10065);
      },
    };
    const manager = { streams } as unknown as JetStreamManager;
    await expect(ensureStreams(manager, createSubjects(), {})).rejects.toMatchObject({
      code: 'STREAM_CONFIG_CONFLICT',
    });
    await expect(store.ensureStoreStreams(manager, createSubjects())).rejects.toThrow(
      'could not create stream PARLEY_LOG',
    );
  });
});

describe('refusals of the NATS server', () => {
  it.each([
    [10077, 'BROKER_OUT_OF_SPACE', 'maximum messages exceeded'],
    [10077, 'BROKER_OUT_OF_SPACE', 'write /js/streams/A/msgs/1.blk: no space left on device'],
    [10023, 'BROKER_OUT_OF_SPACE'],
    [10047, 'BROKER_OUT_OF_SPACE'],
    [10039, 'JETSTREAM_UNAVAILABLE'],
    [10065, 'STREAM_CONFIG_CONFLICT'],
    [10113, 'STREAM_CONFIG_CONFLICT'],
    [10001, 'BROKER_UNAVAILABLE'],
    [10008, 'BROKER_UNAVAILABLE'],
  ])('the server error %i is reported as %s, with cause and remedy', (number, code, description?: string) => {
    const cause = apiError(number, description);
    expect(brokerError(cause, 'post')).toMatchObject({
      code,
      cause,
      message: expect.stringMatching(/could not post/),
      hint: expect.stringMatching(/\w/),
    });
  });

  it('a request that no JetStream server answers is reported with the remedy', () => {
    const unanswered = new NatsError('503', ErrorCode.NoResponders);
    for (const [error, code] of [
      [brokerError(unanswered, 'post to stream PARLEY_IN'), 'BROKER_UNAVAILABLE'],
      [storeError(unanswered, 'read stream PARLEY_LOG'), 'STORE_UNAVAILABLE'],
    ] as const) {
      expect(error).toMatchObject({
        code,
        message: expect.stringMatching(
          /^could not .* stream PARLEY_\w+: no JetStream server answers, or its cluster has no leader; nothing was done$/,
        ),
        hint: expect.stringMatching(/more than half of the servers.*again/),
      });
    }
  });
});
