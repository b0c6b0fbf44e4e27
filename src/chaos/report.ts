import type { Violation } from './findings.ts';
import type { FaultKind } from './schedule.ts';

/** What a run came to. */
export interface ChaosReport {
  readonly seed: number;
  /** In all. */
  readonly seconds: number;
  /** Faults that were done, by kind. */
  readonly faults: Readonly<Partial<Record<FaultKind, number>>>;
  /** Crash points that the daemon reached and died at, `name:nth`. */
  readonly crashes: Readonly<Record<string, number>>;
  /** What could not be done here, and why. */
  readonly skipped: readonly string[];
  readonly counts: Readonly<Record<string, number | null>>;
  readonly violations: readonly Violation[];
}
