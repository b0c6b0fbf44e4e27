import { setMaxListeners } from 'node:events';
import { type AddressedPost, type AnswerOf, type Bus, type Delivery, decodePost } from '../../bus/index.ts';
import type { CommandOf, Reply } from '../../conversation/index.ts';
import {
  asError,
  type Clock,
  hasCode,
  type Log,
  messageOf,
  monotonicClock,
  ParleyError,
  type Refusal,
  refusal,
  refusalOf,
  remember,
  sizeOf,
  sleep,
} from '../../kernel/index.ts';
import { CheckBudget, schemaFault } from '../../kernel/json-schema.ts';
import type { ConversationStore } from '../../persistence/index.ts';
import { isMoved } from '../conversations/ownership.ts';
import type { PostName } from '../conversations/worker/worker.ts';
import type { Workers } from '../conversations/workers.ts';
import type { ReachCrashPoint } from '../observe/crash-points.ts';
import type { Team } from '../team/team.ts';
import { Flood, type PostSize, PublisherLimits } from './publisher-limits.ts';

/**
 * From a delivery of the ingress stream to a durable entry, or a dead letter; and posts of requests.
 *
 * POSTS-1  A delivery is settled only when its entry is durable or its dead letter is stored (L5).
 * POSTS-2  An outside fault, such as a full disk, is retried until it ends: no accepted post is given up.
 * POSTS-3  A post of a request is a command: its caller gets the entry when it is durable, or the error. It is in no stream and
 *          has no dead letter.
 * POSTS-4  A post whose conversation was deleted after the stream took it is settled without effect, at each redelivery.
 * POSTS-5  A post that waits for another attempt is not overtaken by a later one of its conversation.
 * POSTS-6  A post beyond its publisher's limits is refused before any part of it is stored, unless its id is known.
 * POSTS-7  A post on which the decision keeps failing becomes a dead letter, so that a bug delays no other post; so does one whose
 *          append exceeds a message: as the answer to a question of an agent, its text is there twice.
 * POSTS-8  For the id of a refused post of a request, logs are opened at the rate of posts, so that refused posts do not fill the
 *          memory; beyond it, only those in memory are searched.
 * POSTS-9  Where several daemons share the work, the one that reads the stream hands each post to the daemon that works on its
 *          conversation, one after the other, and refuses none after another daemon began to read.
 */

/** Milliseconds between attempts to make a delivery durable. */
const RETRY_MS = 1_000;
/** POSTS-7 */
const MOST_DECISIONS = 5;
/** The newest publishers, whose budgets for schemas are kept. */
const MOST_PUBLISHERS = 1_000;
/** The share of an append, if that is a message, that one post may use. */
const APPEND_SHARE = 0.9;

/** What a request may do besides the rights of its publisher. */
interface PostRights {
  readonly isByOperator?: boolean;
  /** An operator names its session; default: an operator sends it. */
  readonly setsSession?: boolean;
}

type PostCommand = CommandOf<'post'>;

/** A post of the stream, admitted here. */
export interface HandedPost extends Pick<Delivery, 'conversation' | 'publisher' | 'position'> {
  readonly command: PostCommand;
}

/** The daemons that share the work (POSTS-9). */
export interface OtherDaemons {
  /** Resolves when the daemon that works on the conversation has decided, and its decision is durable. */
  handOver(handed: HandedPost): Promise<Reply>;
  /** Another daemon works on that conversation. */
  isAtWork(conversation: string): boolean;
  /** Rejects if another daemon reads the stream by now. */
  mayRefuse(): Promise<void>;
}

export interface PostsContext {
  readonly store: ConversationStore;
  readonly log: Log;
  readonly reach: ReachCrashPoint;
  readonly team: Team;
  /** Its publishers have the rights of an operator (PERSON-6), and may use any author name (PERSON-5). */
  readonly isManagedServer: boolean;
  readonly now: Clock;
}

export class Posts {
  #underWay = 0;
  /** Deliveries that could not be made durable and are tried again. */
  #unstored = 0;
  readonly #bus: Bus;
  readonly #workers: Workers;
  readonly #lanes: PostLanes;
  readonly #others: OtherDaemons | null;
  readonly #daemon: PostsContext;
  readonly #limits: PublisherLimits;
  /** Counts the logs that are opened for refused posts (POSTS-8). */
  readonly #lookUps: PublisherLimits;
  readonly #schemas = new PostedSchemas();
  /** Decides on the rate of posts when they are read. */
  readonly flood: Flood;
  readonly #shutdown: AbortSignal;

