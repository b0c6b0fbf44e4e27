import { randomInt } from 'node:crypto';
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { ChaosReport } from '../../../chaos/index.ts';
import { ParleyError } from '../../../kernel/index.ts';
import type { Act, Context } from '../../context.ts';

interface ChaosCommandOptions {
  readonly seconds: number;
  readonly seed?: number;
  readonly keep?: string;
  readonly store: 'file' | 'jetstream';
  readonly daemons: number;
  readonly servers: number;
  readonly conversations?: number;
  readonly silence?: number;
}

const LARGEST_SEED = 2 ** 31 - 1;
const DEFAULT_SECONDS = 60;

export function addChaos(program: Command, act: Act): void {
  program
    .command('chaos')
    .description(
      'inject faults into a separate daemon for a while, and report what it lost (nothing, if all is well)',
    )
    .option('--seconds <n>', 'how long to inject faults', wholeNumber, DEFAULT_SECONDS)
    .option('--seed <n>', 'the same seed gives the same faults (default: random)', wholeNumber)
    .addOption(
      new Option('--store <kind>', 'where the logs are stored')
        .choices(['file', 'jetstream'])
        .default('file'),
    )
    .option(
      '--servers <n>',
      'number of nats-servers; 3 or 5 form a cluster with that many replicas',
      clusterSize,
      1,
    )
    .option(
      '--daemons <n>',
      'number of daemons that share the work; requires --store jetstream',
      wholeNumber,
      1,
    )
    .option(
      '--conversations <n>',
      'number of concurrent conversations (default: 4, replaced each minute)',
      wholeNumber,
    )
    .option(
      '--silence <ms>',
      'the failure timeout after which other daemons take over (default: the product default)',
      wholeNumber,
    )
    .option('--keep <dir>', 'keep the logs of a run with violations here (default: delete them)')
    .action((options: ChaosCommandOptions, command: Command) =>
      act(command, (context) => chaos(context, options)),
    );
}

async function chaos(context: Context, options: ChaosCommandOptions): Promise<number> {
  const { seconds, seed, keep, store, daemons, servers, conversations, silence } = options;
  if (store === 'file' && daemons > 1)
    throw new ParleyError('USAGE', 'daemons cannot share files', { hint: 'add --store jetstream' });
  const ending = new AbortController();
  let signals = 0;
  const release = context.io.onSignal(() => {
    signals += 1;
    if (signals > 1) context.io.exitNow(1);
    context.note('no more faults; checking the logs so far');
    ending.abort();
  });
  try {
    const { createSchedule, runChaos } = await context.rooms.chaos();
    const report = await runChaos({
      schedule: createSchedule({
        seed: seed ?? randomInt(LARGEST_SEED),
        seconds,
        daemons,
        servers,
        ...(conversations !== undefined && { conversations }),
      }),
      store,
      ...(silence !== undefined && { silenceMs: silence }),
      keep: keep === undefined ? null : resolve(context.io.workingDirectory, keep),
      env: context.io.env,
      say: (line) => context.note(line),
      signal: ending.signal,
    });
    if (context.json) context.value(report);
    else context.line(renderChaos(report, sharingOptions(options)));
    return report.violations.length === 0 ? 0 : 1;
  } finally {
    release();
  }
}

/** The options that determine a run besides its length and its seed. */
function sharingOptions({ store, daemons, servers, conversations, silence }: ChaosCommandOptions): string {
  const options = [
    store === 'jetstream' && '--store jetstream',
    daemons > 1 && `--daemons ${daemons}`,
    servers > 1 && `--servers ${servers}`,
    conversations !== undefined && `--conversations ${conversations}`,
    silence !== undefined && `--silence ${silence}`,
  ];
  return options.map((option) => (option ? ` ${option}` : '')).join('');
}

function wholeNumber(value: string): number {
  if (/^\d{1,9}$/.test(value) && Number(value) > 0) return Number(value);
  throw new InvalidArgumentError('Give a whole number from 1 to 999999999.');
}

function clusterSize(value: string): number {
  if (/^[135]$/.test(value)) return Number(value);
  throw new InvalidArgumentError('Give 1, 3 or 5: an even number survives no more failures than one less.');
}

/** The report of a run, for people. The seed, first and last, repeats the faults. `options`: the other options. */
function renderChaos(report: ChaosReport, options: string): string {
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
