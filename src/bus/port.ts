import type { Entry, LiveChunk } from '../conversation/index.ts';
import type { Refusal } from '../kernel/index.ts';
import type { RequestOf } from './contract.ts';
import type {
  Delivery,
  DeliveryHead,
  OldPosts,
  Reading,
  RefusedRuns,
  SkippedPosts,
  SkipUntil,
  StreamPosition,
  UnreadPosts,
} from './post.ts';
import type { AgentMessage, OfferBody, ToolResults } from './remote-turns.ts';
import type { Owner } from './settled.ts';

/**
 * What the daemon needs of a bus: posts come in by sequence, entries and live chunks go out, requests are answered.
 *
 * BUS-PORT-1 Deliveries of one publisher, and those into one conversation, arrive in stream order, each until it is settled.
 *    After a lost connection they continue at the next one.
 * BUS-PORT-2 Only settled posts are purged from the stream, and a margin of them stays.
 * BUS-PORT-3 A failed publish is dropped silently only where the contract says best effort (the feeds).
 */

/** One verb of the request API. `publisher` is set when it came by `parley.api.<verb>.<publisher>`. */
export interface ApiRequest {
  readonly endpoint: string;
  readonly publisher: string | null;
  /** The name that the token of the caller binds; null: none. Absent: the caller has no token. */
  readonly name?: string | null;
  /** Whether the role of an HTTP caller is that of an operator. Absent: the subject decides (PERSON-6). */
  readonly mayOperate?: boolean;
  /** The header `traceparent` of the request. */
  readonly traceparent?: string | undefined;
  /** The decoded JSON body; `{}` for an empty one. */
  readonly body: unknown;
  /** With `delete`: the newest post when the first daemon received the request. Later posts begin a new conversation. */
  readonly upTo?: StreamPosition;
  /** With `delete`: identifies the log that the conversation had then; null: it had none. */
  readonly origin?: number | null;
}
export type ApiAnswer =
  | { readonly ok: true; readonly body: unknown }
  | { readonly ok: false; readonly refusal: Refusal };
export type ApiHandler = (request: ApiRequest) => Promise<ApiAnswer>;

export interface ReadingStore {
  /** Its own position (exclusive); null: it has none. A position in an earlier stream counts as null. */
  readonly after: StreamPosition | null;
  /** The store that posts go to. Posts that other stores settled are skipped (`settled.ts`). */
  readonly owner: Owner;
}

export interface IngressStart {
  /** Where the store is in the ingress stream: its own position, or the beginning. */
  readonly after: StreamPosition;
  /** Null: no post needs a decision first. */
  readonly old: OldPosts | null;
}

export interface IngressOptions extends ReadingStore {
  /** Every post of the stream is delivered, also settled ones. */
  readonly isReplay?: boolean;
  /** Maximum of deliveries that are not settled yet. */
  readonly maxInFlight: number;
  /** The same for one publisher; default: `maxInFlight`. */
  readonly maxInFlightPerPublisher?: number;
  /** Conversations into which posts of one publisher may be unsettled at once; default: any number. */
  readonly maxConversationsPerPublisher?: number;
  /** Maximum of posts that were read and wait. At this number reading pauses. */
  readonly maxParked?: number;
  /** Bytes of their bodies that stay in memory; the others are read again. Default: some megabytes. */
  readonly maxKeptBytes?: number;
  /** Bytes of the bodies in flight. Posts that were already requested may exceed it, by 8 MiB or one post at most. */
  readonly maxBytesInFlight?: number;
  /** Decides on each post in stream order, as soon as it is read. Must not throw. Default: each is delivered. */
  readonly onRead?: (post: DeliveryHead) => Reading;
  /** Whether unread posts may be refused without reading them, when reading is far behind. Default: all posts are read. */
  readonly isFlood?: (posts: UnreadPosts) => boolean;
  /** Refuses such posts; they are settled when it resolves. Called only after `isFlood`, for about as many posts. */
  readonly onUnread?: (posts: UnreadPosts) => Promise<void>;
  /**
   * Handles one delivery; resolves when it is settled (in a log, or refused). If it rejects, the delivery stays unsettled
   * and comes again, at the latest after a restart.
   */
  readonly onDelivery: (delivery: Delivery) => Promise<void>;
  /** Every delivery up to here is settled: what may be stored as the position. */
  readonly onPosition: (position: StreamPosition) => void;
  /** Which posts another store settled, each time that reading begins: none of them is delivered. */
  readonly onSkip?: (isElsewhere: (position: StreamPosition) => boolean) => void;
  /** Called each time before reading begins: the stream may have lost its newest posts. Repeated if it rejects. */
  readonly onBegin?: () => Promise<void>;
}

