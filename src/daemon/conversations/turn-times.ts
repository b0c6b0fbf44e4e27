import type { Turn } from '../../conversation/index.ts';
import type { Clock } from '../../kernel/index.ts';

/**
 * How long the turns of one conversation have worked.
 *
 * TURN-TIME-1  The time of a turn is measured by the monotonic clock, while this daemon works on it. Setting the wall clock
 *              gives and takes nothing.
 * TURN-TIME-2  What an earlier daemon spent on the turn is read from the durations in the log. The time in which no daemon ran
 *              does not count, nor does a call that was out when its daemon was killed: its duration is in no log.
 * TURN-TIME-3  Waiting for an answer does not count: after a wait the whole time is available again.
 */
export class TurnTimes {
  /** By agent, which has one turn at a time. */
  private readonly begun = new Map<
    string,
    { readonly turnId: string; readonly since: number; readonly at: number }
  >();
  private readonly elapsed: Clock;

  constructor(elapsed: Clock) {
    this.elapsed = elapsed;
  }

  /** When the turn has worked for so long, by the monotonic clock. */
  deadline({ agent, turnId, workingSince: since, workedMs }: Turn, limitMs: number): number {
    let begun = this.begun.get(agent);
    if (begun?.turnId !== turnId || begun.since !== since) {
      begun = { turnId, since, at: this.elapsed() - workedMs };
      this.begun.set(agent, begun);
    }
    return begun.at + limitMs;
  }
}
