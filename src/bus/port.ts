import type { Entry } from '../conversation/index.ts';
import type { Refusal } from '../kernel/index.ts';
import type {
  IngressDelivery,
  Reading,
  ReadPost,
  RefusedRuns,
  StreamPosition,
  UnreadPosts,
} from './deliveries.ts';
import type { AgentMessage, LiveChunk, OfferBody, ToolResults } from './remote-turns.ts';
import type { Owner } from './settled.ts';
import type { Sharing } from './sharing.ts';

/**
 * What the daemon needs of a bus: posts come in by sequence, entries and live chunks go out, requests are answered.
 *
 * BUS-PORT-1 Deliveries of one publisher, and those into one conversation, come in stream order, each until `settled`; after a
 *    lost connection they go on where they stood.
 * BUS-PORT-2 Nothing is purged from the stream that is not settled, and a margin behind that stays.
 * BUS-PORT-3 A publish that cannot be made is dropped in silence only where the contract says best effort (log feed, live).
 */

export type { IngressDelivery, LiveChunk, Reading, ReadPost, RefusedRuns, StreamPosition, UnreadPosts };

/** One verb of the request API. `publisher` is set when it came by `parley.api.<verb>.<publisher>`. */
export interface ApiRequest {
  readonly endpoint: string;
  readonly publisher: string | null;
  /** Of a caller with a token: the name that it binds; null: none. Absent: the caller has no token. */
  readonly name?: string | null;
  /** The decoded JSON body; `{}` for an empty one. */
  readonly body: unknown;
  /** With `delete`: the newest post when the first daemon received the request. Later posts begin a new conversation. */
  readonly upTo?: StreamPosition;
}
export type ApiAnswer =
  | { readonly ok: true; readonly body: unknown }
  | { readonly ok: false; readonly refusal: Refusal };
export type ApiHandler = (request: ApiRequest) => Promise<ApiAnswer>;

export interface IngressOptions {
  /** The store's own position (exclusive); null: it has none. A position of another life of the stream counts as null. */
  readonly after: StreamPosition | null;
  /** The store that posts go to. What others settled is passed over (`settled.ts`). */
  readonly owner: Owner;
  /** Everything that the stream holds is delivered, whoever settled it. */
  readonly isReplay?: boolean;
  /** Deliveries that are not settled yet, at most. */
  readonly maxInFlight: number;
  /** The same of one publisher; by default as many. */
  readonly maxInFlightPerPublisher?: number;
  /** Conversations into which posts of one publisher may be unsettled at once; default: any number. */
  readonly maxConversationsPerPublisher?: number;
  /** Posts that were read and have to wait: of more, none is read. */
  readonly maxParked?: number;
  /** What is kept of their bodies, so that they need not be read again; some megabytes by default. */
  readonly maxKeptBytes?: number;
  /** Bytes of their bodies, about: what was asked for already may go beyond (8 MiB at most, or one post). */
  readonly maxBytesInFlight?: number;
  /** Decides on each post in stream order, as soon as it is read. Must not throw. Default: each is delivered. */
  readonly onRead?: (post: ReadPost) => Reading;
  /** Decides on posts that are not to be read, when reading falls far behind. Null: they are read. Default: all are read. */
  readonly onUnread?: (posts: UnreadPosts) => Promise<void> | null;
  /**
   * Handles one delivery; resolves when it is settled (in a log, or refused). If it rejects, the delivery stays unsettled
   * and comes again, at the latest after a restart.
   */
  readonly onDelivery: (delivery: IngressDelivery) => Promise<void>;
  /** Every delivery up to here is settled: what may be stored as the position. */
  readonly onPosition: (position: StreamPosition) => void;
  /** Which posts another store settled, each time that reading begins: none of them is delivered. */
  readonly onSkip?: (isElsewhere: (position: StreamPosition) => boolean) => void;
  /** Called each time before reading begins: the stream may have lost its newest posts. Repeated if it rejects. */
  readonly onBegin?: () => Promise<void>;
}

