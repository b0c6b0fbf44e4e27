import { setMaxListeners } from 'node:events';
import {
  type AddressedPost,
  type Bus,
  type Delivery,
  type DeliveryHead,
  decodePost,
  type PeerRequestOf,
  quickIdOf,
} from '../../bus/index.ts';
import { messageOf, type Refusal, sleep } from '../../kernel/index.ts';
import { isMoved } from '../conversations/ownership.ts';
import { damagedLog, isDeleted, notYetDurable, tooLarge } from '../conversations/post-refusals.ts';
import type { Workers } from '../conversations/workers.ts';
import type { Log, Runtime } from '../runtime.ts';
import type { Attempts } from './attempts.ts';
import {
  isStopping,
  isUndecided,
  MOST_ATTEMPTS,
  type Suspect,
  tryAgain,
  undecidable,
} from './fatal-posts.ts';
import { Flood, type FloodParts } from './flood.ts';
import { PostLanes } from './post-lanes.ts';
import { PublisherLimits } from './publisher-limits.ts';
import { lookUp, never, type Outcome, Waiters } from './waiters.ts';

/**
 * From a delivery of the ingress stream to a durable entry, or a dead letter.
 *
 * POSTS-1  A delivery is settled only when its entry is durable or its dead letter is stored (L5).
 * POSTS-2  An outside fault, such as a full disk, is retried until it ends: no accepted post is given up.
 * POSTS-3  A caller of the request API gets the outcome of exactly its post.
 * POSTS-4  A post whose conversation was deleted after the stream took it is settled without effect, at each redelivery.
 * POSTS-5  A post that waits for another attempt is not overtaken by a later one of its conversation.
 * POSTS-6  A post beyond its publisher's limits is refused before any part of it is stored, unless its id is known.
 * POSTS-7  A post on which the decision keeps failing becomes a dead letter, so that a bug delays no other post. This holds across
 *          restarts too, if the post ends the daemon each time (`fatal-posts.ts`).
 * POSTS-8  A post of a caller that this daemon knows to be beyond the limits is refused before it is published: the caller has the
 *          refusal, and no dead letter remains. Logs are opened to look for its id at the same rate as for posts, so that refused posts
 *          do not fill the memory; beyond it, only those in memory are searched.
 */

/** Milliseconds between attempts to make a delivery durable. */
const RETRY_MS = 1_000;
/** Bytes. The id of a longer post is not parsed while it is read. */
const QUICK_BYTES = 16 * 1_024;
/** The share of an append, if that is a message, that one post may use. */
const APPEND_SHARE = 0.9;

/** The outcome of a post, for the daemon that published it. */
export type Told = PeerRequestOf<'settled'>;

/** What the daemon knows of the sender of a post that it publishes. */
export interface Vouched {
  readonly isNameBound?: boolean | undefined;
  readonly isByOperator?: boolean;
  /** An operator names its session; default: an operator sends it. */
  readonly setsSession?: boolean;
}

/** The other daemons that share the work: one may ingest a post that another one published. */
export interface Others {
  readonly daemon: string;
  tell(origin: string, told: Told): void;
}

type PostsRuntime = Pick<
  Runtime,
  'store' | 'progress' | 'attempts' | 'log' | 'reach' | 'team' | 'believesNames' | 'now'
>;

export class Posts {
  #underWay = 0;
  /** Deliveries that could not be made durable and are tried again. */
  #unstored = 0;
  readonly #waiters = new Waiters();
  readonly #bus: Bus;
  readonly #workers: Workers;
  readonly #lanes: PostLanes;
  readonly #store: Runtime['store'];
  readonly #progress: Runtime['progress'];
  readonly #attempts: Attempts;
  readonly #log: Log;
  readonly #reach: Runtime['reach'];
  readonly #limits: PublisherLimits;
  /** Counts posts of callers when they ask: those that were not read yet are in no other count (POSTS-8). */
  readonly #asked: PublisherLimits;
  /** Counts the logs that are opened for refused posts (POSTS-8). */
  readonly #lookUps: PublisherLimits;
  /** Decides on the rate of posts when they are read. */
  readonly flood: Flood;
  readonly #shutdown: AbortSignal;
  readonly #believesNames: boolean;
  readonly #now: Runtime['now'];
  #others: Others | null = null;

