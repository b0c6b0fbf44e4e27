import type { StreamPosition } from '../../bus/index.ts';
import type { SharedMarks } from '../../persistence/index.ts';
import { dueAfter, type Suspect, untilDue } from '../ingress/fatal-posts.ts';

/**
 * Counts attempts at posts that may have crashed a daemon, when several daemons share the work (`fatal-posts.ts`).
 *
 * SUSPECTS-1  A redelivered token counts as one attempt. Before the next attempt the count is stored where all daemons read
 *             it. It is removed when the daemon survives the attempt, whatever its result, or when the post is given up.
 * SUSPECTS-2  A counted post waits longer before each attempt, starting when it is the next of its conversation. Later
 *             posts wait for it, so they seldom have a count. A token that was only redelivered does not wait.
 * SUSPECTS-3  If the count cannot be read or stored, the post is not tried: its token is redelivered.
 */

export class Suspects {
  readonly #marks: SharedMarks;

  constructor(marks: SharedMarks) {
    this.#marks = marks;
  }

  /** Null: no failed attempt is known. */
  async suspect(position: StreamPosition, isRepeated: boolean): Promise<Suspect | null> {
    const before = (await this.#marks.attempts(position)) ?? (isRepeated ? 1 : 0);
    if (before === 0) return null;
    const due = dueAfter(before);
    const forget = () => {
      this.#marks.saveAttempts(position, null).catch(() => undefined); // a leftover count delays the post by seconds
    };
    return {
      before: () => before,
      again: async (attempt, stopping) => {
        await untilDue(due, stopping);
        await this.#marks.saveAttempts(position, before + 1);
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