  constructor(
    bus: Bus,
    workers: Workers,
    daemon: PostsContext,
    shutdown: AbortSignal,
    others: OtherDaemons | null = null,
  ) {
    this.#bus = bus;
    this.#workers = workers;
    this.#daemon = daemon;
    const publishers = () => daemon.team.publishers;
    this.#others = others;
    const isAtWork = (conversation: string) =>
      workers.isBusy(conversation) || (others?.isAtWork(conversation) ?? false);
    this.#limits = new PublisherLimits(publishers, isAtWork);
    this.#lookUps = new PublisherLimits(publishers);
    this.flood = new Flood({
      limits: this.#limits,
      bus,
      log: daemon.log,
      mayRefuse: async () => others?.mayRefuse(),
    });
    this.#shutdown = shutdown;
    this.#lanes = new PostLanes(shutdown);
    setMaxListeners(0, shutdown); // one for each waiting post
  }

  /** A post waits until its log can be written (POSTS-2). */
  get isBlocked(): boolean {
    return this.#unstored > 0 || this.#daemon.store.fault() !== null;
  }

  /** Deliveries that are not settled yet. */
  get underWay(): number {
    return this.#underWay;
  }

  /** Rejects only when the daemon stops, or does not read any more: the delivery then stays unsettled and is redelivered. */
  async deliver(delivery: Delivery): Promise<void> {
    this.#underWay++;
    try {
      await this.#settle(delivery);
    } finally {
      this.#underWay--;
    }
  }

  async #settle(delivery: Delivery): Promise<void> {
    this.#daemon.reach('post-received');
    const decoded = decodePost({ isNameBound: this.#daemon.isManagedServer, ...delivery });
    if (!decoded.ok) {
      await this.#refuse(delivery, decoded.refusal, '');
      return;
    }
    const { publisher, conversation, id } = decoded.post;
    const { takenAt, body, position, waitMs } = delivery;
    const size = { publisher, conversation, bytes: body.length, takenAt, position };
    const isKnown = async (name: PostName) =>
      (await this.#workers.fateInConversation({ ...name, position })) !== 'new';
    const refused = await this.#refusalByLimits(
      decoded.post,
      this.#daemon.isManagedServer,
      { ...size, waitMs },
      isKnown,
    );
    if (refused) return this.#refuse(delivery, refused, id);
    try {
      await this.#submit(delivery, decoded.post);
    } finally {
      this.#limits.settled(publisher, conversation);
    }
  }

  /** POSTS-6. Null: it counts as open, and `settled` must follow. */
  async #refusalByLimits(
    post: AddressedPost,
    mayStartRuns: boolean,
    { waitMs, ...size }: PostSize & { readonly waitMs?: number | undefined },
    isKnown: (name: PostName) => Promise<boolean>,
  ): Promise<Refusal | null> {
    const { publisher, conversation, id } = post;
    const unstarted = mayStartRuns ? null : this.#limits.refusalOfStart(post);
    const beyond = unstarted ?? this.#limits.refusalOrEnter(size, waitMs);
    if (beyond && !(await isKnown({ publisher, conversation, id }))) return beyond;
    if (beyond) this.#limits.enterKnown(publisher, conversation);
    return null;
  }

