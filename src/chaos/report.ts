import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Seen, Takeovers } from './checks/takeovers.ts';
import type { Observed, Violation } from './findings.ts';
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

/** What a finding can be followed up with: `report.json`, `outages.json`, and each log as JSON lines. */
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
