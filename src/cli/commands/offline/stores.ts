import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { ParleyError } from '../../../client/index.ts';
import { revealed } from '../../../config/index.ts';
import type { BackupOptions, BackupReport, MigrateOptions, MigrationReport } from '../../../daemon/index.ts';
import { type Act, type Context, loadConfig } from '../../context.ts';
import { addressOf, daemonAddress, dataDirectoryOf, isOnServer } from '../../find-daemon.ts';
import { noEffect } from '../../options/options.ts';
import { createLog } from '../../output/log.ts';
import { plural } from '../../render/text.ts';

/** Copies all conversations: into a new data directory (`backup`), or into the other store (`migrate`). */

/** A value of `--from` or `--to`. */
type StoreName =
  | { readonly kind: 'file'; readonly directory: string | null }
  | { readonly kind: 'jetstream' };

function storeName(value: string): StoreName {
  const [, kind, directory] = /^(file|jetstream)(?::(.+))?$/.exec(value) ?? [];
  if (kind === 'file') return { kind, directory: directory ?? null };
  if (kind === 'jetstream' && directory === undefined) return { kind };
  throw new InvalidArgumentError('Give file, file:DIR, or jetstream.');
}

export function addBackup(program: Command, act: Act): void {
  const added = program
    .command('backup')
    .description('copy all conversations into a new data directory; a daemon may run')
    .argument('<dir>', 'the folder to make; `parley up --data` starts on it')
    .option(
      '--from <store>',
      'file, file:DIR, or jetstream (default: the store of the daemon that runs; with --nats, jetstream; else file)',
      storeName,
    );
  act(added, async (context, dir: string, { from }: { from?: StoreName }) => {
    const { backup } = await context.dependencies.daemon();
    const report = await backup(await backupOptions(context, dir, from));
    context.result(report, describeBackup);
    return report.missing.length > 0 ? 1 : 0;
  });
}

async function backupOptions(
  context: Context,
  dir: string,
  from: StoreName | undefined,
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
    log: await createLog(context),
  };
}

function describeBackup({ from, to, missing, ...counts }: BackupReport): string {
  const { conversations, entries, outputs, files, deletions, bytes } = counts;
  return [
    `${from} -> ${to}: ${plural(conversations, 'conversation')}, ${entries} entries, ${plural(outputs, 'large output')}, ${plural(files, 'file')}, ${plural(deletions, 'mark')} of deletions, ${bytes} bytes`,
    ...missing.map(({ id, reason }) => `missing ${id}: ${reason}`),
    missing.length === 0
      ? 'read back, and the same'
      : `${missing.length} not copied: run \`parley fsck\` on the original`,
  ].join('\n');
}

interface MigrateCommandOptions {
  readonly from: StoreName;
  readonly to: StoreName;
  readonly config?: string;
}

export function addMigrate(program: Command, act: Act): void {
  const added = program
    .command('migrate')
    .description('move all conversations from one store to the other; no daemon may run on either')
    .requiredOption('--from <store>', 'file, file:DIR, or jetstream (on the server of --nats)', storeName)
    .requiredOption('--to <store>', 'the other one', storeName)
    .option(
      '--config <dir>',
      'its jetstream.replicas applies to new streams (PARLEY_CONFIG; default: config)',
    );
  act(added, async (context, options: MigrateCommandOptions) => {
    const { migrate } = await context.dependencies.daemon();
    context.result(await migrate(await migrateOptions(context, options)), describeMigration);
  });
}

async function migrateOptions(
  context: Context,
  { from, to, config }: MigrateCommandOptions,
): Promise<MigrateOptions> {
  const { io, options } = context;
  const file = from.kind === 'file' ? from : to;
  if (from.kind === to.kind || file.kind !== 'file') {
    throw new ParleyError('USAGE', `--from and --to are both ${from.kind}`, {
      hint: 'one of them is file or file:DIR, the other jetstream',
    });
  }
  if (file.directory !== null && options.data !== undefined)
    throw noEffect('data', `leave it out: file:${file.directory} names the data directory`);
  if (to.kind === 'file' && config !== undefined)
    throw noEffect('config', 'leave it out: files have no replicas');
  const address = addressOf(context);
  if (address.nats === null) {
    throw new ParleyError('USAGE', 'the NATS server of the jetstream store is not given', {
      hint: 'give --nats URL; docs/guides/several-daemons.md explains how to run a managed server without its daemon',
    });
  }
  const prefix = options.prefix ?? address.subjectPrefix;
  return {
    to: to.kind,
    directory: file.directory === null ? address.data : resolve(io.workingDirectory, file.directory),
    nats: revealed(address.nats),
    ...(prefix === null ? {} : { prefix }),
    replicas: to.kind === 'file' ? null : (await loadConfig(context, config)).replicas,
    log: await createLog(context),
  };
}

function describeMigration({ from, to, ...counts }: MigrationReport): string {
  const { conversations, entries, records, outputs, files, deletions } = counts;
  const held = `${entries} entries, ${records} records of tools, ${outputs} large outputs, ${files} files`;
  return [
    `${from} -> ${to}: ${plural(conversations, 'conversation')}, ${plural(deletions, 'mark')} of deletions`,
    `${held}: read back, and the same`,
    `${from} was not changed: run no daemon on it any more`,
  ].join('\n');
}