export type OfferEvent =
  /** A heartbeat. */
  | { readonly type: 'alive' }
  /** A chunk of text, as followers get it. `call` changes with each attempt. */
  | { readonly type: 'text'; readonly call: string; readonly delta: string }
  /** `from` is where `answer` goes to. */
  | { readonly type: 'message'; readonly message: AgentMessage; readonly from: string | null }
  | { readonly type: 'invalid'; readonly reason: string };

export type OfferOutcome =
  | { readonly kind: 'accepted'; readonly instance: string }
  | { readonly kind: 'refused'; readonly reason: string }
  /** No process subscribes to turns of this agent. */
  | { readonly kind: 'no-responder' }
  /** A process subscribes and did not answer in time: it may have taken the turn. */
  | { readonly kind: 'unanswered' }
  | { readonly kind: 'too-large'; readonly bytes: number; readonly limit: number }
  /** There is no connection to the server now. */
  | { readonly kind: 'disconnected' };

/** One offer of a turn to an agent in another process: its events, and a way to answer. */
export interface TurnLine {
  /** Makes the offer; `onEvent` is called from now on, and not after `close`. Never rejects. */
  offer(
    body: OfferBody,
    timeoutMs: number,
    onEvent: (event: OfferEvent) => void,
    traceparent?: string,
  ): Promise<OfferOutcome>;
  /** Answers a tool call. False: the answer exceeds the broker's payload, and nothing was sent. */
  answer(from: string | null, results: ToolResults): boolean;
  /** Ends the events; `abort` also tells the agent that its turn is over. Idempotent. */
  close(how: 'done' | 'abort'): void;
}

/** What a dead letter records of its post besides the body. */
export interface LetterOrigin {
  /** The id that the post had, or would have had. */
  readonly id: string;
  /** Its position in the ingress stream, which may have purged it. */
  readonly ingress: StreamPosition;
}

/** A refused post in the dead-letter stream. */
export interface DeadLetter extends Partial<LetterOrigin> {
  /** Its place in that stream. */
  readonly sequence: number;
  /** When it was refused: ISO 8601. */
  readonly at: string;
  /** As in the subject: `_invalid` for a name that no subject can contain. */
  readonly publisher: string;
  readonly conversation: string;
  readonly code: string;
  readonly reason: string;
  readonly hint?: string;
  readonly original: string;
  /** `original` is cut. */
  readonly truncated?: true;
  /** Bytes of the whole body. */
  readonly size: number;
  /** Set if the letter is about many posts. It contains none of them, and `conversation` names none. */
  readonly refused?: RefusedRuns;
}

export interface DeadLetterQuery extends RequestOf<'dead'> {
  readonly limit: number;
}

/** Refused posts, kept until they are removed or the stream is full. */
export interface DeadLetters {
  /** The stream that may still have the whole post. */
  readonly ingressStream: string;
  /**
   * Newest first. Reads a bounded number of letters, so a page may have fewer than `limit`, even none, before the end.
   * `next` is the `before` of the next page, null at the end.
   */
  page(query: DeadLetterQuery): Promise<{ readonly letters: DeadLetter[]; readonly next: number | null }>;
  /** Null: there is no letter with that sequence, or it was removed. */
  get(sequence: number): Promise<DeadLetter | null>;
  /** How many there are. */
  count(): Promise<number>;
  /** Removes a letter. Idempotent. */
  remove(sequence: number): Promise<void>;
}

/** A conversation that was deleted, with its posts up to that position of the ingress stream. */
export interface DeletedPosts extends StreamPosition {
  readonly conversation: string;
}

/** What was removed from the streams of a deleted conversation. */
export interface Erased {
  readonly posts: number;
  readonly deadLetters: number;
  /** False: messages remain, because posts are not settled yet or one request does not remove all. */
  readonly isWhole: boolean;
}

/** Removes texts from the streams of the bus. Each method is idempotent. */
export interface Eraser {
  /** Those of which a stream still has messages. */
  leftOf(deleted: readonly DeletedPosts[]): Promise<DeletedPosts[]>;
  /** `isSettled`: every daemon has decided on that post. */
  erase(deleted: DeletedPosts, isSettled: (position: StreamPosition) => boolean): Promise<Erased>;
  /** Dead letters that are older than `before` (milliseconds since the epoch), oldest first; answers how many. */
  expireDeadLetters(before: number, most: number): Promise<number>;
}

/** The posts of the ingress stream that are not settled, whether read or not. */
export interface IngressLag {
  readonly messages: number;
  /** When the stream stored the oldest of them: milliseconds since the epoch, by the broker's clock; null: there is none. */
  readonly oldestTakenAt: number | null;
}

export type OnLive = (conversation: string, chunk: LiveChunk) => void;

