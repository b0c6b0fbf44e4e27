import {
  AckPolicy,
  createInbox,
  DeliverPolicy,
  type JetStreamManager,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  nanos,
  nuid,
  ReplayPolicy,
  type StoredMsg,
  type StreamInfo,
  type Subscription,
} from 'nats';
import {
  apiErrorCode,
  MESSAGE_NOT_FOUND,
  messageOf,
  STREAM_NOT_FOUND,
  sleep,
} from '../../../kernel/index.ts';
import type { BusLog } from '../../port.ts';
import type { Delivery } from '../../post.ts';
import type { Subjects } from '../../subjects.ts';
import type { ConnectionWatch } from '../connection/connection.ts';
import { brokerError } from '../streams/broker-error.ts';
import { findMessage } from '../streams/streams.ts';
import type { Capacity } from './capacity.ts';

/** Posts as the ingress stream stores them: one by its sequence, or in order by a consumer. */

/** A message of a stream, read by a consumer or by its sequence. */
export interface StreamMessage {
  readonly sequence: number;
  /** When the stream stored it: nanoseconds since the epoch. */
  readonly time: bigint;
  readonly subject: string;
  readonly data: Uint8Array;
  /** The size of its body in bytes, also where `data` is empty because only headers were read. */
  readonly size: number;
  /** The header `Nats-Msg-Id`, if any. */
  readonly messageId: string | null;
  /** The header `traceparent`, if any. */
  readonly traceparent: string | null;
}

function messageFrom({ seq, subject, data, header, timestamp }: StoredMsg): StreamMessage {
  const time = nanosecondsOf(timestamp) ?? 0n;
  return { sequence: seq, time, subject, data, size: data.length, ...headersOf(header) };
}

/** What a publisher may set. */
function headersOf(header: MsgHdrs | undefined): Pick<StreamMessage, 'messageId' | 'traceparent'> {
  return { messageId: header?.get('Nats-Msg-Id') || null, traceparent: header?.get('traceparent') || null };
}

/** Nanoseconds since the epoch of a server time such as `2026-11-21T23:27:07.3957029Z`; null if invalid. */
export function nanosecondsOf(time: string): bigint | null {
  const match = /^([^.Z]+)(?:\.(\d{1,9}))?Z$/.exec(time);
  const milliseconds = match ? Date.parse(`${match[1]}Z`) : Number.NaN;
  if (!match || Number.isNaN(milliseconds)) return null;
  return BigInt(milliseconds) * 1_000_000n + BigInt((match[2] ?? '').padEnd(9, '0'));
}

type Sender = Pick<Delivery, 'publisher' | 'conversation'>;

/** The stream's subject filter guarantees two tokens. The decoder refuses names that are not legal. */
export function senderOf(subjects: Subjects, { subject }: Pick<StreamMessage, 'subject'>): Sender {
  return subjects.parseIn(subject) ?? { publisher: '', conversation: '' };
}

/** `created`: the creation time of the stream. */
export function deliveryOf(
  created: string,
  sender: Sender,
  { sequence, time, data, messageId, traceparent }: StreamMessage,
): Delivery {
  return {
    position: { stream: created, sequence },
    takenAt: Number(time / 1_000_000n),
    fallbackId: `in-${sequence}-${time.toString(36)}`,
    ...sender,
    body: data,
    messageId,
    ...(traceparent !== null && { traceparent }),
  };
}

const PAUSE_MS = 100;
const CONNECTION_TIMEOUT_MS = 2_000;
/** A server that shuts down answers "not found" for a moment. One that does so for longer cannot read its disk. */
const READ_TIMEOUT_MS = 60_000;

type StreamSources = Pick<IngressSources, 'manager' | 'subjects'>;

/** Retries until the server answers. Null: removed, or unreadable for the server. Rejects when the reader stops. */
export async function fetchPost(
  { manager, subjects, log, watch }: Pick<IngressSources, 'manager' | 'subjects' | 'log' | 'watch'>,
  sequence: number,
  stopping: AbortSignal,
): Promise<StreamMessage | null> {
  const { ingressStream: stream } = subjects;
  let unreadSince: number | null = null;
  for (let hasReported = false; !stopping.aborted; ) {
    try {
      return messageFrom(await manager.streams.getMessage(stream, { seq: sequence }));
    } catch (error) {
      const isMissing = apiErrorCode(error) === MESSAGE_NOT_FOUND;
      const gone = isMissing ? await isGone(manager, stream, sequence).catch(() => null) : null;
      if (gone === true) {
        log.warn({ sequence }, 'an unprocessed post was removed from the ingress stream');
        return null;
      }
      unreadSince = gone === false ? (unreadSince ?? performance.now()) : null;
      if (unreadSince !== null && performance.now() - unreadSince > READ_TIMEOUT_MS) {
        log.error(
          { sequence },
          'nats-server cannot read a post of its ingress stream; the post is skipped. Check the disk of the server',
        );
        return null;
      }
      if (!hasReported)
        log.warn({ sequence, reason: messageOf(error) }, 'a post of the backlog cannot be read; retrying');
      hasReported = true;
      await sleep(PAUSE_MS, stopping);
      await watch.connected(CONNECTION_TIMEOUT_MS, stopping);
    }
  }
  throw new Error('stopping');
}

