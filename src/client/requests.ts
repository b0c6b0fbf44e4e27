import { setTimeout as sleep } from 'node:timers/promises';
import { REPEATABLE_VERBS } from '../bus/index.ts';
import type { NatsConnection } from '../bus/nats/index.ts';
import { abortable, isRecord, jsonBytes, messageOf, ParleyError, parseJson } from '../kernel/index.ts';

/**
 * One request to the daemon's service, with its retries.
 *
 * CLIENT-REQUESTS-1 A request without an answer is sent again, a bounded number of times: a post is known by its id, and any
 *    other verb may be repeated. An answer or a refusal is final, except "unavailable" (503).
 * CLIENT-REQUESTS-2 A refusal keeps the daemon's code, message and hint.
 * CLIENT-REQUESTS-3 A body that the server cannot carry is refused before anything is sent.
 * CLIENT-REQUESTS-4 The first attempts of a repeatable verb have a shorter timeout: of several daemons, the server may have
 *    chosen a frozen one, and the next attempt can reach another.
 * CLIENT-REQUESTS-5 A reload is asked for once: it may wait for MCP servers, and a second one would answer "unchanged".
 */

export interface RequestPolicy {
  /** All attempts, the first one included. */
  readonly attempts: number;
  /** The timeout of one attempt, at most (CLIENT-REQUESTS-4). */
  readonly timeoutMs: number;
  /** The pause before the second attempt; each further pause is twice as long, up to five seconds. */
  readonly pauseMs: number;
}

export const DEFAULT_POLICY: RequestPolicy = { attempts: 3, timeoutMs: 10_000, pauseMs: 150 };

/** Of the timeout: an MCP server has a minute to start. */
const RELOAD_FACTOR = 9;
const LONGEST_PAUSE_MS = 5_000;
/** Longer than a daemon that is not overloaded takes. */
const SHORTEST_WAIT_MS = 1_000;

const ERROR_CODE_HEADER = 'Nats-Service-Error-Code';
const ERROR_HEADER = 'Nats-Service-Error';
const UNAVAILABLE = '503';

/** The result of one attempt. `again`: another one may succeed. */
type Attempt =
  | { readonly kind: 'answered'; readonly body: unknown }
  | { readonly kind: 'failed'; readonly error: ParleyError; readonly again: boolean };

interface OutgoingRequest {
  readonly subject: string;
  /** For error messages. */
  readonly endpoint: string;
  readonly body: unknown;
}

export async function sendRequest(
  connection: NatsConnection,
  request: OutgoingRequest,
  given: RequestPolicy,
  signal?: AbortSignal,
): Promise<unknown> {
  const isReload = request.endpoint === 'reload'; // CLIENT-REQUESTS-5
  const policy = isReload ? { ...given, attempts: 1, timeoutMs: given.timeoutMs * RELOAD_FACTOR } : given;
  const payload = encode(connection, request);
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted();
    const waitMs = waitOf(request, policy, attempt);
    const outcome = await abortable(attemptOnce(connection, request, payload, policy, waitMs), signal);
    if (outcome.kind === 'answered') return outcome.body;
    if (!outcome.again || attempt >= policy.attempts) throw outcome.error;
    await sleep(Math.min(policy.pauseMs * 2 ** (attempt - 1), LONGEST_PAUSE_MS), undefined, { signal });
  }
}

/** CLIENT-REQUESTS-4: the last attempt has the whole timeout, each one before it half of the next one's. */
function waitOf(
  { endpoint }: OutgoingRequest,
  { attempts, timeoutMs }: RequestPolicy,
  attempt: number,
): number {
  if (!REPEATABLE_VERBS.has(endpoint)) return timeoutMs;
  return Math.max(Math.min(SHORTEST_WAIT_MS, timeoutMs), timeoutMs / 2 ** (attempts - attempt));
}

function encode(connection: NatsConnection, { endpoint, body }: OutgoingRequest): Uint8Array {
  const payload = jsonBytes(body);
  const limit = connection.info?.max_payload;
  if (limit !== undefined && payload.byteLength > limit) {
    throw new ParleyError(
      'TOO_LARGE',
      `this ${endpoint} request is ${payload.byteLength} bytes and the server takes at most ${limit}`,
      { hint: 'shorten the text, or put it in a file that the agents can read and name the file' },
    );
  }
  return payload;
}

