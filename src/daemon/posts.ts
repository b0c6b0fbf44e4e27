import { setMaxListeners } from 'node:events';
import { type Bus, decodePost, type IngressDelivery, type Post, type StreamPosition } from '../bus/index.ts';
import { messageOf, ParleyError, type Refusal, refusal, sleep } from '../kernel/index.ts';
import { type Attempts, MOST_ATTEMPTS } from './attempts.ts';
import { PublisherLimits } from './publisher-limits.ts';
import type { Log, Runtime } from './runtime.ts';
import { isMoved } from './sharing/tenure.ts';
import { lookUp, never, type Outcome, Waiters } from './waiters.ts';
import type { Workers } from './workers.ts';

/**
 * From a delivery of the ingress stream to a durable entry, or a dead letter.
 *
 * N1 A delivery is settled when its entry is durable or its refusal is kept; not before, whatever fails (L5).
 * N2 A fault of the outside world (a full disk) is waited out: nothing that was accepted is given up.
 * N3 Whoever asked through the API is told what became of exactly his post.
 * N4 A post of a conversation that was deleted after it came is settled and changes nothing, however often it comes.
 * N5 A post that waits for another attempt is not overtaken by a later one of its conversation.
 * N6 What goes beyond its publisher's limits is refused before anything of it is kept; unless it is known already.
 * N7 A post that the daemon cannot decide on, however often it tries, becomes a dead letter: a bug holds up no others.
 *    That holds over restarts too, when it is the daemon's end each time (`attempts.ts`).
 */

/** Milliseconds between attempts to take a delivery that could not be made durable. */
const RETRY_MS = 1_000;
/** Room that the envelope of an entry needs beside the content. */
const ENVELOPE_BYTES = 4_096;
/** What one post may take of an append that is a message. */
const APPEND_SHARE = 0.9;

const STOPPING = 'STOPPING';

/** What became of a post, for the daemon that it came through. */
export interface Told {
  readonly publisher: string;
  readonly conversation: string;
  readonly id: string;
  readonly sequence: number;
  readonly outcome: Outcome;
}

/** The other daemons that share the work: one of them may take what this one was asked to post, and the other way round. */
export interface Others {
  readonly daemon: string;
  tell(origin: string, told: Told): void;
}

type PostsRuntime = Pick<Runtime, 'store' | 'progress' | 'attempts' | 'log' | 'reach' | 'publishers'>;

export class Posts {
  #underWay = 0;
  private readonly waiters = new Waiters();
  private readonly bus: Bus;
  private readonly workers: Workers;
  /** Conversations in which a post waits for another attempt: later ones queue behind it (N5). */
  private readonly lanes = new Map<string, Promise<void>>();
  private readonly store: Runtime['store'];
  private readonly progress: Runtime['progress'];
  private readonly attempts: Attempts;
  private readonly log: Log;
  private readonly reach: Runtime['reach'];
  private readonly limits: PublisherLimits;
  private readonly shutdown: AbortSignal;
  private others: Others | null = null;

  constructor(
    bus: Bus,
    workers: Workers,
    { store, progress, attempts, log, reach, publishers }: PostsRuntime,
    shutdown: AbortSignal,
  ) {
    this.bus = bus;
    this.workers = workers;
    this.store = store;
    this.progress = progress;
    this.attempts = attempts;
    this.log = log;
    this.reach = reach;
    this.limits = new PublisherLimits(publishers, (conversation) => workers.isAtWork(conversation));
    this.shutdown = shutdown;
    setMaxListeners(0, shutdown); // one for each post that waits: many are no leak
  }

  joinOthers(others: Others): void {
    this.others = others;
  }

  /** Deliveries that are not settled yet. */
  get underWay(): number {
    return this.#underWay;
  }

  /** A post that was a daemon's end so often (N7). False: the log has it. */
  async giveUp(delivery: IngressDelivery, attempts: number): Promise<boolean> {
    const decoded = decodePost(delivery);
    const id = decoded.ok ? decoded.post.id : '';
    if (await this.workers.knows(delivery.conversation, id)) return false;
    await this.refuse(delivery, deadly(attempts), id);
    return true;
  }

  /** Rejects only when the daemon stops: the delivery then stays unsettled and comes again. */
  async deliver(delivery: IngressDelivery): Promise<void> {
    this.#underWay++;
    try {
      await this.settle(delivery);
    } finally {
      this.#underWay--;
    }
  }

