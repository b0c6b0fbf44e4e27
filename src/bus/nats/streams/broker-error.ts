import { ErrorCode, NatsError } from 'nats';
import { apiErrorCode, isOutOfSpace, LIMIT_REQUIRED, messageOf, ParleyError } from '../../../kernel/index.ts';

const SUBJECTS_OVERLAP = 10065;
export const NOT_FOR_ACCOUNT = 10039;
const NO_JETSTREAM = new Set([10035, NOT_FOR_ACCOUNT, 10076]);
/** The cluster or one stream has no leader at the moment. */
export const NO_LEADER: ReadonlySet<number> = new Set([10004, 10007, 10008, 10009]);
/** No cluster, or too few servers in it for the requested replicas. */
export const NO_PEERS: ReadonlySet<number> = new Set([10005, 10074]);

const UNANSWERED = 'no JetStream server answers, or its cluster has no leader; nothing was done';
const UNANSWERED_HINT =
  'start more than half of the servers of the cluster, or enable JetStream (`nats-server -js`); then try again';

/** The request has no subscriber: there is no JetStream, or no stream for this subject. */
export function isUnanswered(error: unknown): boolean {
  return error instanceof NatsError && error.code === ErrorCode.NoResponders && !error.api_error;
}

/** The user lacks a permission. Not retryable. */
export function isForbidden(error: unknown): boolean {
  if (error instanceof ParleyError) return isForbidden(error.cause);
  return error instanceof NatsError && error.code === ErrorCode.PermissionsViolation;
}

/** Turns an error of the client into a `ParleyError` with a next step. `doing`: "publish to PARLEY_IN". */
export function brokerError(error: unknown, doing: string): ParleyError {
  if (error instanceof ParleyError) return error;
  const number = apiErrorCode(error);
  const described = error instanceof NatsError && error.api_error?.description;
  const message = `could not ${doing}: ${described || messageOf(error)}`;
  if (isOutOfSpace(error)) {
    return new ParleyError('BROKER_OUT_OF_SPACE', message, {
      hint: 'free disk space on the server, raise its JetStream limits, or configure smaller streams',
      cause: error,
    });
  }
  if (number !== null && NO_JETSTREAM.has(number)) {
    return new ParleyError('JETSTREAM_UNAVAILABLE', message, {
      hint: 'enable JetStream on the server (`nats-server -js`) and for this account',
      cause: error,
    });
  }
  if (number === LIMIT_REQUIRED) {
    return new ParleyError('STREAM_CONFIG_CONFLICT', message, {
      hint: 'this account requires max_bytes on each stream, and the streams of Parley have none: turn max_bytes_required off',
      cause: error,
    });
  }
  if (number === SUBJECTS_OVERLAP) {
    return new ParleyError('STREAM_CONFIG_CONFLICT', message, {
      hint: 'another stream captures these subjects: delete it, or choose another subjectPrefix',
      cause: error,
    });
  }
  if (number !== null && NO_LEADER.has(number)) {
    return new ParleyError('BROKER_UNAVAILABLE', message, {
      hint: 'start more than half of the servers of the cluster, wait until they have a leader, and repeat it with the same id',
      cause: error,
    });
  }
  if (isForbidden(error)) {
    return new ParleyError('NATS_FORBIDDEN', message, {
      hint: 'render the permissions again with parley nats-config (docs/guides/security.md), reload the server and start again',
      cause: error,
    });
  }
  if (isUnanswered(error)) {
    return new ParleyError('BROKER_UNAVAILABLE', `could not ${doing}: ${UNANSWERED}`, {
      hint: UNANSWERED_HINT,
      cause: error,
    });
  }
  return new ParleyError('BROKER_UNAVAILABLE', message, {
    hint: 'check that nats-server is running with JetStream. The message may have been stored: repeat it with the same id',
    cause: error,
  });
}
