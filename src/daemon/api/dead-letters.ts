import {
  type AnswerOf,
  type Bus,
  type DeadLetter,
  decodePost,
  type Repost,
  type RequestOf,
  repostOf,
} from '../../bus/index.ts';
import { asError, ParleyError, pageOf } from '../../kernel/index.ts';
import type { Posts } from '../ingress/posts.ts';

/**
 * Lists, shows, retries and discards dead letters.
 *
 * DEAD-LETTERS-1 A letter is removed only when its post is in the log. A daemon that ends in between leaves both, and the next
 *    retry finds that the post is a duplicate.
 * DEAD-LETTERS-2 A post that is refused again keeps its letter, and gets no second one.
 */

/** Letters of one page, by default and at most. */
const PAGE = 100;

export class DeadLetterOffice {
  readonly #bus: Pick<Bus, 'deadLetters'>;
  readonly #posts: Posts;
  readonly #isManagedServer: boolean;
  /** The largest answer, in bytes. */
  readonly #room: number;

  constructor(bus: Pick<Bus, 'deadLetters'>, posts: Posts, isManagedServer: boolean, room: number) {
    this.#bus = bus;
    this.#posts = posts;
    this.#isManagedServer = isManagedServer;
    this.#room = room;
  }

  /** Newest first, without the posts. */
  async list(request: RequestOf<'dead'>): Promise<AnswerOf<'dead'>> {
    const limit = Math.min(request.limit ?? PAGE, PAGE);
    const { letters, next } = await this.#bus.deadLetters.page({ ...request, limit });
    const rows = letters.map(({ original: _, refused: __, ...row }) => row);
    const shown = pageOf(rows, this.#room);
    return { letters: shown, next: shown.length < rows.length ? (shown.at(-1)?.sequence ?? null) : next };
  }

  async show(sequence: number): Promise<DeadLetter> {
    const letter = await this.#bus.deadLetters.get(sequence);
    if (letter) return letter;
    throw new ParleyError('NOT_FOUND', `there is no dead letter ${sequence}`, {
      hint: 'it was retried or discarded, or never existed; `parley dead ls` lists all',
    });
  }

  async discard(sequence: number): Promise<AnswerOf<'dead-discard'>> {
    await this.show(sequence);
    await this.#bus.deadLetters.remove(sequence);
    return { accepted: true };
  }

  /** Posts it again as its publisher; answers as `post` does. */
  async retry(sequence: number): Promise<AnswerOf<'dead-retry'>> {
    const { deadLetters } = this.#bus;
    const letter = await this.show(sequence);
    const { publisher, conversation } = letter;
    const repost = orThrow(repostOf(letter, deadLetters.ingressStream));
    const { body, id: fallbackId } = repost;
    const source = { publisher, conversation, body, messageId: null, fallbackId };
    const decoded = decodePost({ ...source, isNameBound: this.#isManagedServer });
    if (!decoded.ok) throw asError(decoded.refusal); // DEAD-LETTERS-2
    const posted = await this.#posts.post(decoded.post, body.length, {
      isByOperator: true, // only an operator retries
      setsSession: false, // the operator decides on the refusal, not on the session (PERSON-7)
    });
    await deadLetters.remove(sequence); // DEAD-LETTERS-1
    return posted;
  }
}

function orThrow(repost: Repost): Repost & { ok: true } {
  if (repost.ok) return repost;
  throw asError(repost.refusal);
}
