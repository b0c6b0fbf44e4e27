import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { ParleyError } from '../../../client/index.ts';
import { resolveDaemonAddress } from '../../../config/index.ts';
import type { MigrateOptions, MigrationReport } from '../../../daemon/index.ts';
import type { Act, Context } from '../../context.ts';
import { natsOptions } from '../../find-daemon.ts';
import { loadConfig } from '../../load-config.ts';
import { configFlags } from '../../options/options.ts';
import { noEffect } from '../../options/taken-options.ts';
import { createLog } from '../../output/logging.ts';
import { wantsColour } from '../../render/palette.ts';

/** A value of `--from` or `--to`. */
export type StoreName =
  | { readonly kind: 'file'; readonly directory: string | null }
  | { readonly kind: 'jetstream' };

interface MigrateCommandOptions {
  readonly from: StoreName;
  readonly to: StoreName;
  readonly config?: string;
}

export function addMigrate(program: Command, act: Act): void {
  program
    .command('migrate')
    .description('move all conversations from one store to the other; no daemon may run on either')
    .requiredOption('--from <store>', 'file, file:DIR, or jetstream (on the server of --nats)', storeName)
    .requiredOption('--to <store>', 'the other one', storeName)
    .option(
      '--config <dir>',
      'its jetstream.replicas applies to new streams (PARLEY_CONFIG; default: config)',
    )
    .action((options: MigrateCommandOptions, command: Command) =>
      act(command, async (context) => {
        const { migrate } = await context.dependencies.daemon();
        const report = await migrate(await migrateOptions(context, options));
        if (context.json) context.value(report);
        else context.line(describe(report));
        return 0;
      }),
    );
}

export function storeName(value: string): StoreName {
  const [, kind, directory] = /^(file|jetstream)(?::(.+))?$/.exec(value) ?? [];
  if (kind === 'file') return { kind, directory: directory ?? null };
  if (kind === 'jetstream' && directory === undefined) return { kind };
  throw new InvalidArgumentError('Give file, file:DIR, or jetstream.');
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
  const flags = configFlags(options);
  const address = resolveDaemonAddress({ env: io.env, flags, workingDirectory: io.workingDirectory });
  if (address.nats === null) {
    throw new ParleyError('USAGE', 'the NATS server of the jetstream store is not given', {
      hint: 'give --nats URL; docs/guides/several-daemons.md explains how to run a managed server without its daemon',
    });
  }
  const prefix = options.prefix ?? address.subjectPrefix;
  return {
    to: to.kind,
    directory: file.directory === null ? address.data : resolve(io.workingDirectory, file.directory),
    nats: natsOptions(address.nats),
    ...(prefix === null ? {} : { prefix }),
    replicas: to.kind === 'file' ? null : (await loadConfig(context, config)).replicas,
    log: await createLog({
      stream: io.stderr,
      readable: io.stderr.isTTY === true,
      colour: wantsColour(io.stderr, io.env),
      level: options.verbose ? 'debug' : 'info',
    }),
  };
}

function describe({ from, to, ...counts }: MigrationReport): string {
  const { conversations, copied, entries, records, outputs, deletions } = counts;
  const held = `${entries} entries, ${records} records of tools, ${outputs} large outputs`;
  const there = copied === conversations ? '' : `, ${conversations - copied} of them there already`;
  return [
    `${from} -> ${to}: ${conversations} conversations${there}, ${deletions} marks of deletions`,
    `${held}: read back, and the same`,
    `${from} was not changed: run no daemon on it any more`,
  ].join('\n');
}
