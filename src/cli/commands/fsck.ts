import type { Command } from 'commander';
import { ParleyError } from '../../client/index.ts';
import type { Act } from '../act.ts';
import type { Context } from '../context.ts';
import { dataDirectoryOf } from '../data-directory.ts';
import { conversationId } from '../options.ts';
import { renderFsck } from '../render/fsck.ts';

interface FsckCommandOptions {
  readonly repair?: boolean;
  readonly dryRun?: boolean;
}

export function addFsck(program: Command, act: Act): void {
  program
    .command('fsck')
    .description('verify the laws on the files of a data directory; needs no daemon')
    .argument('[conversation]', 'its id (default: every conversation)', conversationId)
    .option('--repair', 'mend what can be mended; no daemon may run')
    .option('--dry-run', 'with --repair: say what would be done, and do nothing')
    .action((conversation: string | undefined, options: FsckCommandOptions, command: Command) =>
      act(command, (context) => fsck(context, conversation, options)),
    );
}

async function fsck(
  context: Context,
  conversation: string | undefined,
  { repair = false, dryRun = false }: FsckCommandOptions,
): Promise<number> {
  if (dryRun && !repair) {
    throw new ParleyError('USAGE', '--dry-run says what --repair would do', {
      hint: 'give both, or neither: without --repair nothing is changed anyway',
    });
  }
  const dataDirectory = dataDirectoryOf(context);
  const room = await context.rooms.daemon();
  const reports = await room.fsck({
    dataDirectory,
    repair: repair && !dryRun,
    ...(conversation === undefined ? {} : { conversation }),
  });
  for (const report of reports) if (context.json) context.value(report);
  if (!context.json) context.line(renderFsck(reports, context.palette, dryRun));
  return reports.some(({ findings }) => findings.some(({ repaired }) => !repaired)) ? 1 : 0;
}