/** What is heard of one offer of a turn. */
export type OfferEvent =
  /** A sign of life and nothing more. */
  | { readonly type: 'alive' }
  /** A chunk of text, as those who follow see it. `call` changes with each attempt at it. */
  | { readonly type: 'text'; readonly call: string; readonly delta: string }
  /** `from` is where `answer` goes to. */
  | { readonly type: 'message'; readonly message: AgentMessage; readonly from: string | null }
  | { readonly type: 'invalid'; readonly reason: string };

export type OfferOutcome =
  | { readonly kind: 'accepted'; readonly instance: string }
  | { readonly kind: 'refused'; readonly reason: string }
  /** Nobody listens for turns of this agent. */
  | { readonly kind: 'nobody' }
  /** Somebody listens and did not answer in time: it may have been taken. */
  | { readonly kind: 'unanswered' }
  | { readonly kind: 'too-large'; readonly bytes: number; readonly limit: number }
  /** There is no connection to the server now. */
  | { readonly kind: 'disconnected' };

/** One offer of a turn to an agent in another process: what is said about it, and a way to answer. */
export interface TurnLine {
  /** Makes the offer; `onEvent` is called from now on, and not after `close`. Never rejects. */
  offer(body: OfferBody, timeoutMs: number, onEvent: (event: OfferEvent) => void): Promise<OfferOutcome>;
  /** Answers a tool call. False: larger than the broker carries, and nothing was sent. */
  answer(from: string | null, results: ToolResults): boolean;
  /** Hears nothing any more; `abort`: and tells the agent that the turn is over for it. Again is fine. */
  close(how: 'done' | 'abort'): void;
}

/** What a letter says of its post besides the words. */
export interface LetterOrigin {
  /** The id that the post had, or would have had. */
  readonly id: string;
  /** Where the ingress stream has it, as long as it has. */
  readonly ingress: StreamPosition;
  /** As the delivery had it. */
  readonly isNameBound?: boolean;
}

/** A refused post as it stands in the dead-letter stream. */
export interface DeadLetter extends Partial<LetterOrigin> {
  /** Its place in that stream. */
  readonly sequence: number;
  /** When it was refused: ISO 8601. */
  readonly at: string;
  /** As the subject has them: `_invalid` for a name that no subject can hold. */
  readonly publisher: string;
  readonly conversation: string;
  readonly code: string;
  readonly reason: string;
  readonly hint?: string;
  readonly original: string;
  /** `original` is cut. */
  readonly truncated?: true;
  /** Of the whole body, in bytes. */
  readonly size: number;
  /** The letter is of many posts, and holds none of them; `conversation` is then no conversation. */
  readonly refused?: RefusedRuns;
}

export interface DeadLetterQuery {
  /** Only letters in front of this one. */
  readonly before?: number | undefined;
  readonly limit: number;
  readonly publisher?: string | undefined;
  readonly conversation?: string | undefined;
  readonly code?: string | undefined;
}

/** What was refused, and is kept until it is taken away or the stream has no more room. */
export interface DeadLetters {
  /** Where the whole of a refused post may still be. */
  readonly ingressStream: string;
  /**
   * Newest first. Looks at a bounded number of letters, so a page may hold fewer than asked for, and even none, with
   * more to come: `next` is the `before` of the next page, null at the end.
   */
  page(query: DeadLetterQuery): Promise<{ readonly letters: DeadLetter[]; readonly next: number | null }>;
  /** Null: there is none at that place (any more). */
  get(sequence: number): Promise<DeadLetter | null>;
  /** Takes a letter away; one that is gone already is fine. */
  remove(sequence: number): Promise<void>;
}

/** A conversation that was deleted, with its posts up to `sequence` of that life of the ingress stream. */
export interface DeletedPosts extends StreamPosition {
  readonly conversation: string;
}

/** What the streams of the bus lost of a deleted conversation. */
export interface Erased {
  readonly posts: number;
  readonly deadLetters: number;
  /** False: something is left, since posts are not settled yet, or since there is more than one request removes. */
  readonly isWhole: boolean;
}