/** The result of a question to another daemon. */
export type Heard<Body = unknown> =
  | { readonly kind: 'answered'; readonly body: Body }
  /** The server knows no such daemon. */
  | { readonly kind: 'no-responder' }
  /** The request, which was not sent, or its answer exceeds a message of the server. */
  | { readonly kind: 'too-large'; readonly reason: string }
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

/** One of the daemons reads the posts, as one that is alone (`IngressOptions`); it has the claim of the stream. */
export interface SharedIngressOptions extends IngressOptions {
  /** The id of this daemon. */
  readonly daemon: string;
  /** An answer of the server that took longer than half of it proves no claim. */
  readonly failureTimeoutMs: number;
  /** Whether that daemon, which has the claim, does not run any more. */
  readonly mayTakeOver: (daemon: string) => Promise<boolean>;
  /** This daemon reads from now on. `from`: the daemon that did, and did not stop in order; null: none. */
  readonly onClaim: (from: string | null) => void;
  /** Another daemon reads, and has settled every post up to here. 0: the stream lost its newest posts. */
  readonly onFloor: (position: StreamPosition) => void;
  /** The creation time of the stream, each time that it is looked up. */
  readonly onIngressStream: (created: string) => void;
}

export interface SharedIngress {
  /** Resolves when this daemon knows the deletions as they are after an outage: before it decides on a post. */
  ready(): Promise<void>;
  /** This daemon has the claim of the stream. Rejects without an answer of the server. */
  holdsClaim(): Promise<boolean>;
  /** The post with this sequence; null: it was purged. */
  at(sequence: number): Promise<Delivery | null>;
  /** Reads no new posts; resolves when those under way are finished, and the claim is released. */
  stop(): Promise<void>;
}

/** What any daemon publishes of a conversation. */
export interface Feed {
  entries(entries: readonly Entry[]): void;
  live(agent: string, chunk: LiveChunk): void;
}

/** What a daemon needs of a bus to share its work with others on the same server and prefix. */
export interface Sharing {
  readonly peers: Peers;
  /** `ready` resolves when nothing that is published from then on is missed. */
  follow(conversation: string, feed: Feed): { readonly ready: Promise<void>; stop(): void };
  startIngress(options: SharedIngressOptions): Promise<SharedIngress>;
}

export interface Bus {
  /** Without credentials. */
  readonly url: string;
  /** Bytes. */
  readonly maxPayload: number;
  /** False while no server of the broker can be reached. */
  readonly isConnected: boolean;
  /** The ingress stream as the store finds it. */
  ingressStart(store: ReadingStore & { readonly isBackup?: boolean }): Promise<IngressStart>;
  /** The posts up to there that are not settled. Null: a daemon that shares these logs reads them. */
  unsettledUntil(store: ReadingStore, until: SkipUntil): Promise<SkippedPosts | null>;
  startIngress(options: IngressOptions): Promise<void>;
  /** Accepts no new deliveries; resolves when those in flight are settled. */
  stopIngress(): Promise<void>;
  /** Asks the broker; null while posts are not being read. */
  ingressLag(): Promise<IngressLag | null>;
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
  /** `parley.audit.<conversation>`: best effort (BUS-PORT-3). A record that does not fit loses fields and is marked `truncated`. */
  publishAudit(conversation: string, record: Readonly<Record<string, unknown>>): void;
  /**
   * `parley.dead.<publisher>.<conversation>`: stored; resolves with its sequence there. `id`: the post's id, if it has one. Not
   * for a delivery that has a letter (`hasLetter`). `mayStore`: called before each attempt; rejects if another daemon may have
   * stored it.
   */
  publishDead(
    delivery: Delivery,
    refused: Refusal,
    id: string,
    mayStore?: () => Promise<void>,
  ): Promise<number>;
  /** One letter for all of these posts; resolves once the stream has it. They are not delivered again after that. */
  publishRefusedRuns(
    publisher: string,
    posts: RefusedRuns,
    refused: Refusal,
    mayStore?: () => Promise<void>,
  ): Promise<void>;
  readonly deadLetters: DeadLetters;
  readonly eraser: Eraser;
  /**
   * Makes this daemon visible to others, before it reads or answers anything. Throws `DAEMON_ALREADY_SERVING` if another
   * daemon serves and does not share the logs.
   */
  register(): Promise<void>;
  /** The micro service: one handler for every endpoint named. */
  serve(endpoints: readonly string[], handler: ApiHandler): Promise<void>;
  /** A line for one offer on `parley.agent.<agent>.turn`. `onLive` gets each chunk that is published to followers. */
  openTurn(agent: string, onLive?: OnLive): TurnLine;
  /** Whether a process subscribes to the turns of this agent. True if that is not known. Starts no turn. */
  isAgentConnected(agent: string): Promise<boolean>;
  /** Drains and closes. */
  close(): Promise<void>;
}

export type { Log as BusLog } from '../kernel/index.ts';
