import { type Msg, type NatsConnection, nanos, type Subscription } from 'nats';
import { newInbox } from '../ingress/stream-consumer.ts';
import { brokerError } from '../streams/broker-error.ts';

/**
 * Pulls from one durable consumer, one after the other.
 *
 * TOKEN-PULLS-1 No more messages arrive than were asked for.
 * TOKEN-PULLS-2 A pull always ends: filled, expired, or broken when nothing was heard beyond its time.
 * TOKEN-PULLS-3 Pulls are short: what the server hands to a daemon that has frozen comes again only after a silence.
 */

export type PullEnd = 'filled' | 'expired' | { readonly broken: string };

const EXPIRES_MS = 3_000;
/** Beyond its end: the server says when a pull is over, unless it is gone. */
const SLACK_MS = 2_000;

export class TokenPulls {
  readonly #connection: NatsConnection;
  readonly #subject: string;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #onMessage: (message: Msg) => void;
  #missing = 0;
  #end: ((end: PullEnd) => void) | null = null;

  constructor(
    connection: NatsConnection,
    stream: string,
    consumer: string,
    onMessage: (message: Msg) => void,
  ) {
    this.#connection = connection;
    this.#subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`;
    this.#onMessage = onMessage;
    this.#inbox = newInbox(connection);
    this.#subscription = connection.subscribe(this.#inbox, {
      callback: (error, message) => (error ? this.interrupt(error.message) : this.#receive(message)),
    });
  }

  pull(count: number): Promise<PullEnd> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.interrupt('the server fell silent'), EXPIRES_MS + SLACK_MS); // TOKEN-PULLS-2
      this.#end = (end) => {
        clearTimeout(timer);
        this.#end = null;
        resolve(end);
      };
      this.#missing = count;
      try {
        const request = JSON.stringify({ batch: count, expires: nanos(EXPIRES_MS) });
        this.#connection.publish(this.#subject, request, { reply: this.#inbox });
      } catch (error) {
        this.interrupt(brokerError(error, 'read posts').message);
      }
    });
  }

  interrupt(reason: string): void {
    this.#end?.({ broken: reason });
  }

  close(): void {
    this.interrupt('closed');
    this.#subscription.unsubscribe();
  }

  #receive(message: Msg): void {
    // A status of the server comes on the inbox itself, a message on its own subject: no header can pose as a status.
    if (message.subject !== this.#inbox) {
      this.#onMessage(message);
      this.#missing -= 1;
      if (this.#missing <= 0) this.#end?.('filled');
      return;
    }
    const code = message.headers?.code;
    if (code === 100) return;
    if (code === 404 || code === 408) this.#end?.('expired');
    else this.interrupt(`${code ?? 'no status'} ${message.headers?.description ?? ''}`.trim());
  }
}