/** Removes texts from the streams of the bus. Each may be repeated. */
export interface Eraser {
  /** Those of which a stream holds something: before the deletion or after it. */
  leftOf(deleted: readonly DeletedPosts[]): Promise<DeletedPosts[]>;
  /** `isSettled`: no daemon has yet to decide on that post. */
  erase(deleted: DeletedPosts, isSettled: (position: StreamPosition) => boolean): Promise<Erased>;
  /** Dead letters that are older than `before` (milliseconds since the epoch), oldest first; answers how many. */
  expireDeadLetters(before: number, most: number): Promise<number>;
}

/** What the ingress stream has that is not settled: read already or not. */
export interface IngressLag {
  readonly messages: number;
  /** When the stream took the oldest of them: milliseconds since the epoch, of the broker's clock; null: there is none. */
  readonly oldestTakenAt: number | null;
}

export type OnLive = (conversation: string, chunk: LiveChunk) => void;

export interface Bus {
  /** Without credentials. */
  readonly url: string;
  /** Bytes. */
  readonly maxPayload: number;
  /** False while no server of the broker can be reached. */
  readonly isConnected: boolean;
  startIngress(options: IngressOptions): Promise<void>;
  /** Stops taking new deliveries; resolves when those under way are settled. */
  stopIngress(): Promise<void>;
  /** Asks the broker; null while posts are not being read, or are read by several daemons. */
  ingressLag(): Promise<IngressLag | null>;
  /**
   * Puts a post into the ingress stream; resolves with its place once the stream has it. `origin`: the daemon that is
   * to be told what becomes of it.
   */
  post(
    publisher: string,
    conversation: string,
    body: Uint8Array,
    options?: { readonly origin?: string | undefined; readonly isNameBound?: boolean | undefined },
  ): Promise<StreamPosition>;
  /** The newest post of this conversation in the ingress stream as it is now; sequence 0: it holds none. */
  lastPost(conversation: string): Promise<StreamPosition>;
  /** The newest post of the ingress stream as it is now; sequence 0: it never had one. */
  ingressEnd(): Promise<StreamPosition>;
  /** This daemon among others that share the work; `daemon` is its id. */
  share(daemon: string): Sharing;
  /** `parley.log.<conversation>`: best effort (BUS-PORT-3), split to fit the payload. */
  publishEntries(conversation: string, entries: readonly Entry[]): void;
  /** `parley.live.<conversation>.<agent>`: ephemeral (BUS-PORT-3). */
  publishLive(conversation: string, agent: string, chunk: LiveChunk): void;
  /** `parley.audit.<conversation>`: best effort (BUS-PORT-3); what does not fit is left out of the record, and said to be. */
  publishAudit(conversation: string, record: Readonly<Record<string, unknown>>): void;
  /**
   * `parley.dead.<publisher>.<conversation>`: kept; resolves with its place there once the stream has it. `id`: of the
   * post, where it has one. Undefined: that delivery has one already.
   */
  publishDead(delivery: IngressDelivery, refused: Refusal, id: string): Promise<number | undefined>;
  /** One letter for all of these posts; resolves once the stream has it. They are not delivered again after that. */
  publishRefusedRuns(publisher: string, posts: RefusedRuns, refused: Refusal): Promise<void>;
  readonly deadLetters: DeadLetters;
  readonly eraser: Eraser;
  /**
   * Is seen as a daemon from now on; throws `DAEMON_ALREADY_SERVING` if another is that it cannot work beside: daemons
   * work side by side where all of them share the logs. Before anything is read or answered.
   */
  claim(): Promise<void>;
  /** The micro service: one handler for every endpoint named. */
  serve(endpoints: readonly string[], handler: ApiHandler): Promise<void>;
  /** A line for one offer on `parley.agent.<agent>.turn`. `onLive` gets each chunk that is published to followers. */
  openTurn(agent: string, onLive?: OnLive): TurnLine;
  /** Whether a process subscribes to the turns of this agent. True if that is not known. Starts no turn. */
  isAgentConnected(agent: string): Promise<boolean>;
  /** Drains and closes. */
  close(): Promise<void>;
}

/** The logger that the bus needs; pino fits. */
export interface BusLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
