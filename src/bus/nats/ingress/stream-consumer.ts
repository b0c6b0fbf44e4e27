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
import type { StreamMessage } from './stream-message.ts';

/**
 * A short-lived consumer that reads one stream in order, by pulls. It keeps no state worth saving: whatever happens
 * to it (the connection lost, the server restarted, itself deleted), it ends, and its owner opens the next one.
 *
 * STREAM-CONSUMER-1 Messages are handed over in stream order without a gap in the consumer's own numbering; else it ends.
 * STREAM-CONSUMER-2 No more messages arrive than were asked for, and with them no more bytes than the server can send ahead of a reader
 *    that is busy; but one message, however large.
 * STREAM-CONSUMER-3 A pull always ends: filled, expired, or broken within `SILENCE_MS` of the server's last sign of life.
 */

export type PullEnd =
  | { readonly kind: 'filled' }
  | { readonly kind: 'expired' }
  | { readonly kind: 'broken'; readonly reason: string };

const EXPIRES_MS = 20_000;
const HEARTBEAT_MS = 2_000;
const SILENCE_MS = 5_000;
/** The server takes a client for too slow that has 64 MiB to read. */
const MAX_BYTES = 8 * 1_024 * 1_024;
/** The server forgets the consumer of a daemon that was killed. */
const INACTIVE_MS = 60_000;

/** Of a body whose publisher made the server's header unreadable. Bytes. */
const UNKNOWN_SIZE = 1_024 * 1_024;

/** The next message would go beyond `max_bytes`: the pull is over. */
const TOO_MANY_BYTES = /exceeds maxbytes/i;
/** Servers from 2.10 on add this to a pull that had room for more bytes. It is over by then, and the next one may be under way. */
const IS_FILLED = /batch completed/i;

interface Pull {
  missing: number;
  isEmpty: boolean;
  readonly onMessage: (message: StreamMessage) => void;
  readonly end: (end: PullEnd) => void;
}

export class StreamConsumer {
  readonly #connection: NatsConnection;
  readonly #manager: JetStreamManager;
  readonly #stream: string;
  readonly #name: string;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  /** Bodies do not come, only their sizes. */
  readonly isHeadersOnly: boolean;
  #pull: Pull | null = null;
  #watchdog: NodeJS.Timeout | undefined;
  #broken: string | null = null;
  #delivered = 0;
  #pending: number;
  /** The next message alone is too large for a pull (STREAM-CONSUMER-2). */
  #isLarge = false;

  /** Opens a consumer whose first message is the first one at or behind `from`. */
  static async open(
    connection: NatsConnection,
    manager: JetStreamManager,
    stream: string,
    from: number,
    { isHeadersOnly = false, filter }: { readonly isHeadersOnly?: boolean; readonly filter?: string } = {},
  ): Promise<StreamConsumer> {
    const name = `parley-${nuid.next()}`;
    try {
      const { num_pending: pending } = await manager.consumers.add(stream, {
        name,
        ack_policy: AckPolicy.None,
        deliver_policy: DeliverPolicy.StartSequence,
        opt_start_seq: Math.max(1, from),
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

  /** Messages of the stream that come after those that were handed over. */
  get pending(): number {
    return this.#pending;
  }

  /** Asks for up to `count` messages. One pull at a time. */
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

  /** Ends the consumer: the pull under way and every later one are `broken`. */
  interrupt(reason: string): void {
    this.#broken ??= reason;
    this.#pull?.end({ kind: 'broken', reason: this.#broken });
  }

  close(): void {
    this.interrupt('closed');
    this.#subscription.unsubscribe();
    if (this.#connection.isClosed()) return;
    // Best effort, and not waited for: the server forgets it by itself.
    this.#manager.consumers.delete(this.#stream, this.#name).catch(() => undefined);
  }

  #receive(message: Msg): void {
    if (this.#broken !== null) return;
    // A status of the server comes on the inbox itself, a message on its own subject: no header can pose as a status.
    if (message.subject === this.#inbox) this.#status(message);
    else this.#data(message);
  }

  #data(message: Msg): void {
    const place = placeOf(message.reply);
    if (!place || place.consumerSequence !== this.#delivered + 1) {
      this.interrupt(`a message is missing before ${message.reply}`); // STREAM-CONSUMER-1
      return;
    }
    const pull = this.#pull;
    if (!pull) {
      this.interrupt('a message came that was not asked for'); // STREAM-CONSUMER-2
      return;
    }
    this.#delivered = place.consumerSequence;
    this.#pending = pendingOf(message.reply);
    pull.missing -= 1;
    pull.isEmpty = false;
    this.#isLarge = false;
    const { subject, data, headers } = message;
    const messageId = headers?.get('Nats-Msg-Id') || null;
    const size = this.isHeadersOnly ? sizeOf(headers) : data.length;
    pull.onMessage({ sequence: place.sequence, time: place.time, subject, data, size, messageId });
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

  /** STREAM-CONSUMER-3 */
  #watch(): void {
    clearTimeout(this.#watchdog);
    if (!this.#pull) return; // a heartbeat of a pull that has ended
    this.#watchdog = setTimeout(() => this.interrupt('the server fell silent'), SILENCE_MS);
  }
}

/** Of a body that did not come: the server adds it after the publisher's own headers, which may contain anything. */
function sizeOf(headers: Msg['headers']): number {
  const size = headers?.last('Nats-Msg-Size') ?? '';
  return /^\d{1,9}$/.test(size) ? Number(size) : UNKNOWN_SIZE;
}

/** Below the prefix that the connection was opened with: the server may leave this user no other. */
export function newInbox(connection: NatsConnection): string {
  const { options } = connection as { readonly options?: { readonly inboxPrefix?: string } };
  return createInbox(options?.inboxPrefix);
}

interface Place {
  /** How often it was handed out, this time included. */
  readonly deliveries: number;
  readonly sequence: number;
  readonly consumerSequence: number;
  readonly time: bigint;
}

/**
 * Reads `$JS.ACK[.<domain>.<account>].<stream>.<consumer>.<count>.<sequence>.<consumer sequence>.<nanos>.<pending>[.…]`.
 * By hand, since the client turns the nanoseconds into a number and loses digits.
 */
export function placeOf(reply: string | undefined): Place | null {
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

/** How many messages come after one, by a reply subject that `placeOf` reads. */
function pendingOf(reply: string | undefined): number {
  const tokens = reply?.split('.') ?? [];
  return Number(tokens[tokens.length === 9 ? 8 : 10]);
}
