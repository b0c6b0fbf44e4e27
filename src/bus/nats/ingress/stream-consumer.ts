import {
  AckPolicy,
  createInbox,
  DeliverPolicy,
  type JetStreamManager,
  type Msg,
  type NatsConnection,
  nanos,
  nuid,
  ReplayPolicy,
  type Subscription,
} from 'nats';
import { brokerError } from '../streams/broker-error.ts';
import { headersOf, type StreamMessage } from './stored-posts.ts';

/**
 * A short-lived consumer that reads one stream in order, by pulls. It has no state to save: after any failure (connection
 * lost, server restarted, consumer deleted) it ends, and its owner opens another one.
 *
 * STREAM-CONSUMER-1 Messages arrive in stream order without a gap in the consumer's own numbering; otherwise it ends.
 * STREAM-CONSUMER-2 A pull delivers at most the requested number of messages and at most `MAX_BYTES`, or one larger message.
 * STREAM-CONSUMER-3 A pull always ends: filled, expired, or broken `SILENCE_MS` after the server's last message or heartbeat.
 */

export type PullEnd =
  | { readonly kind: 'filled' }
  | { readonly kind: 'expired' }
  | { readonly kind: 'broken'; readonly reason: string };

const EXPIRES_MS = 20_000;
const HEARTBEAT_MS = 2_000;
const SILENCE_MS = 5_000;
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

  /** Requests up to `count` messages. One pull at a time. */
  pull(count: number, onMessage: (message: StreamMessage) => void): Promise<PullEnd> {
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
        expires: nanos(EXPIRES_MS),
        idle_heartbeat: nanos(HEARTBEAT_MS),
      };
      const subject = `$JS.API.CONSUMER.MSG.NEXT.${this.#stream}.${this.#name}`;
      try {
        this.#connection.publish(subject, JSON.stringify(request), { reply: this.#inbox });
      } catch (error) {
        this.interrupt(brokerError(error, `read stream ${this.#stream}`).message);
      }
    });
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
