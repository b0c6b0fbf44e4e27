import type { PeerAnswerOf, PeerRequestOf } from '../../bus/index.ts';
import type { Reply } from '../../conversation/index.ts';
import { asError, messageOf, ParleyError, refusalOf, remember, sleep } from '../../kernel/index.ts';
import type { SharedLogs } from '../../persistence/index.ts';
import { isMoved, moved } from '../conversations/ownership.ts';
import type { Workers } from '../conversations/workers.ts';
import type { HandedPost } from '../ingress/posts.ts';
import type { ReachCrashPoint } from '../observe/crash-points.ts';
import type { PeerMonitor } from './peer-monitor.ts';
import { firstChoice } from './reconciler.ts';
import type { Router } from './router.ts';

/**
 * Hands each post of the ingress stream from the daemon that reads it to the one that works on its conversation.
 *
 * SHARED-POSTS-1  A conversation without an owner is offered to one of the daemons, the same for all; the reader claims it if that
 *                 one does not. So the work is spread although one daemon reads.
 * SHARED-POSTS-2  A post is handed over until its owner answers that it is durable, refused or void. A repeated hand-over has
 *                 no effect: the log has its id.
 * SHARED-POSTS-3  An owner that does not answer is asked again; only its missing heartbeats end the wait.
 */

/** Longer than an owner that runs and is overloaded needs (SHARED-POSTS-3). */
const PATIENCE_MS = 60_000;
const LONGEST_PAUSE_MS = 1_000;
/** How long a conversation is believed to be at work in another daemon. */
const FRESH_MS = 1_000;
const MAX_REMEMBERED = 10_000;

export interface SharedPostsParts {
  readonly daemon: string;
  readonly workers: Workers;
  readonly router: Router;
  readonly monitor: Pick<PeerMonitor, 'responsive'>;
  readonly logs: Pick<SharedLogs, 'newest'>;
  readonly runtime: { readonly reach: ReachCrashPoint };
  /** Aborted when this daemon leaves: then it takes over nothing. */
  readonly leaving: AbortSignal;
}

type Outcome = PeerAnswerOf<'post'>['outcome'];

export class SharedPosts {
  readonly #parts: SharedPostsParts;
  /** Conversations that other daemons work on: when that was known. */
  readonly #atWork = new Map<string, number>();

  constructor(parts: SharedPostsParts) {
    this.#parts = parts;
  }

  /** Rejects with `CONVERSATION_MOVED` when this daemon leaves, and with the fault of the owner. */
  async handOver(handed: HandedPost): Promise<Reply> {
    const { leaving } = this.#parts;
    for (let tries = 1; ; tries++) {
      const outcome = await this.#handOverOnce(handed);
      if (outcome?.kind === 'failed') throw asError(outcome.refusal);
      if (outcome) return outcome;
      if (leaving.aborted) throw moved(handed.conversation);
      await sleep(Math.min(tries * 10, LONGEST_PAUSE_MS), leaving);
    }
  }

  /** Null: no daemon took it, or its owner may have ended. */
  async #handOverOnce(handed: HandedPost): Promise<Outcome> {
    const { daemon, router, workers, monitor } = this.#parts;
    const { conversation } = handed;
    const location = await router.locate(conversation);
    const offered = workers.holds(conversation)
      ? daemon
      : firstChoice(conversation, [daemon, ...monitor.responsive]);
    const to = location.kind === 'elsewhere' ? location.claim.daemon : offered;
    if (to !== daemon) {
      const { publisher, position, command } = handed;
      const message: PeerRequestOf<'post'> = { conversation, publisher, position, post: command.post };
      const answer = await router.ask(to, 'post', message, PATIENCE_MS);
      if (answer.kind === 'invalid')
        throw new ParleyError('INVALID_ANSWER', answer.reason, {
          hint: 'run the same version of all daemons',
        });
      if (answer.kind === 'too-large')
        throw new ParleyError('TOO_LARGE', answer.reason, { hint: 'post a shorter text' });
      if (answer.kind !== 'answered') return null;
      const { outcome } = answer.body;
      if (outcome?.kind === 'done') this.#noteWork(conversation, outcome.isAtWork ?? false);
      if (outcome) return outcome;
      if (location.kind === 'elsewhere') {
        router.noteReleased(conversation, location.claim);
        return null;
      }
    }
    return this.#submit(handed);
  }

  /** The verb `post` of another daemon: it reads the stream and located the conversation here, or offers it. */
  async receive({
    conversation,
    publisher,
    position,
    post,
  }: PeerRequestOf<'post'>): Promise<PeerAnswerOf<'post'>> {
    const { workers, router, runtime } = this.#parts;
    runtime.reach('post-received');
    const command = { type: 'post', post, ingressSequence: position.sequence } as const;
    if (!(await workers.willHold(conversation)) && (await router.locate(conversation)).kind === 'elsewhere')
      return { outcome: null };
    try {
      return { outcome: await this.#submit({ conversation, publisher, position, command }) };
    } catch (error) {
      const fault = error instanceof ParleyError ? error : new ParleyError('INTERNAL', messageOf(error));
      return { outcome: { kind: 'failed', refusal: refusalOf(fault) } };
    }
  }

  async #submit({ conversation, position, command }: HandedPost): Promise<Outcome> {
    const { workers } = this.#parts;
    try {
      const reply = await workers.submit(conversation, command, position);
      return reply.kind === 'refused' ? reply : { kind: 'done', isAtWork: workers.isBusy(conversation) };
    } catch (error) {
      if (isMoved(error)) return null;
      throw error;
    }
  }

  /** Whether another daemon works on it, as it answered, or as its log said up to a second ago. */
  isAtWork(conversation: string): boolean {
    const known = this.#atWork.get(conversation);
    if (known !== undefined && performance.now() - known >= FRESH_MS) {
      this.#noteWork(conversation, true);
      void this.#parts.logs.newest(conversation).then(
        (newest) => this.#noteWork(conversation, newest?.status?.hasOutstandingWork ?? false),
        () => undefined,
      );
    }
    return known !== undefined;
  }

  #noteWork(conversation: string, isAtWork: boolean): void {
    if (isAtWork) remember(this.#atWork, conversation, performance.now(), MAX_REMEMBERED);
    else this.#atWork.delete(conversation);
  }
}
