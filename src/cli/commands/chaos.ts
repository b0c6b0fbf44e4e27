import { randomInt } from 'node:crypto';
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { CRASH_POINTS } from '../../config/index.ts';
import type { Act } from '../act.ts';
import type { Context } from '../context.ts';
import { renderChaos } from '../render/chaos.ts';

interface ChaosCommandOptions {
  readonly seconds: number;
  readonly seed?: number;
  readonly keep?: string;
}

const LARGEST_SEED = 2 ** 31 - 1;
const DEFAULT_SECONDS = 60;

export function addChaos(program: Command, act: Act): void {
  program
    .command('chaos')
    .description(
      'break a daemon of its own in every way for a while, and say what it lost (nothing, if all is well)',
    )
    .option(
      '--seconds <n>',
      `how long faults happen (default: ${DEFAULT_SECONDS})`,
      wholeNumber,
      DEFAULT_SECONDS,
    )
    .option(
      '--seed <n>',
      'decides what happens when; the same seed, the same faults (default: any)',
      wholeNumber,
    )
    .option('--keep <dir>', 'where to keep the logs of a run with violations (default: nowhere)')
    .action((options: ChaosCommandOptions, command: Command) =>
      act(command, (context) => chaos(context, options)),
    );
}

async function chaos(context: Context, { seconds, seed, keep }: ChaosCommandOptions): Promise<number> {
  const ending = new AbortController();
  let signals = 0;
  const release = context.io.onSignal(() => {
    signals += 1;
    if (signals > 1) context.io.exitNow(1);
    context.note('ending the faults; what there is will be judged');
    ending.abort();
  });
  try {
    const { createSchedule, runChaos } = await context.rooms.chaos();
    const decided = { seed: seed ?? randomInt(LARGEST_SEED), seconds, crashPoints: CRASH_POINTS };
    const report = await runChaos({
      schedule: createSchedule(decided),
      keep: keep === undefined ? null : resolve(context.io.workingDirectory, keep),
      env: context.io.env,
      say: (line) => context.note(line),
      signal: ending.signal,
    });
    if (context.json) context.value(report);
    else context.line(renderChaos(report));
    return report.violations.length === 0 ? 0 : 1;
  } finally {
    release();
  }
}

function wholeNumber(value: string): number {
  if (/^\d{1,9}$/.test(value) && Number(value) > 0) return Number(value);
  throw new InvalidArgumentError('Give a whole number from 1 to 999999999.');
}
