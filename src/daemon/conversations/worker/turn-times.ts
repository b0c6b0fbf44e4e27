import type { Turn } from '../../../conversation/index.ts';
import type { Clock } from '../../../kernel/index.ts';

/**
 * The working time of the turns of one conversation.
 *
 * TURN-TIME-1  The time of a turn is measured by the monotonic clock while this daemon works on it. Setting the wall clock
 *              has no effect.
 * TURN-TIME-2  The time that an earlier daemon spent is the sum of the durations in the log. Time without a daemon does
 *              not count, nor does a call that ran when its daemon was killed: its duration is in no log.
 * TURN-TIME-3  Waiting for an answer does not count: after it the full time is available again.
 */
export class TurnTimes {
  /** By agent, which has one turn at a time. */
  readonly #begun = new Map<
    string,
    { readonly turnId: string; readonly since: number; readonly at: number }
  >();
  readonly #elapsed: Clock;

  constructor(elapsed: Clock) {
    this.#elapsed = elapsed;
  }

  /** When the turn has worked for `limitMs`, by the monotonic clock. */
  deadline({ agent, turnId, workingSince: since, workedMs }: Turn, limitMs: number): number {
    let begun = this.#begun.get(agent);
    if (begun?.turnId !== turnId || begun.since !== since) {
      begun = { turnId, since, at: this.#elapsed() - workedMs };
      this.#begun.set(agent, begun);
    }
    return begun.at + limitMs;
  }
}
