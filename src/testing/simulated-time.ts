import type { Timers } from '../kernel/index.ts';

interface Timer {
  readonly due: number;
  readonly run: () => void;
}

/**
 * A clock that only a test moves.
 *
 * SIMULATED-TIME-1  A sleep, such as the wait before another attempt, moves the clock itself: no test waits for it.
 * SIMULATED-TIME-2  Timers run in the order of their times, each at its time.
 */
export class SimulatedTime {
  readonly #start: number;
  #passed = 0;
  readonly #timers = new Set<Timer>();

  constructor(start: number) {
    this.#start = start;
  }

  /** The wall clock. */
  readonly now = (): number => this.#start + this.#passed;
  readonly elapsed = (): number => this.#passed;

  readonly timers: Timers = {
    after: (ms, run) => {
      const timer = { due: this.#passed + Math.max(0, ms), run };
      this.#timers.add(timer);
      return () => void this.#timers.delete(timer);
    },
    sleep: async (ms, signal) => {
      if (!signal?.aborted) await this.advance(ms, async () => undefined);
    },
  };

  /** `settle`: called before the first timer and after each, until what it began has ended. */
  async advance(ms: number, settle: () => Promise<void>): Promise<void> {
    await settle();
    const end = this.#passed + ms;
    for (let timer = this.#next(end); timer; timer = this.#next(end)) {
      this.#timers.delete(timer);
      this.#passed = Math.max(this.#passed, timer.due);
      timer.run();
      await settle();
    }
    this.#passed = Math.max(this.#passed, end);
  }

  #next(end: number): Timer | undefined {
    const [first] = [...this.#timers].filter(({ due }) => due <= end).sort((a, b) => a.due - b.due);
    return first;
  }
}
