import { sleep } from '../kernel/index.ts';

/** The time that a stop gives to what runs: one for everything that is waited for, from the first wait on. */
export class Grace {
  private readonly milliseconds: number;
  private over: Promise<void> | null = null;
  private readonly done = new AbortController();

  constructor(milliseconds: number) {
    this.milliseconds = milliseconds;
  }

  /** Resolves with the work, or when the grace is over. */
  async within(work: Promise<void>): Promise<void> {
    this.over ??= sleep(this.milliseconds, this.done.signal);
    await Promise.race([work, this.over]);
  }

  /** Leaves no timer behind. Nothing is waited for any more. */
  end(): void {
    this.done.abort();
  }
}
