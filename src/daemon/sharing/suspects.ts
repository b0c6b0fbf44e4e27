import type { IngressDelivery } from '../../bus/index.ts';
import { sleep } from '../../kernel/index.ts';
import type { SharedMarks } from '../../persistence/index.ts';
import { MOST_ATTEMPTS } from '../attempts.ts';

/**
 * Posts that may have ended a daemon, where several share the work: such a post must not end one after the other for ever.
 *
 * U1 A post whose token comes again counts as tried once. Before it is tried again that is marked where all daemons see
 *    it; the mark goes when the daemon has survived it, whatever came of it.
 * U2 One that is marked waits longer each time: others are served meanwhile. After `MOST_ATTEMPTS` it is given up.
 * U3 What cannot be read or marked is not tried: its token comes again.
 */

const PATIENCE_MS = 1_000;

export class Suspects {
  readonly #marks: SharedMarks;
  readonly #leaving: AbortSignal;

  constructor(marks: SharedMarks, leaving: AbortSignal) {
    this.#marks = marks;
    this.#leaving = leaving;
  }

  /** `giveUp` answers false for a post that the log has after all. */
  async guard(
    { position }: IngressDelivery,
    isRepeated: boolean,
    deliver: () => Promise<void>,
    giveUp: (attempts: number) => Promise<boolean>,
  ): Promise<void> {
    const before = (await this.#marks.attempts(position)) ?? (isRepeated ? 1 : 0); // U1
    if (before === 0) return deliver();
    if (before < MOST_ATTEMPTS || !(await giveUp(before))) {
      await sleep((before - 1) * PATIENCE_MS, this.#leaving); // U2
      if (this.#leaving.aborted) throw new Error('this daemon leaves');
      await this.#marks.saveAttempts(position, before + 1); // U3
      try {
        await deliver();
      } finally {
        this.#forget(position);
      }
    } else this.#forget(position);
  }

  #forget(position: IngressDelivery['position']): void {
    this.#marks.saveAttempts(position, null).catch(() => undefined); // one mark too many costs a post some seconds
  }
}
