/**
 * A queue with one reader: items that arrive while the reader works are passed on together.
 *
 * MAILBOX-1 The handler runs once at a time, with all waiting items, oldest first.
 * MAILBOX-2 The handler must not reject: it reports the result of each item itself.
 */
export class Mailbox<T> {
  #waiting: T[] = [];
  #running: Promise<void> | null = null;
  readonly #handle: (items: T[]) => Promise<void>;

  constructor(handle: (items: T[]) => Promise<void>) {
    this.#handle = handle;
  }

  get isIdle(): boolean {
    return this.#running === null;
  }

  send(item: T): void {
    this.#waiting.push(item);
    this.#running ??= this.#drain();
  }

  /** Removes and returns the waiting items that fit, oldest first. */
  takeBack(fits: (item: T) => boolean): T[] {
    const taken = this.#waiting.filter(fits);
    this.#waiting = this.#waiting.filter((item) => !fits(item));
    return taken;
  }

  /** Resolves when nothing waits and nothing runs. */
  async idle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  async #drain(): Promise<void> {
    // Items sent in the same tick are handled together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const items = this.#waiting;
      this.#waiting = [];
      await this.#handle(items);
    }
    this.#running = null;
  }
}

/**
 * Lets callers share runs of `work`. A call during a run waits for the next run, since the current one may have begun before
 * the caller's change. At most one run is active and one is waiting.
 */
export function coalesce(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  let waiting: Promise<void> | null = null;

  function request(): Promise<void> {
    if (running === null) {
      running = work().finally(() => {
        running = null;
      });
      return running;
    }
    waiting ??= running
      .catch(() => undefined) // the callers of that run get its error
      .then(() => {
        waiting = null;
        return request();
      });
    return waiting;
  }
  return request;
}
