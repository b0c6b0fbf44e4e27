import type { ChaosReport } from '../../chaos/index.ts';

/**
 * What a run of faults came to, for people. The seed stands first and last: with it the faults come again. `options`: what
 * else was said on the command line.
 */
export function renderChaos(report: ChaosReport, options: string): string {
  const { seed, faultSeconds, seconds, faults, crashes, skipped, counts, takeovers, violations } = report;
  return [
    `seed ${seed}, ${seconds} s`,
    `faults: ${listed(faults)}`,
    `crash points hit: ${listed(crashes)}`,
    ...skipped.map((line) => `skipped: ${line}`),
    `seen: ${listed(counts)}`,
    ...(takeovers === undefined ? [] : [`takeovers: ${waited(takeovers)}`]),
    ...violations.map(({ law, conversation, index, text }) => {
      const place = [conversation, index].filter((part) => part !== null).join(' ');
      return `VIOLATION ${law}${place === '' ? '' : ` (${place})`}: ${text}`;
    }),
    violations.length === 0
      ? 'nothing lost, nothing twice: 0 violations'
      : `${violations.length} violations; the same faults again: parley chaos --seconds ${faultSeconds} --seed ${seed}${options}`,
  ].join('\n');
}

function waited(takeovers: NonNullable<ChaosReport['takeovers']> | null): string {
  if (takeovers === null) return 'none';
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
  const { count, medianMs, p99Ms, mostMs } = takeovers;
  return `${count}, median ${seconds(medianMs)}, p99 ${seconds(p99Ms)}, at most ${seconds(mostMs)} (wanted: 15 s at p99)`;
}

function listed(counts: Readonly<Record<string, number | null | undefined>>): string {
  const items = Object.entries(counts).map(([name, count]) => `${name} ${count ?? 'unknown'}`);
  return items.length === 0 ? 'none' : items.join(', ');
}
