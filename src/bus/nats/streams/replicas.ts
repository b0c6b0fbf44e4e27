import type { JetStreamManager, NatsConnection, StreamInfo } from 'nats';
import { isAtLeast, ParleyError, sleep } from '../../../kernel/index.ts';
import type { BusLog } from '../../log.ts';
import { type Subjects, streamsOf } from '../../subjects.ts';
import { apiErrorCode, brokerError, isForbidden, NO_PEERS } from './broker-error.ts';
import { findStream } from './streams.ts';

/**
 * How many servers of a cluster keep each stream and bucket. No other file says so.
 *
 * REPLICAS-1  What the server cannot keep is refused before anything is made.
 * REPLICAS-2  A number that is set holds for every stream and bucket, also for those that were there before. One that is not
 *             set leaves each as its operator chose.
 * REPLICAS-3  Several replicas only where compare-and-set is a fence: older servers let two writers win.
 * REPLICAS-4  A cluster without a leader answers nothing for some seconds; a start waits for that long.
 */
const SAFE_FROM = [2, 10, 27] as const;
/** An election takes about 4 s, a second one follows when the first has no winner. */
const ELECTION_MS = 20_000;
const AGAIN_MS = 250;
/** What a new replica may take to catch up before the start continues without it. */
const CATCH_UP_MS = 15_000;
const LEADERLESS: ReadonlySet<string> = new Set([
  'STORE_UNAVAILABLE',
  'BROKER_UNAVAILABLE',
  'JETSTREAM_UNAVAILABLE',
]);

/** REPLICAS-1 */
export function requireReplicas(connection: NatsConnection, replicas: number | null): void {
  if (replicas === null || replicas <= 1) return;
  refuseUnsafe(connection, replicas, 'its streams');
  if (connection.info?.cluster) return;
  throw new ParleyError(
    'REPLICAS_UNAVAILABLE',
    `the nats-server at ${connection.getServer()} is in no cluster: it cannot keep ${replicas} replicas`,
    { hint: `name the servers of a cluster of ${replicas} with --nats, or remove jetstream.replicas` },
  );
}

/** REPLICAS-2 */
export async function keepReplicas(
  connection: NatsConnection,
  subjects: Subjects,
  replicas: number | null,
  log: BusLog,
): Promise<void> {
  const manager = await connection.jetstreamManager({ checkAPI: false });
  for (const stream of streamsOf(subjects)) {
    const found = await findStream(manager, stream).catch((error: unknown) => {
      if (stream === subjects.settledStream && isForbidden(error)) return null; // KEEPER-4
      throw error;
    });
    if (found === null) continue;
    const { num_replicas: before } = found.config;
    refuseUnsafe(connection, replicas ?? before, `stream ${stream}`);
    if (replicas === null || before === replicas) continue;
    await setReplicas(manager, stream, replicas);
    log.info({ stream, before, replicas }, 'the number of replicas was changed');
    if (replicas > 1 && !(await isCaughtUp(manager, stream)))
      log.warn({ stream }, 'not every replica has all messages yet: keep all servers running until then');
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
      `the cluster cannot keep ${replicas} replicas of stream ${stream}: it has too few servers with JetStream and room`,
      {
        hint: 'start or add servers of that cluster, or set jetstream.replicas to at most their number',
        cause: error,
      },
    );
  }
  if (changed.config.num_replicas === replicas) return;
  const seen = changed.config.num_replicas;
  throw new ParleyError(
    'REPLICAS_UNAVAILABLE',
    `stream ${stream} has ${seen} replicas still, not ${replicas}`,
    {
      hint: 'set the number with `nats stream edit`, whose answer says what is wrong',
    },
  );
}

async function isCaughtUp(manager: JetStreamManager, stream: string): Promise<boolean> {
  const end = performance.now() + CATCH_UP_MS;
  while (performance.now() < end) {
    const info = await findStream(manager, stream).catch(() => null); // while a leader is elected
    const others = info?.cluster?.replicas ?? [];
    if (info && others.length === info.config.num_replicas - 1 && others.every(({ current }) => current))
      return true;
    await sleep(AGAIN_MS);
  }
  return false;
}

/** REPLICAS-3 */
function refuseUnsafe(connection: NatsConnection, replicas: number, what: string): void {
  const version = connection.info?.version ?? '0.0.0';
  if (replicas <= 1 || isAtLeast(version, SAFE_FROM)) return;
  throw new ParleyError(
    'SERVER_TOO_OLD',
    `nats-server ${version} cannot keep ${replicas} replicas of ${what} safely: it lets two writers append at one place`,
    { hint: `use nats-server ${SAFE_FROM.join('.')} or later, or one replica` },
  );
}

/** REPLICAS-4. `work` may be repeated. */
export async function onceElected<T>(connection: NatsConnection, work: () => Promise<T>): Promise<T> {
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
