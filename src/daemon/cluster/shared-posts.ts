import type { PeerAnswerOf, PeerRequestOf, StreamPosition } from '../../bus/index.ts';
import type { Reply } from '../../conversation/index.ts';
import { asError, messageOf, ParleyError, refusal, sleep } from '../../kernel/index.ts';
import type { SharedLogs } from '../../persistence/index.ts';
import { isMoved, moved } from '../conversations/ownership.ts';
import type { Workers } from '../conversations/workers.ts';
import { dueAfter, fatal, MOST_ATTEMPTS, untilDue } from '../ingress/attempts.ts';
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
 * SHARED-POSTS-3  A post whose owner ended before it answered may have ended it; so may the first posts that a daemon reads
 *                 after another reader ended. Attempts at these are counted where all daemons read it, before they begin, and
 *                 forgotten when the daemon survives. After `MOST_ATTEMPTS` the post is refused. If the count cannot be read or
 *                 stored, the post is not tried.
 * SHARED-POSTS-4  An owner that does not answer is asked again; only its missing heartbeats end the wait.
 */

/** As many may be under way when a reader ends (`serve.ts`). */
const FIRST_POSTS = 1_000;
/** Longer than an owner that runs and is overloaded needs (SHARED-POSTS-4). */
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
  readonly logs: Pick<SharedLogs, 'attempts' | 'saveAttempts' | 'newest'>;
  readonly runtime: { readonly reach: ReachCrashPoint };
  /** Aborted when this daemon leaves: then it takes over nothing. */
  readonly leaving: AbortSignal;
}

type Outcome = PeerAnswerOf<'post'>['outcome'];

export class SharedPosts {
  readonly #parts: SharedPostsParts;
  /** SHARED-POSTS-3: posts whose owner ended. */
  readonly #suspects = new Set<number>();
  /** SHARED-POSTS-3: how many posts are left of the first ones. */
  #first = 0;
  /** Conversations that other daemons work on: when that was known. */
  readonly #atWork = new Map<string, number>();

  constructor(parts: SharedPostsParts) {
    this.#parts = parts;
  }

  /** This daemon reads from now on. `from`: the reader before, if it ended. */
  reads(from: string | null): void {
    this.#suspects.clear();
    this.#first = from === null ? 0 : FIRST_POSTS;
  }

  /** Rejects with `CONVERSATION_MOVED` when this daemon leaves, and with the fault of the owner. */
  async handOver(handed: HandedPost): Promise<Reply> {
    const { workers, logs, leaving } = this.#parts;
    const { position, conversation, publisher, command } = handed;
    let isSuspect = this.#suspects.has(position.sequence) || this.#first-- > 0;
    for (let tries = 1; ; tries++) {
      const before = isSuspect ? ((await logs.attempts(position)) ?? 1) : 0;
      const post = { publisher, conversation, id: command.post.id, position };
      if (before >= MOST_ATTEMPTS && (await workers.fateOf(post)) === 'new') {
        this.#survived(position);
        return { kind: 'refused', refusal: fatal(before) };
      }
      if (isSuspect) {
        await untilDue(dueAfter(before), leaving);
        await logs.saveAttempts(position, before + 1);
      }
      let outcome: Outcome | 'ended' = null;
      try {
        outcome = await this.#attempt(handed);
      } finally {
        if (outcome === 'ended') this.#suspects.add(position.sequence);
        else if (isSuspect) this.#survived(position);
      }
      if (outcome === 'ended') isSuspect = true;
      else if (outcome?.kind === 'failed') throw asError(outcome.refusal);
      else if (outcome) return outcome;
      if (leaving.aborted) throw moved(conversation);
      await sleep(Math.min(tries * 10, LONGEST_PAUSE_MS), leaving);
    }
  }

  /** A leftover count delays the post by seconds. */
  #survived(position: StreamPosition): void {
    this.#suspects.delete(position.sequence);
    this.#parts.logs.saveAttempts(position, null).catch(() => undefined);
  }

  /** Null: no daemon took it. `ended`: the owner may have ended while it decided. */
  async #attempt(handed: HandedPost): Promise<Outcome | 'ended'> {
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
      if (answer.kind !== 'answered') return 'ended';
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
  async take({
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
      return { outcome: { kind: 'failed', refusal: refusal(fault.code, fault.message, fault.hint) } };
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
    if (this.#atWork.size >= MAX_REMEMBERED) this.#atWork.clear();
    if (isAtWork) this.#atWork.set(conversation, performance.now());
    else this.#atWork.delete(conversation);
  }
}
