import type { SharedIngressOptions, Token } from '../../sharing.ts';
import { FairQueue } from '../ingress/fair-queue.ts';
import { EXPIRES_MS } from './token-pulls.ts';

/**
 * Tokens that were received and wait to be handed on, in turn by publisher (`fair-queue.ts`).
 *
 * TOKEN-QUEUE-1 A waiting token is kept, so that no other daemon gets it meanwhile.
 * TOKEN-QUEUE-2 When this daemon leaves, waiting tokens are given back after the end of its last pull: else nats-server 2.9.10 assigns
 *    one to that pull, loses it until `ack_wait`, and delivers its newest message again.
 */

/** Tokens that wait. Three daemons reach the limit of the consumer (`MOST_PENDING` in `shared-ingress.ts`). */
const MOST_WAITING = 16_000;
/** The part of `maxInFlight` that one publisher may use. */
const SHARE_OF_PUBLISHER = 0.75;
const CONVERSATIONS_OF_PUBLISHER = 32;

type Options = Pick<SharedIngressOptions, 'maxInFlight' | 'failureTimeoutMs' | 'onToken'> & {
  readonly keep: (token: Token) => void;
  readonly giveBack: (token: Token, afterMs: number) => void;
};

export class TokenQueue {
  readonly #options: Options;
  readonly #queue: FairQueue<Token>;
  readonly #waiting = new Set<Token>();
  readonly #keeping: NodeJS.Timeout;

  constructor(options: Options) {
    this.#options = options;
    const { maxInFlight, failureTimeoutMs, keep, onToken } = options;
    const limits = {
      maxInFlight,
      perPublisher: Math.ceil(maxInFlight * SHARE_OF_PUBLISHER),
      conversationsPerPublisher: CONVERSATIONS_OF_PUBLISHER,
      maxBytes: Number.POSITIVE_INFINITY,
      maxParked: MOST_WAITING,
      maxKept: Number.POSITIVE_INFINITY,
    };
    this.#queue = new FairQueue<Token>(limits, {
      handle: async ({ message: token }) => {
        this.#waiting.delete(token);
        await onToken(token);
        return true;
      },
      keep: (token) => token,
      fetch: async () => null, // never called: each token is in memory
      settled: () => undefined,
    });
    this.#keeping = setInterval(() => this.#waiting.forEach(keep), failureTimeoutMs / 3).unref();
  }

  /** How many more tokens may be offered. */
  get capacity(): number {
    return this.#queue.capacity;
  }

  /** Resolves when a token was processed. */
  change(): Promise<void> {
    return this.#queue.change();
  }

  /** `publisher`: of the token's post. */
  offer(publisher: string, token: Token): void {
    const { sequence, conversation } = token;
    this.#waiting.add(token);
    this.#queue.offer({ sequence, publisher, conversation, bytes: 0, message: token });
  }

  /** No token is offered any more. */
  close(): void {
    clearInterval(this.#keeping);
    this.#queue.close();
  }

  /** Call it after `close`. Resolves when the tokens in flight are processed. */
  async drain(): Promise<void> {
    for (const token of this.#waiting) this.#options.giveBack(token, EXPIRES_MS);
    while (this.#queue.inFlight > 0) await this.#queue.change();
  }
}
