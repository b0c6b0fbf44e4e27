import type { IngressDelivery, SharedIngress, StreamPosition, Token } from '../../bus/index.ts';
import { NAME_PATTERN } from '../../conversation/index.ts';
import { messageOf, sleep } from '../../kernel/index.ts';
import { isMoved } from '../conversations/ownership.ts';
import type { Workers } from '../conversations/workers.ts';
import type { Posts } from '../ingress/posts.ts';
import type { Log } from '../runtime.ts';
import type { Router } from './router.ts';
import type { Suspects } from './suspects.ts';

/**
 * From a token to durable entries, where several daemons take tokens.
 *
 * SHARED-POSTS-1 A token goes to the daemon that works on its conversation; if there is none, the conversation is claimed here.
 * SHARED-POSTS-2 The posts of a conversation are taken in the order of the stream, from behind the newest one that its log holds,
 *    whichever token came first (L4 makes void what repeats).
 * SHARED-POSTS-3 A token is acknowledged when everything up to it is durable or refused, and not before.
 * SHARED-POSTS-4 Where another daemon turns out to have the conversation, the token goes there.
 * SHARED-POSTS-5 A post whose token comes again may have ended a daemon, and so may one that stands before it: what others marked of
 *    it is learnt before it is tried.
 * SHARED-POSTS-6 What was settled stays settled: a post that this daemon has dealt with is not delivered again for a token that comes
 *    late, or to two daemons; nor is one that another has refused, whose sender has its dead letter. Else it would count
 *    twice against its publisher's limits, have two letters, or be refused and then taken.
 */

const MOST_TRIES = 12;
const RETRY_MS = 1_000;
/** As many as can wait for an acknowledgement, and more. */
const MOST_SETTLED = 100_000;

interface Letters {
  /** Of posts that the stream took from then on. */
  readonly from: number;
  readonly refused: ReadonlyMap<number, number>;
}

export interface SharedPostsParts {
  readonly ingress: () => SharedIngress;
  readonly posts: Posts;
  readonly suspects: Suspects;
  readonly workers: Workers;
  readonly router: Router;
  readonly silenceMs: number;
  readonly log: Log;
  /** Aborted when this daemon leaves: it takes over nothing any more. */
  readonly leaving: AbortSignal;
}

export class SharedPosts {
  readonly #parts: SharedPostsParts;
  /** SHARED-POSTS-2: one post of a conversation at a time. */
  readonly #lanes = new Map<string, Promise<unknown>>();
  /** Up to where a conversation's posts were taken here: those that were refused are in no log. */
  readonly #taken = new Map<string, StreamPosition>();
  /** SHARED-POSTS-6: of the posts behind the floor that were settled here, by their place, when the stream took each. */
  readonly #settled = new Map<number, number>();
  /** SHARED-POSTS-6: letters by conversation and publisher, as long as posts of that conversation are on their way here. */
  readonly #letters = new Map<string, Map<string, Letters>>();
  #floor: StreamPosition | null = null;

  constructor(parts: SharedPostsParts) {
    this.#parts = parts;
  }

  /** Everything up to here is acknowledged, whoever did it. */
  settledUpTo(floor: StreamPosition): void {
    this.#floor = floor;
    for (const [conversation, taken] of this.#taken) {
      if (taken.stream !== floor.stream || taken.sequence <= floor.sequence) this.#taken.delete(conversation);
    }
    for (const sequence of this.#settled.keys()) {
      if (sequence <= floor.sequence) this.#settled.delete(sequence);
    }
  }

  /** A token that the stream handed to this daemon, or another daemon did. Does not reject. */
  async take(token: Token): Promise<void> {
    const { silenceMs, log, leaving } = this.#parts;
    const ingress = this.#parts.ingress();
    const keeping = setInterval(() => ingress.keep(token), silenceMs / 3);
    try {
      const isDone = await this.#bring(token);
      if (isDone) ingress.acknowledge(token); // SHARED-POSTS-3
    } catch (error) {
      const { conversation, sequence } = token;
      if (!leaving.aborted)
        log.warn({ conversation, sequence, error: messageOf(error) }, 'a post is taken up again later');
      ingress.giveBack(token, leaving.aborted ? 0 : RETRY_MS);
    } finally {
      clearInterval(keeping);
    }
  }

