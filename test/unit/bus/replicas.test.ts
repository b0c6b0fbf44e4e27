import type { NatsConnection, StreamConfig } from 'nats';
import { describe, expect, it } from 'vitest';
import {
  afterLeaderElection,
  enforceReplicas,
  requireReplicas,
} from '../../../src/bus/nats/streams/streams.ts';
import { createSubjects, streamsOf } from '../../../src/bus/subjects.ts';
import { ParleyError } from '../../../src/kernel/index.ts';
import { apiError } from '../../support/api-error.ts';
import { shortenWaits } from '../../support/short-waits.ts';

const subjects = createSubjects();
const LOG = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** A server on which each stream has this many replicas. `update`: the number it sets for a requested one. */
function server(
  { version = '2.15.1', cluster = 'c', count = 1 },
  update = (config: Partial<StreamConfig>) => ({ ...config }),
) {
  const counts = new Map(streamsOf(subjects).map((name) => [name, count]));
  const updated: string[] = [];
  const info = async (name: string) => ({
    config: { name, num_replicas: counts.get(name) },
    cluster: { replicas: Array.from({ length: (counts.get(name) ?? 1) - 1 }, () => ({ current: true })) },
  });
  const streams = {
    info,
    async update(name: string, config: Partial<StreamConfig>) {
      updated.push(name);
      counts.set(name, update(config).num_replicas ?? 1);
      return info(name);
    },
  };
  const connection = {
    info: { version, ...(cluster && { cluster }) },
    getServer: () => '127.0.0.1:4222',
    jetstreamManager: async () => ({ streams }),
  } as unknown as NatsConnection;
  return { connection, counts, updated };
}

const refused = (work: () => unknown) =>
  Promise.resolve()
    .then(work)
    .then(
      () => null,
      (error: ParleyError) => `${error.code}: ${error.message} (${error.hint})`,
    );

describe('the number of replicas', () => {
  it('replicas are refused on a server that can let two writers win, and on one outside of a cluster', async () => {
    const old = server({ version: '2.10.26' });
    expect(await refused(() => requireReplicas(old.connection, 3))).toMatch(
      /^SERVER_TOO_OLD: .*2\.10\.26.*2\.10\.27/,
    );
    const single = server({ cluster: '' });
    expect(await refused(() => requireReplicas(single.connection, 3))).toMatch(
      /^REPLICAS_UNAVAILABLE: the nats-server at 127.0.0.1:4222 is not in a cluster.*jetstream\.replicas/,
    );
    for (const count of [null, 1])
      expect(await refused(() => requireReplicas(single.connection, count))).toBeNull();
    expect(await refused(() => requireReplicas(server({}).connection, 5))).toBeNull();
  });

  it('replicas are set for every stream and bucket, and left unchanged if none are configured', async () => {
    const found = server({});
    await enforceReplicas(found.connection, subjects, 3, LOG);
    expect([...found.counts.values()]).toEqual(streamsOf(subjects).map(() => 3));
    await enforceReplicas(found.connection, subjects, 3, LOG);
    expect(found.updated).toEqual(streamsOf(subjects));
    const asIs = server({ count: 5 });
    await enforceReplicas(asIs.connection, subjects, null, LOG);
    expect(asIs.updated).toEqual([]);
  });

  it('replicas that an operator set on a server that is too old for them are refused', async () => {
    const old = server({ version: '2.9.10', count: 3 });
    expect(await refused(() => enforceReplicas(old.connection, subjects, null, LOG))).toMatch(
      /^SERVER_TOO_OLD: nats-server 2\.9\.10 cannot keep 3 replicas of stream PARLEY_IN safely/,
    );
    await enforceReplicas(old.connection, subjects, 1, LOG);
    expect([...old.counts.values()]).toEqual(streamsOf(subjects).map(() => 1));
  });

  it.each([10_005, 10_074])(
    'too many replicas for the cluster (%i) are refused with the remedy',
    async (code) => {
      const few = server({}, () => {
        throw apiError(code);
      });
      expect(await refused(() => enforceReplicas(few.connection, subjects, 3, LOG))).toMatch(
        /^REPLICAS_UNAVAILABLE: the cluster cannot keep 3 replicas of stream PARLEY_IN.*add servers/,
      );
    },
  );

  it('a server that does not echo the number of replicas is not trusted', async () => {
    const deaf = server({}, () => ({ num_replicas: 1 }));
    expect(await refused(() => enforceReplicas(deaf.connection, subjects, 3, LOG))).toMatch(
      /^REPLICAS_UNAVAILABLE: stream PARLEY_IN still has 1 replicas, not 3/,
    );
  });
});

describe('a start during the election of a leader', () => {
  const failing = (times: number, code = 'BROKER_UNAVAILABLE') => {
    let left = times;
    return async () => {
      if (left-- > 0) throw new ParleyError(code, 'no leader');
      return 'started';
    };
  };

  it('a start during the election of a leader is repeated', async () => {
    shortenWaits();
    expect(await afterLeaderElection(server({}).connection, failing(2))).toBe('started');
  });

  it('a start is not repeated on a single server, nor after another error', async () => {
    await expect(afterLeaderElection(server({ cluster: '' }).connection, failing(1))).rejects.toThrow(
      'no leader',
    );
    await expect(afterLeaderElection(server({}).connection, failing(1, 'SERVER_TOO_OLD'))).rejects.toThrow(
      'no leader',
    );
  });
});
