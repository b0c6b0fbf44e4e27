import type { Takeovers } from './checks/takeovers.ts';
import type { Violation } from './findings.ts';
import type { FaultKind } from './schedule.ts';

/** What a run came to. */
export interface ChaosReport {
  readonly seed: number;
  /** For how long faults were planned. */
  readonly faultSeconds: number;
  /** In all. */
  readonly seconds: number;
  /** Faults that were done, by kind. */
  readonly faults: Readonly<Partial<Record<FaultKind, number>>>;
  /** How often the daemon ended itself at which crash point. */
  readonly crashes: Readonly<Record<string, number>>;
  /** What could not be done here, and why. */
  readonly skipped: readonly string[];
  readonly counts: Readonly<Record<string, number | null>>;
  /** Where several daemons shared the work; null: nobody had to take over anything. */
  readonly takeovers?: Takeovers | null;
  readonly violations: readonly Violation[];
}
