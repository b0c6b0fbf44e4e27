import {
  DiscardPolicy,
  ErrorCode,
  type JetStreamManager,
  type NatsConnection,
  NatsError,
  nanos,
  RetentionPolicy,
  StorageType,
  type StoredMsg,
  type StreamConfig,
  type StreamInfo,
} from 'nats';
import {
  apiErrorCode,
  ensureStream,
  findStream as findStreamIn,
  isAtLeast,
  MESSAGE_NOT_FOUND,
  messageOf,
  openManager,
  ParleyError,
  STREAM_NOT_FOUND,
  sleep,
} from '../../../kernel/index.ts';
import type { BusLog } from '../../port.ts';
import { ANY, createSubjects, type Subjects, streamsOf } from '../../subjects.ts';
import { type NatsOptions, openNats } from '../connection/connection.ts';
import {
  brokerError,
  isForbidden,
  isUnanswered,
  NO_LEADER,
  NO_PEERS,
  NOT_FOR_ACCOUNT,
} from './broker-error.ts';

/**
 * The streams of the bus.
 *
 * BUS-STREAMS-1 The number of messages is set only on a new stream; later an operator may change it. The byte limit of posts is
 *    in `capacity.ts`.
 */

export interface StreamOptions {
  readonly log?: BusLog;
}

/** Unlike a limit in bytes it is exact: at this number every post is refused, and none is dropped. */
const MOST_POSTS = 1_000_000;
const DEAD_BYTES = 64 * 1024 ** 2;
/** The minimum that servers accept. Broker-side ids would apply to all conversations at once. */
const DUPLICATE_WINDOW_MS = 100;

/** Creates or updates the streams and returns the ingress stream. */
export async function ensureStreams(
  manager: JetStreamManager,
  subjects: Subjects,
  { log }: StreamOptions,
): Promise<StreamInfo> {
  const common = { log, error: brokerError };
  await ensureStream(manager.streams, {
    ...common,
    binding: binding(subjects.deadStream, subjects.dead(ANY, ANY), { discard: DiscardPolicy.Old }),
    defaultRoom: { max_bytes: DEAD_BYTES, max_msgs: -1 },
  });
  const newest = { discard: DiscardPolicy.Old, max_msgs_per_subject: 1 };
  await ensureStream(manager.streams, {
    ...common,
    binding: binding(subjects.settledStream, subjects.settled, newest),
    defaultRoom: { max_bytes: -1, max_msgs: -1 },
  });
  const window = { duplicate_window: nanos(DUPLICATE_WINDOW_MS) };
  return ensureStream(manager.streams, {
    ...common,
    binding: binding(subjects.ingressStream, subjects.in(ANY, ANY), { ...window, max_bytes: -1 }),
    defaultRoom: { max_msgs: MOST_POSTS },
    onUpdated({ name: stream, max_bytes: was = -1 }) {
      if (was > 0)
        log?.info(
          { stream, was },
          'the ingress stream is limited by ingress.maxBytes of parley.yaml from now on, not by its max_bytes',
        );
    },
  });
}

function binding(name: string, subject: string, more: Partial<StreamConfig>) {
  return {
    name,
    subjects: [subject],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    max_age: 0,
    max_msgs_per_subject: -1,
    allow_rollup_hdrs: false,
    deny_purge: false,
    sealed: false,
    ...more,
  };
}

export function findStream(manager: JetStreamManager, name: string): Promise<StreamInfo | null> {
  return findStreamIn(manager.streams, name, brokerError);
}

/** By its sequence, the next one of a subject from a sequence on, or the newest of a subject. Null: the stream does not have it. */
export async function findMessage(
  manager: JetStreamManager,
  stream: string,
  query: { readonly seq: number; readonly next_by_subj?: string } | { readonly last_by_subj: string },
): Promise<StoredMsg | null> {
  try {
    return await manager.streams.getMessage(stream, query);
  } catch (error) {
    const code = apiErrorCode(error);
    if (code === MESSAGE_NOT_FOUND || code === STREAM_NOT_FOUND) return null;
    throw brokerError(error, `read stream ${stream}`);
  }
}

const CHECK_TIMEOUT_MS = 3_000;
const UNUSABLE_HINT =
  'start more than half of the servers of the cluster, or enable JetStream (`nats-server -js`); after the loss of a server, check again in 10 s';

/**
 * Checks that JetStream and each stream of Parley have a leader. Returns null, or the reason why this user may not check.
 * Rejects if one has no leader. A server that has just lost its peers may report a leader for 10 s.
 */
export async function checkJetStream(options: NatsOptions & { prefix?: string }): Promise<string | null> {
  const connection = await openNats(options);
  try {
    const manager = await connection.jetstreamManager({ checkAPI: false, timeout: CHECK_TIMEOUT_MS });
    await manager.getAccountInfo();
    const streams = streamsOf(createSubjects(options.prefix));
    const have = await Promise.all(streams.map((stream) => hasLeader(manager, stream)));
    const without = streams.filter((_, at) => !have[at]);
    if (without.length > 0) throw unusable(`no leader for ${without.join(', ')}`);
    return null;
  } catch (error) {
    if (error instanceof ParleyError) throw error;
    if (isForbidden(error) || apiErrorCode(error) === NOT_FOR_ACCOUNT) return messageOf(error);
    throw unusable(reasonOf(error), error);
  } finally {
    await connection.close();
  }
}

/** Also true for a stream that does not exist yet. */
async function hasLeader(manager: JetStreamManager, stream: string): Promise<boolean> {
  try {
    const { cluster } = await manager.streams.info(stream);
    return cluster === undefined || cluster.leader !== undefined;
  } catch (error) {
    if (isForbidden(error)) throw error;
    return apiErrorCode(error) === STREAM_NOT_FOUND;
  }
}

function reasonOf(error: unknown): string {
  if (isUnanswered(error)) return 'JetStream is not enabled on this server';
  const isSilent = error instanceof NatsError && error.code === ErrorCode.Timeout;
  if (isSilent || NO_LEADER.has(apiErrorCode(error) ?? 0)) return 'the cluster has no leader';
  return messageOf(error);
}

function unusable(reason: string, cause?: unknown): ParleyError {
  return new ParleyError('BROKER_UNAVAILABLE', `JetStream cannot be used: ${reason}`, {
    hint: UNUSABLE_HINT,
    cause,
  });
}

/** Rejects with `JETSTREAM_UNAVAILABLE` if the server does not answer. */
export async function jetstreamManager(connection: NatsConnection): Promise<JetStreamManager> {
  try {
    return await openManager(connection);
  } catch (error) {
    if (!isUnanswered(error)) throw error;
    throw new ParleyError('JETSTREAM_UNAVAILABLE', 'the connected server has no JetStream', {
      hint: 'enable it on the server (`nats-server -js`) and for this account',
      cause: error,
    });
  }
}

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
