import type { Delivery, SharedIngress, StreamPosition, Token } from '../../bus/index.ts';
import { NAME_PATTERN } from '../../conversation/index.ts';
import { type Log, messageOf, sleep } from '../../kernel/index.ts';
import { isMoved } from '../conversations/ownership.ts';
import type { Workers } from '../conversations/workers.ts';
import type { Posts } from '../ingress/posts.ts';
import type { Router } from './router.ts';
import type { Suspects } from './suspects.ts';

/**
 * From a token to durable entries, when several daemons share the work. A token names one post of the ingress stream.
 *
 * SHARED-POSTS-1  A token goes to the daemon that owns its conversation; without an owner, this daemon claims it.
 * SHARED-POSTS-2  The posts of a conversation are ingested in stream order, starting after the newest one in its log,
 *                 whichever token arrives first (L4 drops repetitions).
 * SHARED-POSTS-3  A token is acknowledged when everything up to it is durable or refused, and not before.
 * SHARED-POSTS-4  If another daemon turns out to own the conversation, the token is passed on to it.
 * SHARED-POSTS-5  A post whose token is redelivered may have crashed a daemon, and so may the posts before it: their
 *                 attempt counts are read before they are tried.
 * SHARED-POSTS-6  A settled post is not delivered again, whether this daemon settled it or another one refused it.
 *                 Otherwise it would count twice against its publisher's limits, get two dead letters, or be refused and
 *                 then accepted.
 */

const MAX_ATTEMPTS = 12;
const RETRY_MS = 1_000;
/** More than can wait for an acknowledgement. */
const MAX_SETTLED = 100_000;

interface KnownDeadLetters {
  /** Complete for posts that the stream took at this time or later. */
  readonly from: number;
  readonly refused: ReadonlyMap<number, number>;
}

export interface SharedPostsParts {
  readonly ingress: () => SharedIngress;
  readonly posts: Posts;
  readonly suspects: Suspects;
  readonly workers: Workers;
  readonly router: Router;
  readonly failureTimeoutMs: number;
  readonly log: Log;
  /** Aborted when this daemon leaves: then it takes over nothing. */
  readonly leaving: AbortSignal;
}

export class SharedPosts {
  readonly #parts: SharedPostsParts;
  /** SHARED-POSTS-2: one post of a conversation at a time. */
  readonly #lanes = new Map<string, Promise<unknown>>();
  /** By conversation: the newest post ingested here. Refused posts are in no log. */
  readonly #ingestedUpTo = new Map<string, StreamPosition>();
  /** SHARED-POSTS-6: posts settled here, after the floor: by sequence, the time at which the stream took each. */
  readonly #settled = new Map<number, number>();
  /** SHARED-POSTS-6: dead letters by conversation and publisher, while posts of that conversation are in progress here. */
  readonly #deadLetters = new Map<string, Map<string, KnownDeadLetters>>();
  #floor: StreamPosition | null = null;

  constructor(parts: SharedPostsParts) {
    this.#parts = parts;
  }

  /** Everything up to here is acknowledged, by any daemon. */
  settledUpTo(floor: StreamPosition): void {
    this.#floor = floor;
    for (const [conversation, taken] of this.#ingestedUpTo) {
      if (taken.stream !== floor.stream || taken.sequence <= floor.sequence)
        this.#ingestedUpTo.delete(conversation);
    }
    for (const sequence of this.#settled.keys()) {
      if (sequence <= floor.sequence) this.#settled.delete(sequence);
    }
  }

  /** A token from the stream or from a peer. Does not reject. */
  async process(token: Token): Promise<void> {
    const { failureTimeoutMs, log, leaving } = this.#parts;
    const ingress = this.#parts.ingress();
    const keeping = setInterval(() => ingress.keep(token), failureTimeoutMs / 3);
    try {
      const isDone = await this.#route(token);
      if (isDone) ingress.acknowledge(token); // SHARED-POSTS-3
    } catch (error) {
      const { conversation, sequence } = token;
      if (!leaving.aborted)
        log.warn(
          { conversation, sequence, error: messageOf(error) },
          'a post could not be ingested; its token is redelivered',
        );
      ingress.giveBack(token, leaving.aborted ? 0 : RETRY_MS);
    } finally {
      clearInterval(keeping);
    }
  }