  constructor(bus: Bus, workers: Workers, runtime: PostsRuntime, shutdown: AbortSignal) {
    const { store, progress, attempts, log, reach, believesNames } = runtime;
    this.#bus = bus;
    this.#workers = workers;
    this.#store = store;
    this.#progress = progress;
    this.#attempts = attempts;
    this.#log = log;
    this.#reach = reach;
    this.#believesNames = believesNames;
    this.#now = runtime.now;
    const publishers = () => runtime.team.publishers;
    this.#limits = new PublisherLimits(publishers, (conversation) => workers.isBusy(conversation));
    this.#asked = new PublisherLimits(publishers, () => false);
    this.#lookUps = new PublisherLimits(publishers, () => false);
    const isKnown = (head: DeliveryHead) => this.#isKnown(head);
    const tellAll: FloodParts['tellAll'] = (publisher, runs, refused) =>
      this.#waiters.tellAll(publisher, runs, { kind: 'refused', refusal: refused });
    this.flood = new Flood({ limits: this.#limits, bus, log, isKnown, tellAll });
    this.#shutdown = shutdown;
    this.#lanes = new PostLanes(shutdown);
    setMaxListeners(0, shutdown); // one for each waiting post
  }

  joinOthers(others: Others): void {
    this.#others = others;
  }

  #isKnown(head: DeliveryHead): boolean {
    const id = quickIdOf(head, QUICK_BYTES);
    return id !== null && this.#workers.knowsInMemory({ ...head, id });
  }

  /** A post waits until its log can be written (POSTS-2). */
  get isBlocked(): boolean {
    return this.#unstored > 0;
  }

  /** Deliveries that are not settled yet. */
  get underWay(): number {
    return this.#underWay;
  }

  /**
   * Rejects only when the daemon stops or a suspect cannot be tried: the delivery then stays unsettled and is redelivered.
   * `suspect`: attempts that other daemons counted (POSTS-7).
   */
  async deliver(delivery: Delivery, suspect: Suspect | null = null): Promise<void> {
    if (suspect) return this.#trySuspect(delivery, suspect, () => this.deliver(delivery));
    this.#underWay++;
    try {
      await this.#settle(delivery);
    } finally {
      this.#underWay--;
    }
  }

  async #settle(delivery: Delivery): Promise<void> {
    this.#reach('post-received');
    const decoded = decodePost({ isNameBound: this.#believesNames, ...delivery });
    if (!decoded.ok) {
      await this.#refuse(delivery, decoded.refusal, '');
      return;
    }
    const { publisher, conversation, id } = decoded.post;
    const name = { publisher, conversation, id };
    const unstarted = this.#refusalOfStart(
      decoded.post,
      this.#believesNames || delivery.isByOperator === true,
    );
    if (unstarted && !(await this.#workers.knows(name))) return this.#refuse(delivery, unstarted, id);
    const { takenAt, body, position, waitMs } = delivery;
    const size = { publisher, conversation, bytes: body.length, takenAt, position };
    const beyond = this.#limits.admit(size, waitMs);
    if (beyond) {
      if (!(await this.#workers.knows(name))) return this.#refuse(delivery, beyond, id); // POSTS-6
      this.#limits.enterKnown(publisher, conversation);
    }
    const isNaming = delivery.setsSession === true || this.#limits.maySetSession(publisher); // PERSON-7
    try {
      await this.#take(delivery, { ...decoded.post, ...(isNaming && { setsSession: true as const }) });
    } finally {
      this.#limits.settled(publisher, conversation);
    }
  }

  async #take(delivery: Delivery, decoded: AddressedPost): Promise<void> {
    const { publisher: _, conversation, ...post } = decoded;
    const beyondRoom = tooLarge(post, this.#room);
    if (beyondRoom) return this.#refuse(delivery, beyondRoom, post.id);
    const { position } = delivery;
    this.#attempts.readFrom(position.stream);
    const ingressSequence = position.sequence;
    const onDurable = () => this.#progress.took(conversation, position);
    const command = {
      type: 'post',
      post: { ...post, meta: post.meta && { ...post.meta } },
      ingressSequence,
    } as const;
    const attempt = async (): Promise<void> => {
      const reply = await this.#workers.submit(conversation, command, onDurable, position);
      this.#attempts.survived(position);
      if (reply.kind === 'refused' && !isDeleted(reply.refusal))
        await this.#refuse(delivery, reply.refusal, post.id);
      else this.#tell(delivery, post.id, reply); // POSTS-4
    };
    const suspect = this.#attempts.suspect(position);
    const tryIt = suspect ? () => this.#trySuspect(delivery, suspect, attempt) : attempt;
    await this.#lanes.pass(conversation, {
      isAlone: suspect !== null, // POSTS-7
      attempt: tryIt,
      retry: (failure, isBehind) => this.#retry(delivery, post.id, { attempt: tryIt, failure, isBehind }), // POSTS-5
    });
  }

  /** POSTS-7: a post that may have crashed a daemon. Rejects as an attempt does. */
  #trySuspect(delivery: Delivery, suspect: Suspect, attempt: () => Promise<void>): Promise<void> {
    return tryAgain(suspect, attempt, (why) => this.#giveUp(delivery, why), this.#shutdown);
  }

  /** POSTS-7. False: the log contains it. */
  async #giveUp(delivery: Delivery, why: Refusal): Promise<boolean> {
    const decoded = decodePost(delivery);
    const id = decoded.ok ? decoded.post.id : '';
    const { publisher, conversation } = delivery;
    if (await this.#workers.knows({ publisher, conversation, id })) return false;
    await this.#refuse(delivery, why, id);
    return true;
  }

  /**
   * Retries until it is durable or the daemon stops (POSTS-2); at once if it waited for another post of its conversation, which
   * is settled now.
   */
  async #retry(
    delivery: Delivery,
    id: string,
    { attempt, failure, isBehind }: { attempt: () => Promise<void>; failure: unknown; isBehind: boolean },
  ): Promise<void> {
    this.#unstored++;
    try {
      await this.#untilStored(delivery, id, { attempt, failure, isBehind });
    } finally {
      this.#unstored--;
    }
  }

  async #untilStored(
    delivery: Delivery,
    id: string,
    { attempt, failure, isBehind }: { attempt: () => Promise<void>; failure: unknown; isBehind: boolean },
  ): Promise<void> {
    const { conversation, publisher, position } = delivery;
    let undecided = this.#attempts.before(position);
    for (let error = failure, failures = 1; ; failures++) {
      if (isMoved(error) || isStopping(error)) throw error; // another daemon, or the next start, ingests it (POSTS-1)
      undecided = isUndecided(error) ? undecided + 1 : 0;
      if (undecided > 0) await this.#attempts.failed(position);
      else if (this.#attempts.before(position) < MOST_ATTEMPTS) this.#attempts.survived(position); // else it is given up
      const hopeless = damagedLog(error) ?? undecidable(error, undecided);
      if (hopeless) return this.#refuse(delivery, hopeless, id);
      const fields = { conversation, publisher, sequence: position.sequence, error: messageOf(error) };
      this.#log.error(fields, 'a post could not be made durable; trying again');
      // Callers that wait get the reason, while the retries continue. Reported each time, because a caller may have
      // asked again meanwhile.
      if (failures >= 2) {
        const refused = { kind: 'refused', refusal: notYetDurable(error) } as const;
        this.#tell(delivery, id, refused);
        this.#waiters.tellBehind(delivery, refused); // they wait for this one (POSTS-5)
      }
      if (!isBehind || failures > 1) await sleep(RETRY_MS, this.#shutdown);
      if (this.#shutdown.aborted) throw error; // POSTS-1
      try {
        await attempt();
        return;
      } catch (next) {
        error = next;
      }
    }
  }

  #refusalOfStart(post: AddressedPost, isByOperator: boolean): Refusal | null {
    return isByOperator ? null : this.#limits.refusalOfStart(post);
  }

  /** The refusal of a post that is not published yet; null: none that this daemon can predict. */
  refusalOf(
    { publisher, conversation, ...post }: AddressedPost,
    bytes: number,
    takenAt: number,
  ): Refusal | null {
    const beyond = this.#limits.refusalOf({ publisher, conversation, bytes, takenAt });
    return beyond ?? tooLarge(post, this.#room);
  }

  /** POSTS-8. Counts the post if it is within the limits. */
  #refusalOfAsked(post: AddressedPost, bytes: number): Refusal | null {
    const takenAt = this.#now();
    const beyond = this.refusalOf(post, bytes, takenAt);
    if (beyond) return beyond;
    const wait = this.#asked.count({ publisher: post.publisher, bytes, takenAt });
    return wait > 0 ? this.#limits.tooFast(post.publisher, wait) : null;
  }

  /** POSTS-8. False also if the log is not in memory, and too many were opened. */
  async #isRepeated({ publisher, conversation, id }: AddressedPost): Promise<boolean> {
    const name = { publisher, conversation, id };
    if (this.#workers.knowsInMemory(name)) return true;
    if (this.#lookUps.count({ publisher, bytes: 0, takenAt: this.#now() }) > 0) return false;
    return this.#workers.knows(name);
  }

  /** Publishes a post and waits until it is in the log, or refused (POSTS-3). */
  async post(
    post: AddressedPost,
    body: Uint8Array,
    { isNameBound = this.#believesNames, isByOperator = false, setsSession = isByOperator }: Vouched,
  ): Promise<Outcome> {
    const { publisher, conversation, id, author } = post;
    const unstarted = this.#refusalOfStart(post, isByOperator);
    if (unstarted) return { kind: 'refused', refusal: unstarted };
    const beyond = this.#refusalOfAsked(post, body.length);
    if (beyond && !(await this.#isRepeated(post))) return { kind: 'refused', refusal: beyond };
    const [others, workers, shutdown] = [this.#others, this.#workers, this.#shutdown];
    const isTold = author.id !== publisher && isNameBound !== this.#believesNames;
    const isStart = isByOperator && post.workflow !== undefined; // PERSON-6
    const options = {
      origin: others?.daemon,
      ...(isTold && { isNameBound }),
      ...(isStart && { isByOperator }),
      ...(setsSession && post.sessionId !== undefined && { setsSession }), // PERSON-7
    };
    return this.#waiters.waitFor(
      [publisher, conversation, id],
      () => this.#bus.post(publisher, conversation, body, options),
      (sequence, isWaiting) =>
        others ? lookUp({ publisher, conversation, id, sequence }, isWaiting, workers, shutdown) : never(),
    );
  }

  /** For one entry. */
  get #room(): number {
    // Where an append is a message, it also carries the beginnings of the turns that answer the post.
    return Math.floor(this.#bus.maxPayload * (this.#store.isFeed ? APPEND_SHARE : 1));
  }

  async #refuse(delivery: Delivery, refusal: Refusal, id: string): Promise<void> {
    const { publisher, conversation } = delivery;
    this.#log.warn(
      { publisher, conversation, code: refusal.code, reason: refusal.message },
      'a post was refused',
    );
    const letter = await this.#bus.publishDead(delivery, refusal, id);
    this.#tell(delivery, id, { kind: 'refused', refusal, ...(letter !== undefined && { letter }) });
  }

  #tell(delivery: Delivery, id: string, outcome: Outcome): void {
    const { publisher, conversation, position, origin } = delivery;
    const told = { publisher, conversation, id, sequence: position.sequence, outcome };
    if (origin && this.#others && origin !== this.#others.daemon) this.#others.tell(origin, told);
    else this.told(told);
  }

  told({ id, sequence, outcome, ...names }: Told): void {
    this.#waiters.tell({ ...names, position: { sequence } }, id, outcome);
  }
}
