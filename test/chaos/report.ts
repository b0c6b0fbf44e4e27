import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Seen, Takeovers } from './checks/takeovers.ts';
import type { Observed, Violation } from './findings.ts';
import type { FaultKind } from './schedule.ts';

/** The result of a run. */
export interface ChaosReport {
  readonly seed: number;
  /** The planned duration of the faults. */
  readonly faultSeconds: number;
  /** In total. */
  readonly seconds: number;
  /** Executed faults by kind. */
  readonly faults: Readonly<Partial<Record<FaultKind, number>>>;
  /** How often the daemon ended itself at which crash point. */
  readonly crashes: Readonly<Record<string, number>>;
  /** Skipped faults, with the reason. */
  readonly skipped: readonly string[];
  readonly counts: Readonly<Record<string, number | null>>;
  /** Present if several daemons shared the work; null: there was no takeover. */
  readonly takeovers?: Takeovers | null;
  readonly violations: readonly Violation[];
}

/** Files to investigate a finding: `report.json`, `outages.json`, and each log as JSON lines. */
export async function keepEvidence(
  directory: string,
  report: ChaosReport,
  { logs }: Observed,
  seen: Seen,
): Promise<void> {
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'report.json'), `${JSON.stringify(report, null, 2)}\n`);
  await writeFile(join(directory, 'outages.json'), `${JSON.stringify(seen, null, 2)}\n`);
  for (const [conversation, entries] of logs) {
    const lines = entries.map((entry) => `${JSON.stringify(entry)}\n`);
    await writeFile(join(directory, `${conversation}.jsonl`), lines.join(''));
  }
}
