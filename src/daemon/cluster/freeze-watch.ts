/**
 * Detects that this process was frozen.
 *
 * FREEZE-WATCH-1  After a freeze the daemon compares every open conversation with its log: peers may have taken it over.
 */
export class FreezeWatch {
  readonly #freezeMs: number;
  readonly #onResume: (frozenMs: number) => void;
  readonly #timer: NodeJS.Timeout;
  #checkedAt = performance.now();

  /** A gap of `longestGapMs` or more between two checks is a freeze. */
  constructor(longestGapMs: number, onResume: (frozenMs: number) => void) {
    this.#freezeMs = longestGapMs;
    this.#onResume = onResume;
    this.#timer = setInterval(() => this.check(), Math.max(10, longestGapMs / 8));
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Also call it when a message arrives: after a freeze, messages are processed before any timer runs. */
  check(): void {
    const now = performance.now();
    const gap = now - this.#checkedAt;
    this.#checkedAt = now;
    if (gap >= this.#freezeMs) this.#onResume(gap);
  }
}
