import type { Entry, LiveChunk } from '../conversation/index.ts';
import type { Delivery, StreamPosition } from './deliveries.ts';
import type { Owner } from './settled.ts';

/**
 * What a daemon needs of a bus to share its work with others on the same server and prefix.
 *
 * SHARING-1 A token is a hint that the stream has posts of a conversation up to a sequence; the stream has their order. It is
 *    delivered again, to any daemon that asks, until it is acknowledged.
 * SHARING-2 An acknowledgement means that every post of the conversation up to there is durable, in its log or as a dead letter.
 *    That is true at any later time, so a daemon need not own a token to acknowledge it.
 */

export interface Token extends StreamPosition {
  readonly conversation: string;
  /** Keeps and acknowledges the token, for any daemon that knows it. */
  readonly handle: string;
  /** It was delivered before, and not acknowledged. */
  readonly isRepeated: boolean;
  /** When the stream took its post, in milliseconds: the sequences of a stream that lost its end are used again. */
  readonly takenAt: number;
}

/** The result of a question to another daemon. */
export type Heard<Body = unknown> =
  | { readonly kind: 'answered'; readonly body: Body }
  /** The server knows no such daemon. */
  | { readonly kind: 'no-responder' }
  /** It did not answer in time: frozen, overloaded or cut off. */
  | { readonly kind: 'silent' };

/**
 * Messages between daemons, as JSON; `peer-contract.ts` has their fields. `tell` may lose a message; a question is
 * answered, or the asker learns that it was not.
 */
export interface Peers {
  ask(daemon: string, verb: string, body: unknown, timeoutMs: number): Promise<Heard>;
  tell(daemon: string, verb: string, body: unknown): void;
  /** To every daemon, this one included. */
  tellAll(verb: string, body: unknown): void;
  /** `undefined` sends no answer. Resolves when this daemon can be asked. */
  listen(handler: (verb: string, body: unknown) => Promise<unknown>): Promise<void>;
  /** Called each time that the connection is lost. It comes back by itself. */
  onLost(listener: () => void): void;
}

export interface SharedIngressOptions {
  /** A token that is neither kept nor acknowledged for so long is delivered again. */
  readonly failureTimeoutMs: number;
  /** Where reading begins, if no daemon has read before; of another life of the stream: at its first post. */
  readonly after: StreamPosition | null;
  /** The store that posts go to. Posts that other stores settled are skipped (`settled.ts`). */
  readonly owner: Owner;
  /** Every post of the stream is delivered, also settled ones. Only for a daemon that is alone. */
  readonly isReplay?: boolean;
  /** Tokens that are held at once. */
  readonly maxInFlight: number;
  /** Resolves when the token is acknowledged, passed on or given back. Must not reject. */
  readonly onToken: (token: Token) => Promise<void>;
  /** Every post up to here is durable or refused. */
  readonly onFloor: (position: StreamPosition) => void;
  /** Which posts another store settled, each time that this changes: none of them is delivered. */
  readonly onSkip?: (isElsewhere: (position: StreamPosition) => boolean) => void;
  /** Called each time before reading begins: the stream may have lost its newest posts. Repeated if it rejects. */
  readonly onBegin?: () => Promise<void>;
}

export interface SharedIngress {
  /** The first post of a conversation after `after` and up to `upTo`. */
  next(conversation: string, after: number, upTo: number): Promise<Delivery | null>;
  /** The post with this sequence; null: it was purged. */
  at(sequence: number): Promise<Delivery | null>;
  /**
   * Posts of the same publisher into the same conversation, from this one on, that have a dead letter: by sequence, the
   * time of the letter in milliseconds.
   */
  refusedFrom(delivery: Delivery): Promise<ReadonlyMap<number, number>>;
  /** Extends the lease of the token by `failureTimeoutMs`. */
  keep(token: Token): void;
  acknowledge(token: Token): void;
  /** Has the token delivered again, at once or after a delay. */
  giveBack(token: Token, afterMs?: number): void;
  /** Names the life of the stream that tokens come from now. */
  readonly life: string;
  /** Takes no new tokens; resolves when those under way are finished. */
  stop(): Promise<void>;
}

/** What any daemon publishes of a conversation. */
export interface Feed {
  entries(entries: readonly Entry[]): void;
  live(agent: string, chunk: LiveChunk): void;
}

export interface Sharing {
  readonly peers: Peers;
  /** `ready` resolves when nothing that is published from then on is missed. */
  follow(conversation: string, feed: Feed): { readonly ready: Promise<void>; stop(): void };
  startIngress(options: SharedIngressOptions): Promise<SharedIngress>;
}
