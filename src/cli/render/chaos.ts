import type { ChaosReport } from '../../chaos/index.ts';

/** What a run of faults came to, for people. The seed stands first and last: with it the faults come again. */
export function renderChaos(report: ChaosReport): string {
  const { seed, faultSeconds, seconds, faults, crashes, skipped, counts, violations } = report;
  return [
    `seed ${seed}, ${seconds} s`,
    `faults: ${listed(faults)}`,
    `crash points hit: ${listed(crashes)}`,
    ...skipped.map((line) => `skipped: ${line}`),
    `seen: ${listed(counts)}`,
    ...violations.map(({ law, conversation, index, text }) => {
      const place = [conversation, index].filter((part) => part !== null).join(' ');
      return `VIOLATION ${law}${place === '' ? '' : ` (${place})`}: ${text}`;
    }),
    violations.length === 0
      ? 'nothing lost, nothing twice: 0 violations'
      : `${violations.length} violations; the same faults again: parley chaos --seconds ${faultSeconds} --seed ${seed}`,
  ].join('\n');
}

function listed(counts: Readonly<Record<string, number | null | undefined>>): string {
  const items = Object.entries(counts).map(([name, count]) => `${name} ${count ?? 'unknown'}`);
  return items.length === 0 ? 'none' : items.join(', ');
}
