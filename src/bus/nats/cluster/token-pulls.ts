import { type Msg, type NatsConnection, nanos, type Subscription } from 'nats';
import { newInbox } from '../ingress/stream-consumer.ts';
import { brokerError } from '../streams/broker-error.ts';

/**
 * Pulls from one durable consumer, one pull at a time.
 *
 * TOKEN-PULLS-1 A pull delivers at most the requested number of messages.
 * TOKEN-PULLS-2 A pull always ends: filled, expired, or broken when the server does not end it in time.
 * TOKEN-PULLS-3 Pulls are short, because tokens that go to a frozen daemon are delivered again only after `ack_wait`.
 */

export type PullEnd = 'filled' | 'expired' | { readonly broken: string };

export const EXPIRES_MS = 3_000;
/** The server reports the end of a pull; after this extra time it counts as unreachable. */
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
      const timer = setTimeout(() => this.interrupt('the server does not answer'), EXPIRES_MS + SLACK_MS);
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
    // A status of the server arrives on the inbox, a message on its own subject, so no header can imitate a status.
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