  /** `setsSession`: an operator names its session (PERSON-7). */
  #commandOf({ publisher, conversation: _, ...post }: AddressedPost, setsSession = false) {
    const isNaming = setsSession || this.#limits.maySetSession(publisher);
    const naming: { readonly setsSession?: true } = isNaming ? { setsSession: true } : {};
    return { type: 'post', post: { ...post, ...naming, meta: post.meta && { ...post.meta } } } as const;
  }

  #tooLarge({ publisher: _, conversation: __, ...post }: AddressedPost): Refusal | null {
    return tooLarge(post, this.#room);
  }

  async #submit(delivery: Delivery, post: AddressedPost): Promise<void> {
    const { conversation } = post;
    const unfit = this.#tooLarge(post) ?? this.#schemas.refusalOf(post);
    if (unfit) return this.#refuse(delivery, unfit, post.id);
    const { position } = delivery;
    const command = { ...this.#commandOf(post), ingressSequence: position.sequence };
    const handed = { conversation, publisher: post.publisher, position, command };
    const tryOnce = async (): Promise<void> => {
      const decided = this.#others?.handOver(handed) ?? this.#workers.submit(conversation, command, position);
      const reply = await decided;
      if (reply.kind === 'refused') await this.#refuse(delivery, reply.refusal, post.id);
    };
    await this.#lanes.pass(conversation, {
      isAlone: this.#others !== null, // POSTS-9
      tryOnce,
      retry: async (failure, isBehind) => {
        this.#unstored++;
        const retried = this.#retry(delivery, post.id, { tryOnce, failure, isBehind }); // POSTS-5
        await retried.finally(() => this.#unstored--);
      },
    });
  }

  /**
   * Retries until it is durable or the daemon stops (POSTS-2); at once if it waited for another post of its conversation, which
   * is settled now.
   */
  async #retry(
    delivery: Delivery,
    id: string,
    { tryOnce, failure, isBehind }: { tryOnce: () => Promise<void>; failure: unknown; isBehind: boolean },
  ): Promise<void> {
    const { conversation, publisher, position } = delivery;
    let undecided = 0;
    for (let error = failure, failures = 1; ; failures++) {
      if (isMoved(error)) throw error; // another daemon ingests it (POSTS-1)
      undecided = isUndecided(error) ? undecided + 1 : 0;
      const hopeless =
        permanent(error) ?? (undecided < MOST_DECISIONS ? null : undecidable(error, undecided));
      if (hopeless) return this.#refuse(delivery, hopeless, id);
      const fields = { conversation, publisher, sequence: position.sequence, error: messageOf(error) };
      this.#daemon.log.error(fields, 'a post could not be made durable; trying again');
      if (!isBehind || failures > 1) await sleep(RETRY_MS, this.#shutdown);
      if (this.#shutdown.aborted) throw error; // POSTS-1
      try {
        await tryOnce();
        return;
      } catch (next) {
        error = next;
      }
    }
  }

  /** The refusal of a post that follows a request; null: none that is known now. */
  refusalOf(post: AddressedPost, bytes: number): Refusal | null {
    const { publisher, conversation } = post;
    const beyond = this.#limits.refusalOf({ publisher, conversation, bytes, takenAt: this.#daemon.now() });
    return beyond ?? this.#tooLarge(post) ?? this.#schemas.refusalOf(post);
  }

  /** POSTS-8. False also if the log is not in memory, and too many were opened. */
  async #isRepeated(name: PostName): Promise<boolean> {
    if (this.#workers.fateInMemory(name) !== 'new') return true;
    const lookUp = { publisher: name.publisher, bytes: 0, takenAt: this.#daemon.now() };
    return this.#lookUps.count(lookUp) === 0 && (await this.#workers.fateInConversation(name)) !== 'new';
  }

  /** POSTS-3. `bytes`: the size of its body. Throws the refusal. */
  async post(
    post: AddressedPost,
    bytes: number,
    { isByOperator = false, setsSession = isByOperator }: PostRights,
  ): Promise<AnswerOf<'post'>> {
    const { publisher, conversation } = post;
    const size = { publisher, conversation, bytes, takenAt: this.#daemon.now() };
    const isKnown = (name: PostName) => this.#isRepeated(name);
    const refused = this.#tooLarge(post) ?? (await this.#refusalByLimits(post, isByOperator, size, isKnown));
    if (refused) throw asError(refused);
    try {
      const unfit = this.#schemas.refusalOf(post);
      if (unfit) throw asError(unfit);
      const command = this.#commandOf(post, setsSession);
      const reply = await this.#workers.submit(conversation, command).catch((error: unknown) => {
        const refused = permanent(error);
        throw refused ? asError(refused) : error;
      });
      if (reply.kind === 'refused') throw asError(reply.refusal);
      if (reply.kind !== 'posted') throw new ParleyError('INTERNAL', 'the post was not recorded');
      const { kind: _, ...posted } = reply;
      return { conversation, ...posted };
    } finally {
      this.#limits.settled(publisher, conversation);
    }
  }

  /** For one entry. */
  get #room(): number {
    // Where an append is a message, it also carries the beginnings of the turns that answer the post.
    return Math.floor(this.#bus.maxPayload * (this.#daemon.store.isFeed ? APPEND_SHARE : 1));
  }

  async #refuse(delivery: Delivery, refusal: Refusal, id: string): Promise<void> {
    const { publisher, conversation } = delivery;
    this.#daemon.log.warn(
      { publisher, conversation, code: refusal.code, reason: refusal.message },
      'a post was refused',
    );
    if (delivery.hasLetter) return;
    await this.#bus.publishDead(delivery, refusal, id, async () => this.#others?.mayRefuse());
  }
}

/** For the fields of an entry besides its content. */
const ENVELOPE_BYTES = 4_096;

const SHORTER = 'post a shorter text, or put it in a file and name the file';

/** Null: it fits. */
export function tooLarge(post: object, room: number): Refusal | null {
  const size = sizeOf(post) + ENVELOPE_BYTES;
  if (size <= room) return null;
  return refusal('TOO_LARGE', `this post is ${size} bytes as an entry; the broker accepts ${room}`, SHORTER);
}

