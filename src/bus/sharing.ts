import type { Entry } from '../conversation/index.ts';
import type { IngressDelivery, StreamPosition } from './deliveries.ts';
import type { LiveChunk } from './live.ts';
import type { Owner } from './settled.ts';

/**
 * What a daemon needs of a bus to share its work with others on the same server and prefix.
 *
 * SHARING-1 A token is a hint that the stream has posts of a conversation up to there; the stream itself has their order. It
 *    comes again, to whichever daemon asks, until it is acknowledged.
 * SHARING-2 An acknowledgement says that everything of the conversation up to there is durable, in its log or as a dead letter.
 *    That stays true whoever says it, and however late: no daemon has to own a token to acknowledge it.
 */

export interface Token extends StreamPosition {
  readonly conversation: string;
  /** By which it is kept and acknowledged: whoever knows it may. */
  readonly handle: string;
  /** It was handed out before, and not acknowledged. */
  readonly isRepeated: boolean;
  /** When the stream took its post, in milliseconds: the sequences of a stream that lost its end are used again. */
  readonly takenAt: number;
}

/** What came of asking another daemon. */
export type Heard<Body = unknown> =
  | { readonly kind: 'answered'; readonly body: Body }
  /** There is no such daemon any more. */
  | { readonly kind: 'nobody' }
  /** It did not answer in time: frozen, overloaded or cut off. */
  | { readonly kind: 'silent' };

/**
 * Messages between daemons, as JSON; `peer-contract.ts` has their fields. A message that is told may be lost; a question is
 * answered, or the asker learns that it was not.
 */
export interface Peers {
  ask(daemon: string, verb: string, body: unknown, timeoutMs: number): Promise<Heard>;
  tell(daemon: string, verb: string, body: unknown): void;
  /** To every daemon, oneself included. */
  tellAll(verb: string, body: unknown): void;
  /** What is answered with `undefined` is not answered. From when it resolves on, this daemon can be asked. */
  listen(handler: (verb: string, body: unknown) => Promise<unknown>): Promise<void>;
  /** Called each time that the connection is lost: it comes back by itself, and nothing says when that of others does. */
  onLost(listener: () => void): void;
}

export interface SharedIngressOptions {
  /** A token that is neither kept nor acknowledged for so long comes again. */
  readonly silenceMs: number;
  /** Where reading begins, if nobody has read before; of another life of the stream: at its first post. */
  readonly after: StreamPosition | null;
  /** The store that posts go to. What others settled is passed over (`settled.ts`). */
  readonly owner: Owner;
  /** Everything that the stream holds is handed out, whoever settled it. Only for a daemon that is alone. */
  readonly isReplay?: boolean;
  /** Tokens that are held at once. */
  readonly maxInFlight: number;
  /** Takes the token; resolves when it is acknowledged, handed on or given back. Must not reject. */
  readonly onToken: (token: Token) => Promise<void>;
  /** Every post up to here is durable or refused. */
  readonly onFloor: (position: StreamPosition) => void;
  /** Which posts another store settled, each time that this is known anew: none of them is handed out. */
  readonly onSkip?: (isElsewhere: (position: StreamPosition) => boolean) => void;
  /** Called each time before reading begins: the stream may have lost its newest posts. Repeated if it rejects. */
  readonly onBegin?: () => Promise<void>;
}

export interface SharedIngress {
  /** The first post of a conversation behind `after`, `upTo` at the latest. */
  next(conversation: string, after: number, upTo: number): Promise<IngressDelivery | null>;
  /** The post at this place; null: it was purged. */
  at(sequence: number): Promise<IngressDelivery | null>;
  /**
   * Posts of the same publisher into the same conversation, from this one on, that have a dead letter: by their place,
   * when the stream of letters took that, in milliseconds.
   */
  refusedFrom(delivery: IngressDelivery): Promise<ReadonlyMap<number, number>>;
  /** It is being worked on: it does not come again for another `silenceMs`. */
  keep(token: Token): void;
  /** SHARING-2 */
  acknowledge(token: Token): void;
  /** Others may have it, at once or a little later. */
  giveBack(token: Token, afterMs?: number): void;
  /** Names the life of the stream that tokens come from now. */
  readonly life: string;
  /** Takes no new tokens; resolves when those under way are done with. */
  stop(): Promise<void>;
}

/** What is published of a conversation, whichever daemon works on it. */
export interface Feed {
  entries(entries: readonly Entry[]): void;
  live(agent: string, chunk: LiveChunk): void;
}

export interface Sharing {
  readonly peers: Peers;
  /** `ready` resolves when everything that is published from then on is heard. */
  follow(conversation: string, feed: Feed): { readonly ready: Promise<void>; stop(): void };
  startIngress(options: SharedIngressOptions): Promise<SharedIngress>;
}
