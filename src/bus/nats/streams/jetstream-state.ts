import { ErrorCode, type JetStreamManager, type NatsConnection, NatsError } from 'nats';
import { messageOf, ParleyError } from '../../../kernel/index.ts';
import { createSubjects, streamsOf } from '../../subjects.ts';
import { type NatsOptions, openNats } from '../connection/connection.ts';
import {
  apiErrorCode,
  isForbidden,
  isUnanswered,
  NO_LEADER,
  NOT_FOR_ACCOUNT,
  STREAM_NOT_FOUND,
} from './broker-error.ts';

const TIMEOUT_MS = 3_000;
const HINT =
  'start more than half of the servers of the cluster, or enable JetStream (`nats-server -js`); after the loss of a server, check again in 10 s';

/**
 * Checks that JetStream and each stream of Parley have a leader. Returns null, or the reason why this user may not check.
 * Rejects if one has no leader. A server that has just lost its peers may report a leader for 10 s.
 */
export async function checkJetStream(options: NatsOptions & { prefix?: string }): Promise<string | null> {
  const connection = await openNats(options);
  try {
    const manager = await connection.jetstreamManager({ checkAPI: false, timeout: TIMEOUT_MS });
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
  return new ParleyError('BROKER_UNAVAILABLE', `JetStream cannot be used: ${reason}`, { hint: HINT, cause });
}

/** Rejects with `JETSTREAM_UNAVAILABLE` if the server does not answer. */
export async function jetstreamManager(connection: NatsConnection): Promise<JetStreamManager> {
  try {
    return await connection.jetstreamManager();
  } catch (error) {
    if (!isUnanswered(error)) throw error;
    throw new ParleyError('JETSTREAM_UNAVAILABLE', 'the connected server has no JetStream', {
      hint: 'enable it on the server (`nats-server -js`) and for this account',
      cause: error,
    });
  }
}
