import {
  ErrorCode,
  type JetStreamClient,
  type JetStreamManager,
  type MsgHdrs,
  type NatsConnection,
  NatsError,
} from 'nats';
import {
  apiErrorCode,
  isOutOfSpace,
  MESSAGE_NOT_FOUND,
  messageOf,
  openManager,
  ParleyError,
  STREAM_NOT_FOUND,
  WRONG_LAST_SEQUENCE,
} from '../../kernel/index.ts';

/**
 * Requests to the server, and what their errors mean.
 *
 * BROKER-1 Without an answer, a published message may be stored or not (`unknown`), whatever the client threw. Errors are
 *          classified by number: their texts differ between versions.
 * BROKER-2 Nothing is sent while the connection is lost: the client would drop it silently. A read is repeated after a
 *          reconnect: the client would wait for its full timeout.
 */

/** Whether the server can be reached. Provided by the opener of the connection. */
export interface Reachability {
  readonly isConnected: boolean;
  /** True when connected; false if that takes longer than `timeoutMs` or `signal` aborts. */
  connected(timeoutMs: number, signal?: AbortSignal): Promise<boolean>;
  /** Rejects as soon as the connection is lost. */
  whileConnected<T>(asking: Promise<T>): Promise<T>;
}

export interface Broker {
  readonly connection: NatsConnection;
  readonly jetstream: JetStreamClient;
  readonly manager: JetStreamManager;
  readonly watch: Reachability;
  /** By stream: reads, and what is published. */
  readonly answers: Answers;
  /** For one answer. */
  readonly timeoutMs: number;
  /** Ends every wait for the server. */
  readonly signal: AbortSignal;
}

export interface BrokerOptions extends Partial<Pick<Broker, 'signal' | 'timeoutMs'>> {
  readonly connection: NatsConnection;
  readonly watch: Reachability;
}

const TIMEOUT_MS = 5_000;
/** A server alone that takes longer does not answer any more. In a cluster it may be electing a leader. */
const SILENT_MS = 1_200;
/** Longer than the pauses and timeouts of whatever is repeated. */
const MEMORY_MS = 10_000;

export async function openBroker(options: BrokerOptions): Promise<Broker> {
  const { connection, watch, timeoutMs = TIMEOUT_MS } = options;
  const signal = options.signal ?? new AbortController().signal;
  try {
    const manager = await openManager(connection);
    const answers = new Answers(
      () => (connection.info?.cluster ? TIMEOUT_MS : SILENT_MS),
      () => watch.isConnected,
    );
    const jetstream = connection.jetstream();
    const broker = { connection, jetstream, manager, watch, answers, timeoutMs, signal };
    await requireConnection(broker);
    return broker;
  } catch (error) {
    throw storeError(error, 'use JetStream');
  }
}

export type PublishOutcome =
  | { readonly kind: 'stored'; readonly sequence: number }
  /** The subject's last sequence is not the expected one. */
  | { readonly kind: 'conflict' }
  /** Certainly not stored. */
  | { readonly kind: 'refused'; readonly cause: unknown }
  | { readonly kind: 'unknown'; readonly cause: unknown };

/** Another write to the same subject is in progress. Sent since 2.11; retryable. */
const WRITTEN_JUST_NOW = 10163;
const TOO_LARGE = 10054;

/** Opens a bucket, which the client creates if it is missing. Repeated once: NATS-STREAMS-3. */
export async function openBucket<T>(open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (apiErrorCode(error) === null) throw error;
    return open();
  }
}

export function isNotFound(error: unknown): boolean {
  const code = apiErrorCode(error);
  return code === MESSAGE_NOT_FOUND || code === STREAM_NOT_FOUND;
}

export async function requireConnection({ connection, watch, timeoutMs, signal }: Broker): Promise<void> {
  if (!connection.isClosed() && (await watch.connected(timeoutMs, signal))) return;
  throw new Error('there is no connection to the server');
}

/** BROKER-2. `work` must not change anything. */
export async function read<T>(broker: Broker, stream: string, work: () => Promise<T>): Promise<T> {
  const { watch, answers } = broker;
  await requireConnection(broker);
  try {
    return await answers.watch(`read ${stream}`, watch.whileConnected(work()));
  } catch (error) {
    if (await watch.connected(0)) throw error; // the connection was not lost
    await requireConnection(broker);
    return watch.whileConnected(work());
  }
}

/** Compare-and-set: the server accepts a message only if this is the last sequence of its subject. */
export const EXPECTED_HEADER = 'Nats-Expected-Last-Subject-Sequence';
/** Bytes of a payload that are reserved for headers: the server counts them too. */
const HEADER_RESERVE = 384;

/** Bytes of the body of a message. */
export function maxBody({ connection }: Broker): number {
  return (connection.info?.max_payload ?? 1024 ** 2) - HEADER_RESERVE;
}

