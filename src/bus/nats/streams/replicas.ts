import type { JetStreamManager, NatsConnection, StreamInfo } from 'nats';
import { isAtLeast, ParleyError, sleep } from '../../../kernel/index.ts';
import type { BusLog } from '../../port.ts';
import { type Subjects, streamsOf } from '../../subjects.ts';
import { apiErrorCode, brokerError, NO_PEERS } from './broker-error.ts';
import { findStream } from './streams.ts';

/**
 * Sets the number of replicas of each stream and bucket. No other file does.
 *
 * REPLICAS-1  A number that the server cannot provide is refused before anything is created.
 * REPLICAS-2  A configured number applies to every stream and bucket, existing ones included. Without one, each keeps the
 *             number that its operator chose.
 * REPLICAS-3  Several replicas need a server whose compare-and-set is a fence: older servers let two writers succeed.
 * REPLICAS-4  A cluster that elects a leader does not answer for some seconds; a start waits for it.
 */
const SAFE_FROM = [2, 10, 27] as const;
/** An election takes about 4 s. If it has no winner, another one follows. */
const ELECTION_MS = 20_000;
const AGAIN_MS = 250;
const LEADERLESS: ReadonlySet<string> = new Set([
  'STORE_UNAVAILABLE',
  'BROKER_UNAVAILABLE',
  'JETSTREAM_UNAVAILABLE',
]);

export function requireReplicas(connection: NatsConnection, replicas: number | null): void {
  if (replicas === null || replicas <= 1) return;
  refuseUnsafe(connection, replicas, 'its streams');
  if (connection.info?.cluster) return;
  throw new ParleyError(
    'REPLICAS_UNAVAILABLE',
    `the nats-server at ${connection.getServer()} is not in a cluster: it cannot keep ${replicas} replicas`,
    { hint: `give --nats the servers of a cluster of at least ${replicas}, or remove jetstream.replicas` },
  );
}

export async function enforceReplicas(
  connection: NatsConnection,
  subjects: Subjects,
  replicas: number | null,
  log: BusLog,
): Promise<void> {
  const manager = await connection.jetstreamManager({ checkAPI: false });
  for (const stream of streamsOf(subjects)) {
    const found = await findStream(manager, stream);
    if (found === null) continue;
    const { num_replicas: before } = found.config;
    refuseUnsafe(connection, replicas ?? before, `stream ${stream}`);
    if (replicas === null || before === replicas) continue;
    await setReplicas(manager, stream, replicas);
    log.info(
      { stream, before, replicas },
      'the number of replicas was changed: keep all servers running until each one has all messages',
    );
  }
}

async function setReplicas(manager: JetStreamManager, stream: string, replicas: number): Promise<void> {
  let changed: StreamInfo;
  try {
    changed = await manager.streams.update(stream, { num_replicas: replicas });
  } catch (error) {
    if (!NO_PEERS.has(apiErrorCode(error) ?? 0))
      throw brokerError(error, `keep ${replicas} replicas of stream ${stream}`);
    throw new ParleyError(
      'REPLICAS_UNAVAILABLE',
      `the cluster cannot keep ${replicas} replicas of stream ${stream}: too few servers have JetStream and free storage`,
      {
        hint: 'start or add servers, or set jetstream.replicas to at most their number',
        cause: error,
      },
    );
  }
  if (changed.config.num_replicas === replicas) return;
  const seen = changed.config.num_replicas;
  throw new ParleyError(
    'REPLICAS_UNAVAILABLE',
    `stream ${stream} still has ${seen} replicas, not ${replicas}`,
    {
      hint: 'set the number with `nats stream edit`, which reports the reason',
    },
  );
}

function refuseUnsafe(connection: NatsConnection, replicas: number, what: string): void {
  const version = connection.info?.version ?? '0.0.0';
  if (replicas <= 1 || isAtLeast(version, SAFE_FROM)) return;
  throw new ParleyError(
    'SERVER_TOO_OLD',
    `nats-server ${version} cannot keep ${replicas} replicas of ${what} safely: it lets two writers append at the same position`,
    { hint: `use nats-server ${SAFE_FROM.join('.')} or later, or one replica` },
  );
}

/** REPLICAS-4. Repeats `work` until the cluster has a leader. */
export async function afterLeaderElection<T>(connection: NatsConnection, work: () => Promise<T>): Promise<T> {
  const end = performance.now() + ELECTION_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const isLeaderless = error instanceof ParleyError && LEADERLESS.has(error.code);
      if (!isLeaderless || !connection.info?.cluster || performance.now() > end) throw error;
      await sleep(AGAIN_MS);
    }
  }
}
