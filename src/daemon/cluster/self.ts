/** Who claimed a conversation, and by the how manieth claim. */
export interface Claimant {
  readonly daemon: string;
  readonly epoch: number;
}

/**
 * This daemon, as others know it. Its id is made anew at each start: a daemon that comes back is another one.
 *
 * SELF-1 A process may be frozen for any time between two of its steps, and others take over meanwhile. So it looks at the log
 *    right before it does anything that no log can refuse, and takes no look for one that is half a silence old.
 * SELF-2 Time is watched: what was found to have frozen looks at all that it has open.
 */
export interface Self {
  readonly daemon: string;
  /** The life of the ingress stream, once that is known. */
  ingressLife(): string | undefined;
  /** That claimant does not work on the conversation any more, as far as is known: it may be claimed. */
  mayTakeOver(conversation: string, from: Claimant): boolean;
  /**
   * False: the conversation is another daemon's by now (SELF-1). Waits for the log; true at an abort, behind which nothing begins.
   * Does not reject.
   */
  mayAct(conversation: string, signal: AbortSignal): Promise<boolean>;
  /** Turns of a conversation that are not tried again. */
  gaveUp(conversation: string, triggers: readonly number[]): void;
}

/** SELF-2 */
export class FreezeWatch {
  readonly #longestGapMs: number;
  readonly #onThaw: (frozenMs: number) => void;
  readonly #timer: NodeJS.Timeout;
  #seenAt = performance.now();

  /** `longestGapMs`: what is shorter is no freeze. */
  constructor(longestGapMs: number, onThaw: (frozenMs: number) => void) {
    this.#longestGapMs = longestGapMs;
    this.#onThaw = onThaw;
    this.#timer = setInterval(() => this.look(), Math.max(10, longestGapMs / 8));
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** To be called, too, where it matters that a freeze is known: after one, what has come is read before any timer runs. */
  look(): void {
    const now = performance.now();
    const gap = now - this.#seenAt;
    this.#seenAt = now;
    if (gap >= this.#longestGapMs) this.#onThaw(gap);
  }
}
