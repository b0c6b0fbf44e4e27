import type { ConversationWorker } from './worker.ts';

/**
 * The workers that are in memory, and those that are being opened.
 *
 * OPEN-WORKERS-1 Idle ones leave after a minute; when there are many, at once; and when the logs of idle ones are long, those that were
 *    not used for longest, and not for a while: what is in use again and again would be read from its beginning each time.
 */

/** A conversation that nobody used for this long, and that owes nothing, leaves memory. */
const IDLE_MS = 60_000;
/** OPEN-WORKERS-1 */
const MANY = 500;
/** OPEN-WORKERS-1 */
const IN_USE_MS = 20_000;
/** OPEN-WORKERS-1: in the logs of idle ones; some 200 MB where they are short. */
const MANY_ENTRIES = 250_000;

export class OpenWorkers {
  readonly #openings = new Map<string, Promise<ConversationWorker>>();
  readonly #opened = new WeakMap<Promise<ConversationWorker>, ConversationWorker>();
  /** In all their logs, as they were when they were opened or last counted. */
  #entries = 0;

  get size(): number {
    return this.#openings.size;
  }

  /** Its worker, as soon as its log is read; rejects if that cannot be read. */
  opening(id: string): Promise<ConversationWorker> | undefined {
    return this.#openings.get(id);
  }

  /** Its worker, unless its log is being read. */
  worker(id: string): ConversationWorker | undefined {
    const opening = this.#openings.get(id);
    return opening && this.#opened.get(opening);
  }

  get openings(): Promise<ConversationWorker>[] {
    return [...this.#openings.values()];
  }

  /** Those that have been opened. */
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

  /** All that can be opened, once they are. */
  async all(): Promise<ConversationWorker[]> {
    const workers = await Promise.all(this.openings.map((opening) => opening.catch(() => null)));
    return workers.filter((worker) => worker !== null);
  }

  /** One that fits: of those that are open, or else once all are. */
  async find(fits: (worker: ConversationWorker) => boolean): Promise<ConversationWorker | undefined> {
    return this.workers.find(fits) ?? (await this.all()).find(fits);
  }

  /** OPEN-WORKERS-1: it is worth looking for idle ones. */
  get isFull(): boolean {
    return this.size > MANY || this.#entries > MANY_ENTRIES;
  }

  /** Those that may leave memory at this time of the monotonic clock. */
  idle(now: number): ConversationWorker[] {
    const { workers } = this;
    this.#entries = workers.reduce((entries, { state }) => entries + state.length, 0);
    const longest = this.size > MANY ? 0 : IDLE_MS;
    const idle = workers.filter((worker) => worker.isIdle).sort((a, b) => b.lastUsedAt - a.lastUsedAt);
    let entries = 0;
    return idle.filter(({ lastUsedAt, state }) => {
      entries += state.length;
      const unused = now - lastUsedAt;
      if (unused > longest) return true;
      return entries > MANY_ENTRIES && unused > IN_USE_MS;
    });
  }
}