  /** False: another daemon has it (SHARED-POSTS-1). */
  async #bring(token: Token): Promise<boolean> {
    const { router, leaving, workers } = this.#parts;
    const { conversation } = token;
    if (!NAME_PATTERN.test(conversation)) return this.#one(token); // it is refused for its name
    for (let tries = 1; ; tries++) {
      const place = await router.place(conversation);
      if (place.kind === 'there') {
        const heard = await router.ask(place.claim.daemon, 'adopt', token);
        if (heard.kind === 'answered' && heard.body.taken) return false;
        if (heard.kind === 'invalid') throw new Error(heard.reason); // it may have the conversation open
        if (heard.kind === 'answered') router.isFree(conversation, place.claim);
      }
      if (leaving.aborted && !workers.holds(conversation)) throw new Error('this daemon leaves');
      try {
        await this.#inLane(conversation, () => this.#ingest(token));
        return true;
      } catch (error) {
        if (!isMoved(error) || tries >= MOST_TRIES) throw error; // SHARED-POSTS-4
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
        this.#letters.delete(conversation);
      });
    this.#lanes.set(conversation, settled);
    return lane;
  }

  /** SHARED-POSTS-2 */
  async #ingest(token: Token): Promise<void> {
    const { workers } = this.#parts;
    const { conversation, stream, sequence } = token;
    const worker = await workers.current(conversation);
    const inLog = worker.state.ingress;
    if (this.#settled.get(sequence) === token.takenAt) return; // SHARED-POSTS-6
    const isOurs = this.#taken.has(conversation);
    const known = [inLog, this.#taken.get(conversation), this.#floor];
    let after = Math.max(0, ...known.map((place) => (place?.stream === stream ? place.sequence : 0)));
    if (sequence <= after) {
      // It came again. A log may be ahead of it only when it holds it, unless the stream has lost its end since.
      await this.#one(token);
      return;
    }
    for (;;) {
      const delivery = await this.#parts.ingress().next(conversation, after, sequence);
      if (delivery === null) return after < sequence ? this.#isGone(token) : undefined;
      const isOthers = delivery.position.sequence < sequence && !isOurs;
      if (!((isOthers || token.isRepeated) && (await this.#wasRefused(delivery))))
        await this.#deliver(delivery, token);
      after = delivery.position.sequence;
      this.#settledHere(delivery);
      this.#taken.set(conversation, delivery.position);
    }
  }

  /** D3. Servers say that there is no message, too, when they fail to read one; asked for by its place, that is found out. */
  async #isGone({ sequence }: Token): Promise<void> {
    if ((await this.#parts.ingress().at(sequence)) !== null)
      throw new Error(`the server did not give post ${sequence}, and has it`);
  }

  async #one(token: Token): Promise<boolean> {
    const delivery = await this.#parts.ingress().at(token.sequence);
    if (!delivery || (token.isRepeated && (await this.#wasRefused(delivery)))) return true;
    await this.#deliver(delivery, token);
    this.#settledHere(delivery);
    return true;
  }

  /** D6. A letter that is older than the post was of another, whose place in the stream this one has now. */
  async #wasRefused(delivery: IngressDelivery): Promise<boolean> {
    const { conversation, publisher, takenAt, position } = delivery;
    const letters = this.#letters.get(conversation) ?? new Map<string, Letters>();
    const known = letters.get(publisher);
    const refused =
      known && known.from <= takenAt ? known.refused : await this.#parts.ingress().refusedFrom(delivery);
    if (refused !== known?.refused)
      this.#letters.set(conversation, letters.set(publisher, { from: takenAt, refused }));
    return (refused.get(position.sequence) ?? 0) >= takenAt;
  }

  #settledHere({ position, takenAt }: IngressDelivery): void {
    const [oldest] = this.#settled.keys();
    if (this.#settled.size >= MOST_SETTLED && oldest !== undefined) this.#settled.delete(oldest);
    this.#settled.set(position.sequence, takenAt);
  }

  /** SHARED-POSTS-5 */
  async #deliver(delivery: IngressDelivery, { sequence, isRepeated }: Token): Promise<void> {
    const { posts, suspects } = this.#parts;
    const { position } = delivery;
    if (!isRepeated && position.sequence === sequence) return posts.deliver(delivery);
    await posts.deliver(delivery, await suspects.suspect(position, isRepeated));
  }
}
