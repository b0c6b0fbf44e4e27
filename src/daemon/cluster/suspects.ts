import type { StreamPosition } from '../../bus/index.ts';
import type { SharedMarks } from '../../persistence/index.ts';
import { dueAfter, type Suspect, untilDue } from '../ingress/fatal-posts.ts';

/**
 * Posts that may have ended a daemon, where several share the work (`fatal-posts.ts`).
 *
 * SUSPECTS-1 A post whose token comes again counts as tried once. Before it is tried again that is marked where all daemons see
 *    it; the mark goes when the daemon has survived it, whatever came of it, or when it is given up.
 * SUSPECTS-2 One that is marked waits longer each time, from when it is the next of its conversation: those behind it are not
 *    tried before, so they seldom have marks. One whose token merely came again does not wait.
 * SUSPECTS-3 What cannot be read or marked is not tried: its token comes again.
 */

export class Suspects {
  readonly #marks: SharedMarks;

  constructor(marks: SharedMarks) {
    this.#marks = marks;
  }

  /** Null: nothing is known against it. */
  async suspect(position: StreamPosition, isRepeated: boolean): Promise<Suspect | null> {
    const before = (await this.#marks.attempts(position)) ?? (isRepeated ? 1 : 0); // SUSPECTS-1
    if (before === 0) return null;
    const due = dueAfter(before);
    const forget = () => {
      this.#marks.saveAttempts(position, null).catch(() => undefined); // one mark too many costs a post some seconds
    };
    return {
      before: () => before,
      again: async (attempt, stopping) => {
        await untilDue(due, stopping); // SUSPECTS-2
        await this.#marks.saveAttempts(position, before + 1); // SUSPECTS-3
        try {
          await attempt();
        } finally {
          forget();
        }
      },
      givenUp: forget,
    };
  }
}
