/**
 * A queue with one reader: what waits while the reader works is handed over together.
 *
 * MAILBOX-1 The handler runs once at a time, with everything that waited, oldest first.
 * MAILBOX-2 A handler never rejects: it answers for each item itself.
 */
export class Mailbox<T> {
  private waiting: T[] = [];
  private running: Promise<void> | null = null;
  private readonly handle: (items: T[]) => Promise<void>;

  constructor(handle: (items: T[]) => Promise<void>) {
    this.handle = handle;
  }

  get isIdle(): boolean {
    return this.running === null;
  }

  send(item: T): void {
    this.waiting.push(item);
    this.running ??= this.drain();
  }

  /** Takes back what waits and fits, oldest first. */
  takeBack(fits: (item: T) => boolean): T[] {
    const taken = this.waiting.filter(fits);
    this.waiting = this.waiting.filter((item) => !fits(item));
    return taken;
  }

  /** Resolves when nothing waits and nothing runs. */
  async idle(): Promise<void> {
    while (this.running) await this.running;
  }

  private async drain(): Promise<void> {
    // Let everything that is sent in the same tick travel together.
    await Promise.resolve();
    while (this.waiting.length > 0) {
      const items = this.waiting;
      this.waiting = [];
      await this.handle(items);
    }
    this.running = null;
  }
}

/**
 * Lets many callers share one piece of work: a call that comes while the work runs waits for a later run, since the
 * running one may have begun before what the caller wants covered. At most one run at a time, at most one waiting.
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
      .catch(() => undefined)
      .then(() => {
        waiting = null;
        return request();
      });
    return waiting;
  }
  return request;
}