  private async settle(delivery: IngressDelivery): Promise<void> {
    this.reach('post-received');
    const decoded = decodePost(delivery);
    if (!decoded.ok) {
      await this.refuse(delivery, decoded.refusal, '');
      return;
    }
    const { publisher, conversation, ...post } = decoded.post;
    const { takenAt, body } = delivery;
    const beyond = this.limits.admit({ publisher, conversation, bytes: body.length, takenAt });
    if (beyond) {
      if (!(await this.workers.knows(conversation, post.id))) return this.refuse(delivery, beyond, post.id); // N6
      this.limits.enterKnown(publisher, conversation);
    }
    try {
      await this.take(delivery, decoded.post);
    } finally {
      this.limits.settled(publisher, conversation);
    }
  }

  private async take(delivery: IngressDelivery, decoded: Post): Promise<void> {
    const { publisher: _, conversation, ...post } = decoded;
    const tooLarge = this.tooLarge(post);
    if (tooLarge) return this.refuse(delivery, tooLarge, post.id);
    const { position } = delivery;
    this.attempts.readFrom(position.stream);
    const ingressSequence = position.sequence;
    const onDurable = () => this.progress.took(conversation, position);
    const command = {
      type: 'post',
      post: { ...post, meta: post.meta && { ...post.meta } },
      ingressSequence,
    } as const;
    const attempt = async (): Promise<void> => {
      const reply = await this.workers.submit(conversation, command, onDurable);
      this.attempts.survived(position);
      if (reply.kind === 'refused') await this.refuse(delivery, reply.refusal, post.id);
      else this.tell(delivery, post.id, reply);
    };
    if (await this.isVoid(conversation, position)) {
      this.tell(delivery, post.id, { kind: 'refused', refusal: deleted(conversation) }); // N4
      return;
    }
    const insist = (failure: unknown, isBehind = false) =>
      this.insist(delivery, post.id, { attempt, failure, isBehind });
    if (this.attempts.before(position) > 0) {
      return this.behind(conversation, () => this.trySuspect(delivery, post.id, attempt).catch(insist)); // N7
    }
    if (this.lanes.has(conversation)) return this.behind(conversation, () => attempt().catch(insist)); // N5
    try {
      await attempt();
    } catch (error) {
      const isBehind = this.lanes.has(conversation);
      await this.behind(conversation, () => insist(error, isBehind));
    }
  }

  /** N7: a post that was not survived before. Rejects as an attempt does. */
  private async trySuspect(
    delivery: IngressDelivery,
    id: string,
    attempt: () => Promise<void>,
  ): Promise<void> {
    const { conversation, position } = delivery;
    const before = this.attempts.before(position);
    if (before >= MOST_ATTEMPTS && !(await this.workers.knows(conversation, id)))
      return this.refuse(delivery, deadly(before), id);
    await this.attempts.inTurn(async () => {
      await sleep(this.attempts.patience(position), this.shutdown);
      if (this.shutdown.aborted) throw new ParleyError(STOPPING, 'the daemon stops'); // N1
      await attempt();
    });
  }

  /**
   * Tries again until it is taken, or the daemon stops (N2); at once if it stood behind another post of its conversation,
   * which has been dealt with by now.
   */
  private async insist(
    delivery: IngressDelivery,
    id: string,
    { attempt, failure, isBehind }: { attempt: () => Promise<void>; failure: unknown; isBehind: boolean },
  ): Promise<void> {
    const { conversation, publisher, position } = delivery;
    let undecided = this.attempts.before(position);
    for (let error = failure, failures = 1; ; failures++) {
      if (isMoved(error) || isStopping(error)) throw error; // it is taken where its conversation is, or later (N1)
      undecided = isUndecided(error) ? undecided + 1 : 0;
      if (undecided > 0) await this.attempts.failed(position);
      else this.attempts.survived(position);
      const hopeless = damagedLog(error) ?? poison(error, undecided);
      if (hopeless) return this.refuse(delivery, hopeless, id);
      const fields = { conversation, publisher, sequence: position.sequence, error: messageOf(error) };
      this.log.error(fields, 'a post could not be made durable; trying again');
      // Whoever waits is told why, and need not guess from a silence; the post itself is not given up. Told each time:
      // who asked again meanwhile has not heard it.
      if (failures >= 2) this.tell(delivery, id, { kind: 'refused', refusal: stillWaits(error) });
      if (!isBehind || failures > 1) await sleep(RETRY_MS, this.shutdown);
      if (this.shutdown.aborted) throw error; // N1
      try {
        if (await this.isVoid(conversation, position)) {
          this.tell(delivery, id, { kind: 'refused', refusal: deleted(conversation) }); // N4
          return;
        }
        await attempt();
        return;
      } catch (next) {
        error = next;
      }
    }
  }