/** The post with this sequence of the stream with this creation time; null: the stream does not have it. */
export async function readDelivery(
  { manager, subjects }: StreamSources,
  created: string,
  sequence: number,
): Promise<Delivery | null> {
  const stored = await findMessage(manager, subjects.ingressStream, { seq: sequence });
  return stored && deliveryOf(created, senderOf(subjects, stored), messageFrom(stored));
}

/** When the ingress stream stored a post, in nanoseconds; null: the stream does not have it. */
export async function timeOf({ manager, subjects }: StreamSources, sequence: number): Promise<bigint | null> {
  const stored = await findMessage(manager, subjects.ingressStream, { seq: sequence });
  return stored && nanosecondsOf(stored.timestamp);
}

/** The sequence of the newest message whose subject matches; 0: there is none. */
export async function lastSequence(
  manager: JetStreamManager,
  stream: string,
  filter: string,
): Promise<number> {
  return (await findMessage(manager, stream, { last_by_subj: filter }))?.seq ?? 0;
}

/**
 * Whether the stream no longer has a message. "Not found" alone does not prove it: the server also answers that when it
 * cannot read the message, for example during its shutdown. Rejects when the server does not answer.
 */
export async function isGone(manager: JetStreamManager, stream: string, sequence: number): Promise<boolean> {
  try {
    const { state } = await manager.streams.info(stream, { deleted_details: true });
    const { first_seq: first, last_seq: last, deleted = [] } = state;
    return sequence < first || sequence > last || deleted.includes(sequence);
  } catch (error) {
    if (apiErrorCode(error) === STREAM_NOT_FOUND) return true;
    throw error;
  }
}

export type PullEnd =
  | { readonly kind: 'filled' }
  | { readonly kind: 'expired' }
  | { readonly kind: 'broken'; readonly reason: string };

const EXPIRES_MS = 20_000;
/** For messages that the stream has. */
const SOON_MS = 1_000;
const HEARTBEAT_MS = 2_000;
const SILENCE_MS = 5_000;
/** Messages of one pull of `toEnd`. */
const PAGE = 1_000;
/** Bounds what the server sends to a busy reader: it disconnects a client with 64 MiB pending as too slow. */
const MAX_BYTES = 8 * 1_024 * 1_024;
/** The server removes the consumer of a killed daemon after this time. */
const INACTIVE_MS = 60_000;

/** Bytes that are assumed for a body whose publisher made the server's header unreadable. */
const UNKNOWN_SIZE = 1_024 * 1_024;

/** The next message would exceed `max_bytes`: the pull has ended. */
const TOO_MANY_BYTES = /exceeds maxbytes/i;
/** Servers from 2.10 on send this after a pull below `max_bytes`. The next pull may already be running. */
const IS_FILLED = /batch completed/i;

interface Pull {
  missing: number;
  isEmpty: boolean;
  readonly onMessage: (message: StreamMessage) => void;
  readonly end: (end: PullEnd) => void;
}

interface ConsumerOptions {
  readonly isHeadersOnly?: boolean;
  readonly filter?: string;
  readonly since?: Date;
}

/**
 * A short-lived consumer that reads one stream in order, by pulls. It has no state to save: after any failure (connection
 * lost, server restarted, consumer deleted) it ends, and its owner opens another one.
 *
 * STREAM-CONSUMER-1 Messages arrive in stream order without a gap in the consumer's own numbering; otherwise it ends.
 * STREAM-CONSUMER-2 A pull delivers at most the requested number of messages and at most `MAX_BYTES`, or one larger message.
 * STREAM-CONSUMER-3 A pull always ends: filled, expired, or broken `SILENCE_MS` after the server's last message or heartbeat.
 */
