import { ParleyError } from '../kernel/index.ts';

/** Transient failures: the daemon restarts, the network recovers. */
const TRANSIENT = new Set(['DAEMON_NOT_RUNNING', 'DAEMON_TIMEOUT', 'NATS_REQUEST_FAILED']);

/** Whether the request failed because the daemon does not answer. It may be repeated later, a post with the same id. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof ParleyError && TRANSIENT.has(error.code);
}