async function attemptOnce(
  connection: NatsConnection,
  { subject, endpoint }: OutgoingRequest,
  payload: Uint8Array,
  policy: RequestPolicy,
  waitMs: number,
): Promise<Attempt> {
  try {
    const message = await connection.request(subject, payload, { timeout: waitMs });
    const code = message.headers?.get(ERROR_CODE_HEADER);
    if (code) {
      const error = refusalOf(endpoint, code, message.headers?.get(ERROR_HEADER), message.string());
      return { kind: 'failed', error, again: code === UNAVAILABLE };
    }
    return { kind: 'answered', body: decode(endpoint, message.string()) };
  } catch (error) {
    return failureOf(error, subject, endpoint, policy);
  }
}

function decode(endpoint: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ParleyError('INVALID_ANSWER', `the answer to ${endpoint} is not JSON: ${messageOf(cause)}`, {
      hint: 'does another service answer under this subject prefix?',
      cause,
    });
  }
}

/** CLIENT-REQUESTS-2. A service that is not Parley's may answer with the headers alone. */
function refusalOf(endpoint: string, code: string, header: string | undefined, text: string): ParleyError {
  const fallback = header || `the daemon refused ${endpoint} with error ${code}`;
  const body = parseJson(text);
  const fields = isRecord(body) ? body : {};
  return new ParleyError(
    typeof fields.code === 'string' ? fields.code : `SERVICE_ERROR_${code}`,
    typeof fields.message === 'string' ? fields.message : fallback,
    typeof fields.hint === 'string' ? { hint: fields.hint } : {},
  );
}

/** An error of the NATS client, by its stable code. */
function failureOf(cause: unknown, subject: string, endpoint: string, policy: RequestPolicy): Attempt {
  if (cause instanceof ParleyError) return { kind: 'failed', error: cause, again: false };
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const [name, message, hint] = describedFailure(code, cause, subject, endpoint, policy);
  const error = new ParleyError(name, message, { hint, cause });
  return { kind: 'failed', error, again: code === UNAVAILABLE || code === 'TIMEOUT' };
}

/** Its code, message and hint. */
function describedFailure(
  code: string,
  cause: unknown,
  subject: string,
  endpoint: string,
  { timeoutMs, attempts }: RequestPolicy,
): readonly [string, string, string] {
  switch (code) {
    case UNAVAILABLE:
      return [
        'DAEMON_NOT_RUNNING',
        `no daemon answers on ${subject}`,
        'run `parley up`, or check the server, the subject prefix and the name of the request',
      ];
    case 'TIMEOUT':
      return [
        'DAEMON_TIMEOUT',
        `no answer to ${endpoint} within ${timeoutMs} ms, asked ${attempts} time${attempts === 1 ? '' : 's'}`,
        'it may have been done all the same: asking again is safe (a post: with the same id)',
      ];
    case 'CONNECTION_CLOSED':
    case 'CONNECTION_DRAINING':
      return [
        'CONNECTION_CLOSED',
        'the connection to NATS is closed',
        'connect again; a closed client cannot be used',
      ];
    case 'PERMISSIONS_VIOLATION': {
      const { permissionContext: place } = cause as {
        permissionContext?: { operation?: string; subject?: string };
      };
      if (place?.operation !== 'subscription')
        return [
          'NATS_FORBIDDEN',
          `these credentials may not publish to ${subject}`,
          'use other credentials, give their publisher with --publisher, or have the server allow that subject',
        ];
      return [
        'NATS_FORBIDDEN',
        `these credentials may not receive answers on ${place.subject ?? 'its inbox'}`,
        'it may have been done all the same. Name the inbox of this user: --nats-inbox-prefix, or inboxPrefix (docs/guides/security.md)',
      ];
    }
    default:
      return [
        'NATS_REQUEST_FAILED',
        `the request ${endpoint} failed: ${messageOf(cause)}`,
        'check the connection to the NATS server',
      ];
  }
}

/** Transient failures: the daemon restarts, the network recovers. */
const TRANSIENT = new Set(['DAEMON_NOT_RUNNING', 'DAEMON_TIMEOUT', 'NATS_REQUEST_FAILED']);

/** Whether the request failed because the daemon does not answer. It may be repeated later, a post with the same id. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof ParleyError && TRANSIENT.has(error.code);
}
