import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { BackupOptions, BackupReport } from '../../../daemon/index.ts';
import type { Act, Context } from '../../context.ts';
import { daemonAddress, dataDirectoryOf, isOnServer } from '../../find-daemon.ts';
import { noEffect } from '../../options/taken-options.ts';
import { createLog } from '../../output/logging.ts';
import { wantsColour } from '../../render/palette.ts';
import { type StoreName, storeName } from './migrate.ts';

interface BackupCommandOptions {
  readonly from?: StoreName;
}

export function addBackup(program: Command, act: Act): void {
  program
    .command('backup')
    .description('copy all conversations into a new data directory; a daemon may run')
    .argument('<dir>', 'the folder to make; `parley up --data` starts on it')
    .option(
      '--from <store>',
      'file, file:DIR, or jetstream (default: the store of the daemon that runs; with --nats, jetstream; else file)',
      storeName,
    )
    .action((dir: string, options: BackupCommandOptions, command: Command) =>
      act(command, async (context) => {
        const { backup } = await context.dependencies.daemon();
        const report = await backup(await backupOptions(context, dir, options));
        if (context.json) context.value(report);
        else context.line(describe(report));
        return report.missing.length > 0 ? 1 : 0;
      }),
    );
}

async function backupOptions(
  context: Context,
  dir: string,
  { from }: BackupCommandOptions,
): Promise<BackupOptions> {
  const { io, options } = context;
  const directory = from?.kind === 'file' ? from.directory : null;
  const isStreams = from ? from.kind === 'jetstream' : await isOnServer(context);
  const ignored = Object.keys(options).find((name) => /^(nats|prefix$)/.test(name));
  if (!isStreams && ignored !== undefined)
    throw noEffect(ignored, 'leave it out, or name the store on that server with --from jetstream');
  const nats = isStreams ? await daemonAddress(context) : null;
  return {
    to: resolve(io.workingDirectory, dir),
    data: directory === null ? dataDirectoryOf(context) : resolve(io.workingDirectory, directory),
    streams: nats && { nats, ...(nats.prefix !== undefined && { prefix: nats.prefix }) },
    log: await createLog({
      stream: io.stderr,
      readable: io.stderr.isTTY === true,
      colour: wantsColour(io.stderr, io.env),
      level: options.verbose ? 'debug' : 'info',
    }),
  };
}

function describe({ from, to, missing, ...counts }: BackupReport): string {
  const { conversations, entries, outputs, deletions, bytes } = counts;
  return [
    `${from} -> ${to}: ${conversations} conversations, ${entries} entries, ${outputs} large outputs, ${deletions} marks of deletions, ${bytes} bytes`,
    ...missing.map(({ id, reason }) => `missing ${id}: ${reason}`),
    missing.length === 0
      ? 'read back, and the same'
      : `${missing.length} not copied: run \`parley fsck\` on the original`,
  ].join('\n');
}
