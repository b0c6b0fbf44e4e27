import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Seen } from './checks/takeovers.ts';
import type { Observed } from './findings.ts';
import type { ChaosReport } from './report.ts';

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