  /**
   * N5: behind whatever of this conversation waits already. What waits when the daemon stops is given up until the
   * next start, and so is all that comes behind it, though there may be room by now.
   */
  private behind(conversation: string, work: () => Promise<void>): Promise<void> {
    const before = this.lanes.get(conversation) ?? Promise.resolve();
    const lane = before.then(work, (error: unknown) => {
      if (this.shutdown.aborted) throw error;
      return work();
    });
    this.lanes.set(conversation, lane);
    const leave = () => {
      if (this.lanes.get(conversation) === lane) this.lanes.delete(conversation);
    };
    lane.then(leave, () => {
      if (!this.shutdown.aborted) leave();
    });
    return lane;
  }

  /** Publishes a post and waits until it is in the log, or refused (N3). */
  post(publisher: string, conversation: string, id: string, body: Uint8Array): Promise<Outcome> {
    const { others, workers, shutdown } = this;
    return this.waiters.waitFor(
      [publisher, conversation, id],
      () => this.bus.post(publisher, conversation, body, others?.daemon),
      (sequence, isWaiting) =>
        others ? lookUp({ conversation, id, sequence }, isWaiting, workers, shutdown) : never(),
    );
  }

  private async isVoid(conversation: string, { stream, sequence }: StreamPosition): Promise<boolean> {
    const upTo = await this.store.deletedUpTo(conversation);
    return upTo?.stream === stream && sequence <= upTo.sequence;
  }

  private tooLarge(post: object): Refusal | null {
    const size = Buffer.byteLength(JSON.stringify(post)) + ENVELOPE_BYTES;
    // Where an append is a message, it also carries the beginnings of the turns that answer the post.
    const room = Math.floor(this.bus.maxPayload * (this.store.isFeed ? APPEND_SHARE : 1));
    if (size <= room) return null;
    return {
      code: 'TOO_LARGE',
      message: `as an entry this post is ${size} bytes; the broker carries ${room}`,
      hint: 'post a shorter text, or put it in a file and name the file',
    };
  }

  private async refuse(delivery: IngressDelivery, refusal: Refusal, id: string): Promise<void> {
    const { publisher, conversation } = delivery;
    this.log.warn(
      { publisher, conversation, code: refusal.code, reason: refusal.message },
      'a post was refused',
    );
    const letter = await this.bus.publishDead(delivery, refusal, id);
    this.tell(delivery, id, { kind: 'refused', refusal, letter });
  }

  private tell(delivery: IngressDelivery, id: string, outcome: Outcome): void {
    const { publisher, conversation, position, origin } = delivery;
    const told = { publisher, conversation, id, sequence: position.sequence, outcome };
    if (origin && this.others && origin !== this.others.daemon) this.others.tell(origin, told);
    else this.told(told);
  }

  told({ id, sequence, outcome, ...names }: Told): void {
    this.waiters.tell({ ...names, position: { sequence } }, id, outcome);
  }
}

function deleted(conversation: string): Refusal {
  return refusal(
    'CONVERSATION_DELETED',
    `conversation ${conversation} was deleted before this message could be kept`,
    'post it again to begin a new one',
  );
}

function stillWaits(error: unknown): Refusal {
  const hint = error instanceof ParleyError ? `${error.hint ?? ''} ` : '';
  return refusal(
    'POST_WAITS',
    `the message was taken, but cannot be made durable yet: ${messageOf(error)}`,
    `${hint}It waits in the ingress stream and is tried again by itself: no need to post it again.`,
  );
}

function isStopping(error: unknown): boolean {
  return error instanceof ParleyError && error.code === STOPPING;
}

function isUndecided(error: unknown): error is ParleyError {
  return error instanceof ParleyError && error.code === 'DECISION_FAILED';
}

/** N7 */
function poison(error: unknown, attempts: number): Refusal | null {
  if (!isUndecided(error) || attempts < MOST_ATTEMPTS) return null;
  return refusal(error.code, `${error.message} (tried ${attempts} times)`, error.hint);
}

/** Waiting mends no damaged log: its posts are kept as dead letters, and nobody else waits behind them. */
function damagedLog(error: unknown): Refusal | null {
  if (!(error instanceof ParleyError) || error.code !== 'LOG_CORRUPT') return null;
  return refusal(error.code, error.message, error.hint);
}

/** N7 */
function deadly(attempts: number): Refusal {
  return refusal(
    'DECISION_FAILED',
    `the daemon ended while it decided on it, ${attempts} times`,
    'this is a fault of Parley itself or of the machine: report it with what was posted and the daemon’s log',
  );
}