export async function publish(
  broker: Broker,
  stream: string,
  message: { readonly subject: string; readonly body: Uint8Array; readonly headers?: MsgHdrs },
): Promise<PublishOutcome> {
  try {
    await requireConnection(broker);
    const { subject, body, headers } = message;
    const publishing = broker.jetstream.publish(subject, body, { headers, timeout: broker.timeoutMs });
    const answer = await broker.answers.watch(`append to ${stream}`, publishing);
    if (answer.stream === stream) return { kind: 'stored', sequence: answer.seq };
    return { kind: 'refused', cause: new Error(`stream ${answer.stream} stored it, not ${stream}`) };
  } catch (cause) {
    return failedPublish(cause);
  }
}

/** Throws unless the message is stored. For messages that expect no sequence. */
export function requireStored(outcome: PublishOutcome, doing: string): void {
  if (outcome.kind === 'stored') return;
  const cause = outcome.kind === 'conflict' ? new Error('the server saw a conflict') : outcome.cause;
  throw storeError(cause, doing);
}

function failedPublish(cause: unknown): PublishOutcome {
  const code = apiErrorCode(cause);
  if (code !== null && WRONG_LAST_SEQUENCE.has(code)) return { kind: 'conflict' };
  if (cause instanceof NatsError && cause.code === ErrorCode.MaxPayloadExceeded)
    return { kind: 'refused', cause };
  if (code === null || code === WRITTEN_JUST_NOW) return { kind: 'unknown', cause };
  const status = cause instanceof NatsError ? (cause.api_error?.code ?? 0) : 0;
  return isOutOfSpace(cause) || code === TOO_LARGE || (status >= 400 && status < 500)
    ? { kind: 'refused', cause }
    : { kind: 'unknown', cause };
}

/** The error for a failed action, with a hint. `doing`: "read stream PARLEY_LOG". */
export function storeError(error: unknown, doing: string): ParleyError {
  if (error instanceof ParleyError) return error;
  const code = apiErrorCode(error);
  const described = error instanceof NatsError ? error.api_error?.description : undefined;
  const message = `could not ${doing}: ${described ?? messageOf(error)}`;
  if (isOutOfSpace(error) || code === TOO_LARGE) {
    return new ParleyError('STORE_FULL', message, {
      hint: 'free space on the disk of the nats-server, or raise the limits of its JetStream, the account or the stream',
      cause: error,
    });
  }
  if (code === null && error instanceof NatsError && error.code === ErrorCode.NoResponders) {
    const why = 'no JetStream server answers, or its cluster has no leader; nothing was done';
    return new ParleyError('STORE_UNAVAILABLE', `could not ${doing}: ${why}`, {
      hint: 'start more than half of the servers of the cluster, or enable JetStream; then try again, without a restart',
      cause: error,
    });
  }
  return new ParleyError('STORE_UNAVAILABLE', message, {
    hint: 'check that the nats-server runs with JetStream, and that these are credentials of a daemon; the store continues when it answers',
    cause: error,
  });
}

/**
 * Whether the server answers and stores what it is sent. A server whose disk is full refuses, or falls silent.
 *
 * ANSWERS-1 A fault ends with the next answer about the same thing. One that is not repeated for `MEMORY_MS` is over, because
 *           nothing may ask again.
 */
export class Answers {
  readonly #silentMs: () => number;
  readonly #isConnected: () => boolean;
  readonly #faults = new Map<string, { readonly cause: unknown; readonly at: number }>();

  /** `silentMs`: how long an answer may take. A lost connection says nothing about the server. */
  constructor(silentMs: () => number, isConnected: () => boolean) {
    this.#silentMs = silentMs;
    this.#isConnected = isConnected;
  }

  /** `about` names what is asked, for one answer. */
  async watch<T>(about: string, asking: Promise<T>): Promise<T> {
    const ms = this.#silentMs();
    const timer = setTimeout(() => this.#note(about, new Error(`no answer for ${ms} ms`)), ms).unref();
    try {
      const answer = await asking;
      this.#faults.delete(about);
      return answer;
    } catch (error) {
      if (isOutOfSpace(error) || isUnanswered(error)) this.#note(about, error);
      else this.#faults.delete(about);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Why requests wait for the server, or are refused; null: it answers, and has space (ANSWERS-1). */
  get fault(): ParleyError | null {
    const since = performance.now() - MEMORY_MS;
    for (const [about, { cause, at }] of this.#faults) {
      if (at > since) return isOutOfSpace(cause) ? storeError(cause, about) : silenceError(cause, about);
      this.#faults.delete(about);
    }
    return null;
  }

  #note(about: string, cause: unknown): void {
    if (this.#isConnected()) this.#faults.set(about, { cause, at: performance.now() });
  }
}

function isUnanswered(error: unknown): boolean {
  return error instanceof NatsError && error.code === ErrorCode.Timeout && !error.api_error;
}

function silenceError(cause: unknown, doing: string): ParleyError {
  return new ParleyError('NATS_SILENT', `the nats-server does not answer: could not ${doing}`, {
    hint: 'check the server and its disk: a full disk stops JetStream, and some versions need a restart after it has space again. The request may take effect later: repeat it with the same id',
    cause,
  });
}