export class StreamConsumer {
  readonly #connection: NatsConnection;
  readonly #manager: JetStreamManager;
  readonly #stream: string;
  readonly #name: string;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  /** Messages arrive without bodies, only with their sizes. */
  readonly isHeadersOnly: boolean;
  #pull: Pull | null = null;
  #watchdog: NodeJS.Timeout | undefined;
  #broken: string | null = null;
  #delivered = 0;
  #pending: number;
  /** The next message alone exceeds `MAX_BYTES` (STREAM-CONSUMER-2). */
  #isLarge = false;

  /** Opens a consumer that starts with the first message whose sequence is at least `from`, or that came at `since` or later. */
  static async open(
    connection: NatsConnection,
    manager: JetStreamManager,
    stream: string,
    from: number,
    { isHeadersOnly = false, filter, since }: ConsumerOptions = {},
  ): Promise<StreamConsumer> {
    const name = `parley-${nuid.next()}`;
    try {
      const { num_pending: pending } = await manager.consumers.add(stream, {
        name,
        ack_policy: AckPolicy.None,
        ...(since
          ? { deliver_policy: DeliverPolicy.StartTime, opt_start_time: since.toISOString() }
          : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: Math.max(1, from) }),
        replay_policy: ReplayPolicy.Instant,
        mem_storage: true,
        ...(isHeadersOnly && { headers_only: true }),
        ...(filter !== undefined && { filter_subject: filter }),
        num_replicas: 1,
        inactive_threshold: nanos(INACTIVE_MS),
      });
      return new StreamConsumer(connection, manager, stream, { name, isHeadersOnly, pending });
    } catch (error) {
      throw brokerError(error, `read stream ${stream}`);
    }
  }

  private constructor(
    connection: NatsConnection,
    manager: JetStreamManager,
    stream: string,
    {
      name,
      isHeadersOnly,
      pending,
    }: { readonly name: string; readonly isHeadersOnly: boolean; readonly pending: number },
  ) {
    this.#pending = pending;
    this.isHeadersOnly = isHeadersOnly;
    this.#connection = connection;
    this.#manager = manager;
    this.#stream = stream;
    this.#name = name;
    this.#inbox = newInbox(connection);
    this.#subscription = connection.subscribe(this.#inbox, {
      callback: (error, message) => (error ? this.interrupt(error.message) : this.#receive(message)),
    });
  }

  /** Messages in the stream after the last one that was delivered. */
  get pending(): number {
    return this.#pending;
  }

  /** Reads the messages that the stream has, until `isOver`. Rejects if the consumer breaks. */
  async toEnd(
    onMessage: (message: StreamMessage) => void,
    isOver: () => boolean = () => false,
  ): Promise<void> {
    while (this.#pending > 0 && !isOver()) {
      const end = await this.pull(Math.min(PAGE, this.#pending), onMessage, SOON_MS);
      if (end.kind === 'broken') throw brokerError(new Error(end.reason), `read stream ${this.#stream}`);
      // A message was deleted meanwhile: the server counts again.
      if (end.kind === 'expired') this.#pending = await this.#counted();
    }
  }

  /** Requests up to `count` messages, and waits for them. One pull at a time. */
  pull(count: number, onMessage: (message: StreamMessage) => void, expiresMs = EXPIRES_MS): Promise<PullEnd> {
    if (this.#broken !== null) return Promise.resolve({ kind: 'broken', reason: this.#broken });
    return new Promise((resolve) => {
      const end = (outcome: PullEnd) => {
        clearTimeout(this.#watchdog);
        this.#pull = null;
        resolve(outcome);
      };
      this.#pull = { missing: this.#isLarge ? 1 : count, isEmpty: true, onMessage, end };
      this.#watch();
      const request = {
        batch: this.#pull.missing,
        ...(!this.#isLarge && !this.isHeadersOnly && { max_bytes: MAX_BYTES }),
        expires: nanos(expiresMs),
        ...(expiresMs > 2 * HEARTBEAT_MS && { idle_heartbeat: nanos(HEARTBEAT_MS) }),
      };
      const subject = `$JS.API.CONSUMER.MSG.NEXT.${this.#stream}.${this.#name}`;
      try {
        this.#connection.publish(subject, JSON.stringify(request), { reply: this.#inbox });
      } catch (error) {
        this.interrupt(brokerError(error, `read stream ${this.#stream}`).message);
      }
    });
  }

  async #counted(): Promise<number> {
    try {
      const { num_pending } = await this.#manager.consumers.info(this.#stream, this.#name);
      return num_pending;
    } catch (error) {
      throw brokerError(error, `read stream ${this.#stream}`);
    }
  }

  /** Ends the consumer: the current pull and every later one are `broken`. */
  interrupt(reason: string): void {
    this.#broken ??= reason;
    this.#pull?.end({ kind: 'broken', reason: this.#broken });
  }

  close(): void {
    this.interrupt('closed');
    this.#subscription.unsubscribe();
    if (this.#connection.isClosed()) return;
    // Best effort: the server removes it after INACTIVE_MS anyway.
    this.#manager.consumers.delete(this.#stream, this.#name).catch(() => undefined);
  }

  #receive(message: Msg): void {
    if (this.#broken !== null) return;
    // A status of the server arrives on the inbox, a message on its own subject, so no header can imitate a status.
    if (message.subject === this.#inbox) this.#status(message);
    else this.#data(message);
  }

  #data(message: Msg): void {
    const ack = parseAckSubject(message.reply);
    if (!ack || ack.consumerSequence !== this.#delivered + 1) {
      this.interrupt(`a message is missing before ${message.reply}`);
      return;
    }
    const pull = this.#pull;
    if (!pull) {
      this.interrupt('an unrequested message arrived');
      return;
    }
    this.#delivered = ack.consumerSequence;
    this.#pending = pendingOf(message.reply);
    pull.missing -= 1;
    pull.isEmpty = false;
    this.#isLarge = false;
    const { subject, data, headers } = message;
    const size = this.isHeadersOnly ? sizeOf(headers) : data.length;
    pull.onMessage({ sequence: ack.sequence, time: ack.time, subject, data, size, ...headersOf(headers) });
    if (pull.missing === 0) pull.end({ kind: 'filled' });
    else this.#watch();
  }

  #status(message: Msg): void {
    const code = message.headers?.code;
    const description = message.headers?.description ?? '';
    if (code === 100 || (code === 409 && IS_FILLED.test(description))) this.#watch();
    else if (code === 404 || code === 408) this.#pull?.end({ kind: 'expired' });
    else if (code === 409 && TOO_MANY_BYTES.test(description)) {
      this.#isLarge = this.#pull?.isEmpty ?? false;
      this.#pull?.end({ kind: 'filled' });
    } else this.interrupt(`${code ?? 'no status'} ${description}`.trim());
  }

  #watch(): void {
    clearTimeout(this.#watchdog);
    if (!this.#pull) return; // a heartbeat of a pull that has ended
    this.#watchdog = setTimeout(() => this.interrupt('the server does not answer'), SILENCE_MS);
  }
}

/** The size of a body that did not come: the server adds it after the publisher's own headers, which may contain anything. */
function sizeOf(headers: Msg['headers']): number {
  const size = headers?.last('Nats-Msg-Size') ?? '';
  return /^\d{1,9}$/.test(size) ? Number(size) : UNKNOWN_SIZE;
}

/** Uses the inbox prefix of the connection, because the user may have rights to no other. */
export function newInbox(connection: NatsConnection): string {
  const { options } = connection as { readonly options?: { readonly inboxPrefix?: string } };
  return createInbox(options?.inboxPrefix);
}

interface AckSubject {
  /** Delivery attempts, this one included. */
  readonly deliveries: number;
  readonly sequence: number;
  readonly consumerSequence: number;
  readonly time: bigint;
}

/**
 * Reads `$JS.ACK[.<domain>.<account>].<stream>.<consumer>.<count>.<sequence>.<consumer sequence>.<nanos>.<pending>[.…]`.
 * The client's own parser turns the nanoseconds into a number and loses digits.
 */
export function parseAckSubject(reply: string | undefined): AckSubject | null {
  const tokens = reply?.split('.') ?? [];
  if (tokens[0] !== '$JS' || tokens[1] !== 'ACK' || tokens.length < 9) return null;
  const [deliveries, sequence, consumerSequence, time] = tokens.slice(tokens.length === 9 ? 4 : 6);
  const numbers = [deliveries, sequence, consumerSequence, time];
  if (!numbers.every((token) => token && /^\d+$/.test(token))) return null;
  return {
    deliveries: Number(deliveries),
    sequence: Number(sequence),
    consumerSequence: Number(consumerSequence),
    time: BigInt(time ?? ''),
  };
}

/** The number of messages after this one, from a subject that `parseAckSubject` accepts. */
function pendingOf(reply: string | undefined): number {
  const tokens = reply?.split('.') ?? [];
  return Number(tokens[tokens.length === 9 ? 8 : 10]);
}

/** The dependencies of the readers of the ingress stream. */
export interface IngressSources {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly subjects: Subjects;
  readonly log: BusLog;
  readonly capacity: Capacity;
  readonly watch: ConnectionWatch;
  /** The current ingress stream; created if it is missing. */
  readonly stream: () => Promise<StreamInfo>;
  /** Creates the bus's streams that are missing. */
  readonly ensureStreams: () => Promise<unknown>;
}