/** A damaged log and an append that exceeds a message are not retryable: the post is refused, and later posts do not wait. */
function permanent(error: unknown): Refusal | null {
  if (hasCode(error, 'APPEND_TOO_LARGE')) return refusal('TOO_LARGE', error.message, SHORTER);
  return hasCode(error, 'LOG_CORRUPT') ? refusalOf(error) : null;
}

function isUndecided(error: unknown): error is ParleyError {
  return hasCode(error, 'DECISION_FAILED');
}

/** For a decision that threw each time. Null: another fault. */
function undecidable(error: unknown, times: number): Refusal | null {
  if (!isUndecided(error)) return null;
  return refusal(error.code, `${error.message} (tried ${times} times)`, error.hint);
}

/** Checks the schemas of posts before they are stored. Each publisher has a budget of processor time (JSON-SCHEMA-1). */
class PostedSchemas {
  readonly #budgets = new Map<string, CheckBudget>();

  /** Null: the post has no schema, or one that answers can be compared with. */
  refusalOf({ schema, publisher }: Pick<AddressedPost, 'schema' | 'publisher'>): Refusal | null {
    if (schema === undefined) return null;
    const fault = schemaFault(schema, this.#budgetOf(publisher));
    return fault === null
      ? null
      : refusal(
          'INVALID_SCHEMA',
          `field schema: ${fault}`,
          'correct the schema, or leave it out: any text is an answer then',
        );
  }

  #budgetOf(publisher: string): CheckBudget {
    const budget = this.#budgets.get(publisher) ?? new CheckBudget(monotonicClock);
    remember(this.#budgets, publisher, budget, MOST_PUBLISHERS);
    return budget;
  }
}

interface Passage {
  readonly isAlone: boolean;
  readonly tryOnce: () => Promise<void>;
  /** Handles a failed post, after all earlier ones. `isBehind`: an earlier one waited when it failed. */
  readonly retry: (failure: unknown, isBehind: boolean) => Promise<void>;
}

interface Lane {
  /** Resolves when all posts so far are settled or left to the next start. */
  last: Promise<void>;
  inside: number;
  waiting: number;
  /** Why one of them is left to the next start. */
  givenUp: { readonly error: unknown } | null;
}

/**
 * Keeps the posts of each conversation in their order.
 *
 * A post is tried at once, concurrently with earlier ones, unless one of these waits for another attempt. Then it waits for
 * them, and they continue one at a time. A post that must be tried alone always waits for all earlier ones.
 *
 * At a stop, a waiting post and all later posts of its conversation are left to the next start: no post overtakes another.
 */
class PostLanes {
  readonly #lanes = new Map<string, Lane>();
  readonly #shutdown: AbortSignal;

  constructor(shutdown: AbortSignal) {
    this.#shutdown = shutdown;
  }

  /** Resolves when the post is settled. Rejects as `retry` does, or if an earlier post is left to the next start. */
  pass(conversation: string, passage: Passage): Promise<void> {
    const lane = this.#lanes.get(conversation) ?? newLane();
    this.#lanes.set(conversation, lane);
    const before = lane.last;
    lane.inside += 1;
    const mine = this.#through(lane, before, passage).finally(() => {
      lane.inside -= 1;
      if (lane.inside === 0 && !lane.givenUp) this.#lanes.delete(conversation);
    });
    lane.last = Promise.allSettled([before, mine]).then(() => undefined);
    return mine;
  }

  async #through(lane: Lane, before: Promise<void>, { isAlone, tryOnce, retry }: Passage): Promise<void> {
    let isWaiting = false;
    const wait = async () => {
      isWaiting = true;
      lane.waiting += 1;
      await before;
      if (lane.givenUp) throw lane.givenUp.error;
    };
    try {
      const waitsFirst = isAlone || isOccupied(lane);
      if (waitsFirst) await wait();
      try {
        await tryOnce();
      } catch (failure) {
        const isBehind = !waitsFirst && isOccupied(lane);
        if (!waitsFirst) await wait();
        await retry(failure, isBehind);
      }
    } catch (error) {
      if (this.#shutdown.aborted) lane.givenUp ??= { error };
      throw error;
    } finally {
      if (isWaiting) lane.waiting -= 1;
    }
  }
}

function newLane(): Lane {
  return { last: Promise.resolve(), inside: 0, waiting: 0, givenUp: null };
}

function isOccupied({ waiting, givenUp }: Lane): boolean {
  return waiting > 0 || givenUp !== null;
}
