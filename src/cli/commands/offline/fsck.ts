import type { Command } from 'commander';
import { ParleyError } from '../../../client/index.ts';
import type { FsckReport } from '../../../daemon/index.ts';
import type { Act, Context } from '../../context.ts';
import { dataDirectoryOf } from '../../find-daemon.ts';
import { conversationId } from '../../options/options.ts';
import type { Palette } from '../../render/palette.ts';
import { indent } from '../../render/text.ts';

interface FsckCommandOptions {
  readonly repair?: boolean;
  readonly dryRun?: boolean;
  readonly views?: boolean;
}

export function addFsck(program: Command, act: Act): void {
  program
    .command('fsck')
    .description('check the files of a data directory; needs no daemon')
    .argument('[conversation]', 'its id (default: every conversation)', conversationId)
    .option('--repair', 'repair what can be repaired; no daemon may run')
    .option('--dry-run', 'with --repair: print the repairs without making them')
    .option('--views', 'build each recorded request again and compare its hash')
    .action((conversation: string | undefined, options: FsckCommandOptions, command: Command) =>
      act(command, (context) => fsck(context, conversation, options)),
    );
}

async function fsck(
  context: Context,
  conversation: string | undefined,
  { repair = false, dryRun = false, views = false }: FsckCommandOptions,
): Promise<number> {
  if (dryRun && !repair) {
    throw new ParleyError('USAGE', '--dry-run requires --repair', {
      hint: 'give both, or neither: without --repair nothing is changed',
    });
  }
  const dataDirectory = dataDirectoryOf(context);
  const { fsck } = await context.dependencies.daemon();
  const reports = await fsck({
    dataDirectory,
    repair: repair && !dryRun,
    ...(views ? { views } : {}),
    ...(conversation === undefined ? {} : { conversation }),
  });
  for (const report of reports) if (context.json) context.value(report);
  if (!context.json) context.line(renderFsck(reports, context.palette, dryRun));
  return reports.some(({ findings }) => findings.some(({ repaired }) => !repaired)) ? 1 : 0;
}

/** The findings, for people. `planned`: with the repair of each. */
export function renderFsck(reports: readonly FsckReport[], palette: Palette, planned: boolean): string {
  const lines = reports.flatMap(({ conversation, findings }) =>
    findings.flatMap(({ kind, text, repair, repaired }) => {
      const mark = repaired ? palette.green('fixed ') : palette.red('found ');
      const [first = '', ...rest] = text.split('\n');
      const found = [`${mark}  ${palette.bold(conversation)} ${kind}: ${first}`, ...rest];
      if (repaired || !planned) return found;
      return [...found, indent(repair === null ? 'cannot be repaired' : `a repair ${repair}`, '        ')];
    }),
  );
  return [...lines, summary(reports)].join('\n');
}

function summary(reports: readonly FsckReport[]): string {
  const all = reports.flatMap(({ findings }) => [...findings]);
  const left = all.filter(({ repaired }) => !repaired);
  const of = `${reports.length} conversation${reports.length === 1 ? '' : 's'}`;
  if (left.length === 0) return all.length === 0 ? `${of}: sound` : `${of}: sound now, ${all.length} fixed`;
  const repairable = left.filter(({ repair }) => repair !== null).length;
  const hint = repairable === 0 ? 'none can be repaired' : `${repairable} can be repaired with --repair`;
  return `${of}: ${left.length} found; ${hint} (docs/guides/troubleshooting.md)`;
}
