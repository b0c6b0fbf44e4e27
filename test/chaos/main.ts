/**
 * `npm run chaos -- --seconds 300 --seed 7`: injects faults into a daemon, its server, its disk and its model, then checks what
 * is left.
 *
 * run.ts           one run: faults, recovery, checks, clean-up; runner.ts executes the schedule
 * schedule.ts      plans the faults from a seed (rng.ts); posts-plan.ts plans the posts
 * environment.ts   processes, directories and configuration of a run; scenario.ts what agents and tools do
 * actors/          the daemon, nats-server, network proxy, disk, model, tool server and publishers
 * checks/          laws that are checked from outside; findings.ts checks the effects of tools
 * observe.ts       reads logs and views through the request API; report.ts the result
 *
 * Checks read only what a client can see. Nothing here calls code of the daemon. What a daemon under test does to itself (crash
 * points) is in `src/daemon/observe/crash-points.ts`.
 */
import { randomInt } from 'node:crypto';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { ChaosReport } from './report.ts';
import { type ChaosOptions, runChaos } from './run.ts';
import { createSchedule } from './schedule.ts';

interface Arguments {
  readonly seconds: number;
  readonly seed?: number;
  readonly keep?: string;
  readonly store: 'file' | 'jetstream';
  readonly daemons: number;
  readonly servers: number;
  readonly conversations?: number;
  readonly failureTimeout?: number;
  readonly json?: boolean;
}

const LARGEST_SEED = 2 ** 31 - 1;
const DEFAULT_SECONDS = 60;

export function createProgram(act: (args: Arguments, program: Command) => Promise<void>): Command {
  return new Command('npm run chaos --')
    .description(
      'Injects faults into daemons of its own, and reports what was lost (nothing, if all is well).',
    )
    .option('--seconds <n>', 'how long to inject faults', wholeNumber, DEFAULT_SECONDS)
    .option('--seed <n>', 'the same seed gives the same faults (default: random)', wholeNumber)
    .addOption(
      new Option('--store <kind>', 'where the logs are stored')
        .choices(['file', 'jetstream'])
        .default('file'),
    )
    .option('--servers <n>', 'nats-servers; 3 or 5 form a cluster with that many replicas', clusterSize, 1)
    .option('--daemons <n>', 'daemons that share the work; requires --store jetstream', wholeNumber, 1)
    .option('--conversations <n>', 'concurrent conversations (default: 4, replaced each minute)', wholeNumber)
    .option('--failure-timeout <ms>', 'the failure timeout (default: that of the product)', wholeNumber)
    .option('--keep <dir>', 'keep the logs of a run with violations here')
    .option('--json', 'print the report as JSON')
    .action(act);
}

/** The options of a run. `signal` ends the faults early. */
export function chaosOptions(args: Arguments, signal: AbortSignal): ChaosOptions {
  const { seconds, seed, keep, store, daemons, servers, conversations, failureTimeout } = args;
  return {
    schedule: createSchedule({
      seed: seed ?? randomInt(LARGEST_SEED),
      seconds,
      daemons,
      servers,
      ...(conversations !== undefined && { conversations }),
    }),
    store,
    ...(failureTimeout !== undefined && { failureTimeoutMs: failureTimeout }),
    keep: keep === undefined ? null : resolve(keep),
    env: process.env,
    say: (line) => console.error(line),
    signal,
  };
}

async function main(args: Arguments, program: Command): Promise<void> {
  if (args.store === 'file' && args.daemons > 1)
    program.error('error: daemons cannot share files; add --store jetstream');
  const ending = new AbortController();
  const end = (signal: NodeJS.Signals) => {
    if (ending.signal.aborted) process.kill(process.pid, 'SIGKILL');
    console.error(`${signal}: no more faults; checking the logs so far`);
    ending.abort();
  };
  process.on('SIGINT', end).on('SIGTERM', end);
  const report = await runChaos(chaosOptions(args, ending.signal));
  process.off('SIGINT', end).off('SIGTERM', end);
  console.log(args.json ? JSON.stringify(report) : renderChaos(report, sharingOptions(args)));
  process.exitCode = report.violations.length === 0 ? 0 : 1;
}

/** The options that determine a run besides its length and its seed. */
export function sharingOptions({
  store,
  daemons,
  servers,
  conversations,
  failureTimeout,
}: Arguments): string {
  const options = [
    store === 'jetstream' && '--store jetstream',
    daemons > 1 && `--daemons ${daemons}`,
    servers > 1 && `--servers ${servers}`,
    conversations !== undefined && `--conversations ${conversations}`,
    failureTimeout !== undefined && `--failure-timeout ${failureTimeout}`,
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
      : `${violations.length} violations; the same faults again: npm run chaos -- --seconds ${faultSeconds} --seed ${seed}${options}`,
  ].join('\n');
}

function waited(takeovers: NonNullable<ChaosReport['takeovers']> | null): string {
  if (takeovers === null) return 'none';
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
  const { count, medianMs, p99Ms, mostMs } = takeovers;
  return `${count}, median ${seconds(medianMs)}, p99 ${seconds(p99Ms)}, at most ${seconds(mostMs)} (wanted: 10 s at p99)`;
}

function listed(counts: Readonly<Record<string, number | null | undefined>>): string {
  const items = Object.entries(counts).map(([name, count]) => `${name} ${count ?? 'unknown'}`);
  return items.length === 0 ? 'none' : items.join(', ');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await createProgram(main).parseAsync();
