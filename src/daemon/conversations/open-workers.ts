import type { ConversationWorker } from './worker/worker.ts';

/**
 * The workers in memory and those being opened.
 *
 * OPEN-WORKERS-1  An idle worker is evicted after `IDLE_MS`, or at once with more than `MAX_OPEN` workers. With more than
 *                 `MAX_ENTRIES` in idle logs, the least recently used ones are evicted, but none that was used within
 *                 `IN_USE_MS`: reopening one reads its whole log.
 */
const IDLE_MS = 60_000;
const MAX_OPEN = 500;
const IN_USE_MS = 20_000;
/** About 200 MB with short entries. */
const MAX_ENTRIES = 250_000;

export class OpenWorkers {
  readonly #openings = new Map<string, Promise<ConversationWorker>>();
  readonly #opened = new WeakMap<Promise<ConversationWorker>, ConversationWorker>();
  /** In all logs, when they were opened or last counted. */
  #entries = 0;

  get size(): number {
    return this.#openings.size;
  }

  /** Resolves when the log is read; rejects if it cannot be read. */
  opening(id: string): Promise<ConversationWorker> | undefined {
    return this.#openings.get(id);
  }

  /** Undefined while its log is being read. */
  worker(id: string): ConversationWorker | undefined {
    const opening = this.#openings.get(id);
    return opening && this.#opened.get(opening);
  }

  get openings(): Promise<ConversationWorker>[] {
    return [...this.#openings.values()];
  }

  /** The opened ones. */
  get workers(): ConversationWorker[] {
    return [...this.#openings.values()].flatMap((opening) => this.#opened.get(opening) ?? []);
  }

  add(id: string, opening: Promise<ConversationWorker>): void {
    this.#openings.set(id, opening);
    opening.then(
      (worker) => {
        this.#opened.set(opening, worker);
        this.#entries += worker.state.length;
      },
      () => {
        if (this.#openings.get(id) === opening) this.delete(id);
      },
    );
  }

  delete(id: string): void {
    this.#entries -= this.worker(id)?.state.length ?? 0;
    this.#openings.delete(id);
  }

  /** Resolves when all are opened; without those whose log cannot be read. */
  async all(): Promise<ConversationWorker[]> {
    const workers = await Promise.all(this.openings.map((opening) => opening.catch(() => null)));
    return workers.filter((worker) => worker !== null);
  }

  /** OPEN-WORKERS-1: eviction may be due. */
  get isFull(): boolean {
    return this.size > MAX_OPEN || this.#entries > MAX_ENTRIES;
  }

  /** Those to evict at this time of the monotonic clock (OPEN-WORKERS-1). */
  idle(now: number): ConversationWorker[] {
    const { workers } = this;
    this.#entries = workers.reduce((entries, { state }) => entries + state.length, 0);
    const longest = this.size > MAX_OPEN ? 0 : IDLE_MS;
    const idle = workers.filter((worker) => worker.isIdle).sort((a, b) => b.lastUsedAt - a.lastUsedAt);
    let entries = 0;
    return idle.filter(({ lastUsedAt, state }) => {
      entries += state.length;
      const unused = now - lastUsedAt;
      if (unused > longest) return true;
      return entries > MAX_ENTRIES && unused > IN_USE_MS;
    });
  }
}
