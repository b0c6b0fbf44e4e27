import { sleep } from '../kernel/index.ts';
import type { Membership } from './cluster/membership.ts';
import type { Workers } from './conversations/workers.ts';

/** The grace period of a stop: one for all waits, starting with the first. */
export class Grace {
  readonly #milliseconds: number;
  #over: Promise<void> | null = null;
  readonly #done = new AbortController();

  constructor(milliseconds: number) {
    this.#milliseconds = milliseconds;
  }

  /** Resolves when the work or the grace period ends. */
  async within(work: Promise<void>): Promise<void> {
    this.#over ??= sleep(this.#milliseconds, this.#done.signal);
    await Promise.race([work, this.#over]);
  }

  /** Ends the period and clears its timer. */
  end(): void {
    this.#done.abort();
  }
}

/** DAEMON-DAEMON-3: running work may finish within the grace period; the rest is dropped and stays outstanding in its log. */
export async function finish(
  workers: Workers,
  shutdown: AbortController,
  grace: Grace,
  onReleased?: Membership['released'],
): Promise<void> {
  const drained = workers.drain(onReleased);
  await grace.within(drained);
  grace.end();
  shutdown.abort();
  await drained;
  await workers.closeAll();
}