  /** False: another daemon has accepted the token (SHARED-POSTS-1). */
  async #route(token: Token): Promise<boolean> {
    const { router, leaving, workers } = this.#parts;
    const { conversation } = token;
    if (!NAME_PATTERN.test(conversation)) return this.#ingestOne(token); // refused for its name
    for (let tries = 1; ; tries++) {
      const location = await router.locate(conversation);
      if (location.kind === 'there') {
        const response = await router.ask(location.claim.daemon, 'adopt', token);
        if (response.kind === 'answered' && response.body.taken) return false;
        if (response.kind === 'invalid') throw new Error(response.reason); // it may have the conversation open
        if (response.kind === 'answered') router.noteReleased(conversation, location.claim);
      }
      if (leaving.aborted && !workers.holds(conversation)) throw new Error('this daemon is leaving');
      try {
        await this.#inLane(conversation, () => this.#ingest(token));
        return true;
      } catch (error) {
        if (!isMoved(error) || tries >= MAX_ATTEMPTS) throw error;
        await sleep(tries * 10);
      }
    }
  }

  #inLane(conversation: string, work: () => Promise<void>): Promise<void> {
    const before = this.#lanes.get(conversation) ?? Promise.resolve();
    const lane = before.then(work);
    const settled = lane
      .catch(() => undefined)
      .then(() => {
        if (this.#lanes.get(conversation) !== settled) return;
        this.#lanes.delete(conversation);
        this.#deadLetters.delete(conversation);
      });
    this.#lanes.set(conversation, settled);
    return lane;
  }

  async #ingest(token: Token): Promise<void> {
    const { workers } = this.#parts;
    const { conversation, stream, sequence } = token;
    const worker = await workers.current(conversation);
    const inLog = worker.state.ingress;
    if (this.#settled.get(sequence) === token.takenAt) return;
    const isOurs = this.#ingestedUpTo.has(conversation);
    const known = [inLog, this.#ingestedUpTo.get(conversation), this.#floor];
    let after = Math.max(0, ...known.map((place) => (place?.stream === stream ? place.sequence : 0)));
    if (sequence <= after) {
      // Redelivered. The log contains it, unless the stream has lost its newest posts since.
      await this.#ingestOne(token);
      return;
    }
    for (;;) {
      const delivery = await this.#parts.ingress().next(conversation, after, sequence);
      if (delivery === null) return after < sequence ? this.#isGone(token) : undefined;
      const isOthers = delivery.position.sequence < sequence && !isOurs;
      if (!((isOthers || token.isRepeated) && (await this.#wasRefused(delivery))))
        await this.#deliver(delivery, token);
      after = delivery.position.sequence;
      this.#noteSettled(delivery);
      this.#ingestedUpTo.set(conversation, delivery.position);
    }
  }

  /** SHARED-POSTS-3. Servers also answer "no message" when a read fails; a read by sequence tells the difference. */
  async #isGone({ sequence }: Token): Promise<void> {
    if ((await this.#parts.ingress().at(sequence)) !== null)
      throw new Error(`the server has post ${sequence}, but did not deliver it`);
  }

  async #ingestOne(token: Token): Promise<boolean> {
    const delivery = await this.#parts.ingress().at(token.sequence);
    if (!delivery || (token.isRepeated && (await this.#wasRefused(delivery)))) return true;
    await this.#deliver(delivery, token);
    this.#noteSettled(delivery);
    return true;
  }

  /** SHARED-POSTS-6. A dead letter older than the post belongs to an earlier post with the same sequence. */
  async #wasRefused(delivery: Delivery): Promise<boolean> {
    const { conversation, publisher, takenAt, position } = delivery;
    const letters = this.#deadLetters.get(conversation) ?? new Map<string, KnownDeadLetters>();
    const known = letters.get(publisher);
    const refused =
      known && known.from <= takenAt ? known.refused : await this.#parts.ingress().refusedFrom(delivery);
    if (refused !== known?.refused)
      this.#deadLetters.set(conversation, letters.set(publisher, { from: takenAt, refused }));
    return (refused.get(position.sequence) ?? 0) >= takenAt;
  }

  #noteSettled({ position, takenAt }: Delivery): void {
    const [oldest] = this.#settled.keys();
    if (this.#settled.size >= MAX_SETTLED && oldest !== undefined) this.#settled.delete(oldest);
    this.#settled.set(position.sequence, takenAt);
  }

  async #deliver(delivery: Delivery, { sequence, isRepeated }: Token): Promise<void> {
    const { posts, suspects } = this.#parts;
    const { position } = delivery;
    if (!isRepeated && position.sequence === sequence) return posts.deliver(delivery);
    await posts.deliver(delivery, await suspects.suspect(position, isRepeated));
  }
}
