import type { DeletedPosts, Erased, Eraser, StreamPosition } from '../../bus/index.ts';
import { type Log, messageOf } from '../../kernel/index.ts';
import type { ConversationStore } from '../../persistence/index.ts';

/**
 * Removes the posts and dead letters of deleted conversations from the streams of the bus.
 *
 * ERASURE-1  Texts that cannot be removed yet (posts that are not settled, a server that does not answer) are retried: with
 *            backoff while something is outstanding here, and for every known deletion at a start and once an hour.
 * ERASURE-2  A deletion never fails because of this: the log is deleted by then, and the answer lists what is left.
 */

const SOONEST_MS = 500;
const HOURLY_MS = 3_600_000;

export interface ErasedOnBus extends Pick<Erased, 'posts' | 'deadLetters'> {
  /** What the daemon retries to remove, and why. */
  readonly left: readonly string[];
}

interface ErasureContext {
  readonly store: Pick<ConversationStore, 'deletions'>;
  /** Whether every post up to there is in a log or refused. */
  readonly progress: { isSettled(position: StreamPosition): boolean };
  readonly log: Pick<Log, 'info' | 'warn'>;
}

export class Erasure {
  readonly #eraser: Eraser;
  readonly #daemon: ErasureContext;
  readonly #outstanding = new Map<string, DeletedPosts>();
  #timer: NodeJS.Timeout | null = null;
  #wait = SOONEST_MS;
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(eraser: Eraser, daemon: ErasureContext) {
    this.#eraser = eraser;
    this.#daemon = daemon;
  }

  /** ERASURE-1 */
  start(): void {
    this.#again(0);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer ?? undefined);
    await this.#running;
  }

  async erase(deleted: DeletedPosts): Promise<ErasedOnBus> {
    try {
      const { posts, deadLetters, isWhole } = await this.#erase(deleted);
      if (!isWhole) this.#soon();
      return { posts, deadLetters, left: isWhole ? [] : ['posts in the stream that are not settled yet'] };
    } catch (error) {
      this.#outstanding.set(deleted.conversation, deleted);
      this.#soon();
      const left = [`posts and dead letters in the streams: ${messageOf(error)}`];
      return { posts: 0, deadLetters: 0, left };
    }
  }

  async #erase(deleted: DeletedPosts): Promise<Erased> {
    const { progress } = this.#daemon;
    const erased = await this.#eraser.erase(deleted, (position) => progress.isSettled(position));
    if (erased.isWhole) this.#outstanding.delete(deleted.conversation);
    else this.#outstanding.set(deleted.conversation, deleted);
    return erased;
  }

  #soon(): void {
    this.#wait = SOONEST_MS;
    this.#again(this.#wait);
  }

  #again(afterMs: number): void {
    if (this.#isStopped) return;
    clearTimeout(this.#timer ?? undefined);
    this.#timer = setTimeout(() => {
      this.#running = this.#sweep();
    }, afterMs);
    this.#timer.unref();
  }

  async #sweep(): Promise<void> {
    const { log } = this.#daemon;
    let [posts, deadLetters, hasFailed] = [0, 0, false];
    try {
      for (const deleted of await this.#due()) {
        if (this.#isStopped) return;
        const erased = await this.#erase(deleted);
        posts += erased.posts;
        deadLetters += erased.deadLetters;
      }
    } catch (error) {
      hasFailed = true;
      log.warn(
        { error: messageOf(error) },
        'texts of deleted conversations are not erased yet; trying again',
      );
    }
    if (posts + deadLetters > 0)
      log.info({ posts, deadLetters }, 'texts of deleted conversations are erased');
    const isOver = !hasFailed && this.#outstanding.size === 0;
    this.#wait = isOver ? SOONEST_MS : Math.min(this.#wait * 2, HOURLY_MS);
    this.#again(isOver ? HOURLY_MS : this.#wait);
  }

  /** The outstanding deletions; if there is none, every deletion that has texts in the streams. */
  async #due(): Promise<readonly DeletedPosts[]> {
    if (this.#outstanding.size > 0) return [...this.#outstanding.values()];
    return this.#eraser.leftOf(await this.#daemon.store.deletions());
  }
}

/** Where texts of a conversation may remain that no daemon can remove. */
export function beyondReach({ isFeed }: Pick<ConversationStore, 'isFeed'>): string[] {
  return [
    'copies of publishers and followers',
    'what model providers and agents in other processes received',
    'what tools wrote elsewhere',
    'backups',
    ...(isFeed ? ['files of the nats-server, until it compacts them'] : []),
  ];
}
