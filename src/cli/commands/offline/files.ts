import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { ParleyError, SLUG_PATTERN } from '../../../client/index.ts';
import type { ExportFormat, FsckReport } from '../../../daemon/index.ts';
import { errnoOf, escapeHidden, messageOf } from '../../../kernel/index.ts';
import type { Act, Context } from '../../context.ts';
import { dataDirectoryOf } from '../../find-daemon.ts';
import { conversationId, matching, ofConversation } from '../../options/options.ts';
import { confirms } from '../../output/terminal.ts';
import { indent, type Palette, plural } from '../../render/text.ts';
import { cannotWrite } from '../conversations/file.ts';

/** Commands on files: checks and repairs logs, exports and imports them, prints the configuration of a nats-server. */

interface FsckCommandOptions {
  readonly repair?: boolean;
  readonly dryRun?: boolean;
  readonly views?: boolean;
}

export function addFsck(program: Command, act: Act): void {
  const added = program
    .command('fsck')
    .description('check the files of a data directory; needs no daemon')
    .argument('[conversation]', 'its id (default: every conversation)', conversationId)
    .option('--repair', 'repair what can be repaired; no daemon may run')
    .option('--dry-run', 'with --repair: print the repairs without making them')
    .option('--views', 'build each recorded request again and compare its hash');
  act(added, async (context, conversation: string | undefined, options: FsckCommandOptions) => {
    const { repair = false, dryRun = false, views = false } = options;
    if (dryRun && !repair) {
      throw new ParleyError('USAGE', '--dry-run requires --repair', {
        hint: 'give both, or neither: without --repair nothing is changed',
      });
    }
    const { fsck } = await context.dependencies.daemon();
    const reports = await fsck({
      dataDirectory: dataDirectoryOf(context),
      repair: repair && !dryRun,
      ...(views ? { views } : {}),
      ...(conversation === undefined ? {} : { conversation }),
    });
    if (context.json) for (const report of reports) context.value(report);
    else context.line(renderFsck(reports, context.palette, dryRun));
    return reports.some(({ findings }) => findings.some(({ repaired }) => !repaired)) ? 1 : 0;
  });
}

/** The findings, for people. `planned`: with the repair of each. */
export function renderFsck(reports: readonly FsckReport[], palette: Palette, planned: boolean): string {
  const lines = reports.flatMap(({ conversation, findings }) =>
    findings.flatMap(({ kind, text, repair, repaired }) => {
      const mark = repaired ? palette.green('fixed ') : palette.red('found ');
      const [first = '', ...rest] = text.split('\n');
      const found = [`${mark}  ${palette.bold(conversation ?? 'blobs')} ${kind}: ${first}`, ...rest];
      if (repaired || !planned) return found;
      return [...found, indent(repair === null ? 'cannot be repaired' : `a repair ${repair}`, '        ')];
    }),
  );
  return [...lines, summary(reports)].join('\n');
}

function summary(reports: readonly FsckReport[]): string {
  const all = reports.flatMap(({ findings }) => [...findings]);
  const left = all.filter(({ repaired }) => !repaired);
  const of = plural(reports.filter(({ conversation }) => conversation !== null).length, 'conversation');
  if (left.length === 0) return all.length === 0 ? `${of}: sound` : `${of}: sound now, ${all.length} fixed`;
  const repairable = left.filter(({ repair }) => repair !== null).length;
  const hint = repairable === 0 ? 'none can be repaired' : `${repairable} can be repaired with --repair`;
  return `${of}: ${left.length} found; ${hint} (docs/guides/troubleshooting.md)`;
}

export function addExport(program: Command, act: Act): void {
  const about =
    'print a conversation as OpenAI messages, as Markdown, all its entries as JSON Lines, or its rated answers as test cases; needs no daemon';
  const added = ofConversation(program, 'export', about)
    .addOption(
      new Option(
        '--format <format>',
        'openai: the messages; markdown: for people; jsonl: all entries; cases: the rated answers',
      )
        .choices(['openai', 'markdown', 'jsonl', 'cases'] satisfies ExportFormat[])
        .default('openai'),
    )
    .option(
      '--out <file>',
      'write it into a file, with the files of its messages (jsonl: into a folder beside it)',
    );
  act(
    added,
    async (context, conversation: string, { format, out }: { format: ExportFormat; out?: string }) => {
      const { exportConversation, exportToFile } = await context.dependencies.daemon();
      if (out !== undefined) {
        const path = resolve(context.io.workingDirectory, out);
        const written = await exportToFile(dataDirectoryOf(context), conversation, format, path).catch(
          (error: unknown) => {
            throw error instanceof ParleyError || errnoOf(error) === null
              ? error
              : cannotWrite(path, messageOf(error));
          },
        );
        context.result(written, () => `${path}: ${plural(written.files, 'file')} of its messages`);
        return;
      }
      const onNamed = (files: number) => {
        if (files > 0)
          context.note(`not included: ${plural(files, 'file')} of its messages; give --out FILE`);
      };
      const text = await exportConversation(dataDirectoryOf(context), conversation, format, onNamed);
      // On a terminal, control characters of a message would act; in JSON an escape is the same text.
      const isSafe = format === 'markdown' && context.io.stdout.isTTY !== true;
      if (text !== '') context.line(isSafe ? text : escapeHidden(text));
    },
  );
}

interface ImportCommandOptions {
  readonly conversation: string;
  readonly agent: string;
  readonly resume?: true;
  readonly yes?: true;
}

export function addImport(program: Command, act: Act): void {
  const added = program
    .command('import')
    .description(
      'create a conversation from a messages.json or an export, and start nothing; no daemon may run',
    )
    .argument('<file>', 'an array of messages, or JSON Lines')
    .requiredOption('--conversation <id>', 'its id', conversationId)
    .option('--agent <slug>', 'the author of messages that name no agent', agentSlug, 'assistant')
    .option('--resume', 'continue what is outstanding in an own export: runs calls, wakes agents')
    .option('--yes', 'with --resume: do not ask');
  act(added, async (context, file: string, { yes, resume, ...given }: ImportCommandOptions) => {
    const { importConversation } = await context.dependencies.daemon();
    const outcome = await importConversation({
      dataDirectory: dataDirectoryOf(context),
      file: resolve(context.io.workingDirectory, file),
      ...given,
      ...(resume && { resume: (work) => mayRun(context, work, yes === true) }),
    });
    if (outcome === null) {
      context.note('nothing is imported');
      return 1;
    }
    context.result(outcome, ({ conversation, entries, duplicate }) =>
      duplicate
        ? `${conversation} already has these ${entries} entries`
        : `${conversation}: ${entries} entries imported`,
    );
    for (const line of outcome.duplicate || resume ? [] : outcome.work)
      context.note(`ended, since a file starts nothing: ${line}`);
    return 0;
  });
}

async function mayRun(context: Context, work: readonly string[], yes: boolean): Promise<boolean> {
  if (work.length === 0 || yes) return true;
  const lines = work.map((line) => `  ${line}`);
  return confirms(context, 'Import it to run this?', ['At the next start of the daemon:', ...lines], {
    message: ['at the next start of the daemon:', ...lines].join('\n'),
    hint: 'nothing was changed; to run this, give --yes too, or leave out --resume: then nothing of the file runs',
  });
}

const agentSlug = matching(SLUG_PATTERN, 'Give the slug of an agent: a-z, 0-9 and hyphens.');

export function addNatsConfig(program: Command, act: Act): void {
  const added = program
    .command('nats-config')
    .description('print the configuration of a nats-server: accounts, users and their permissions')
    .argument('<file>', 'tenants and their users, as YAML (docs/guides/security.md)')
    .option('--nsc', 'print nsc commands instead, for a server with JWT users');
  act(added, async (context, file: string, { nsc = false }: { nsc?: boolean }) => {
    const { natsConfig } = await context.dependencies.daemon();
    const config = await natsConfig(resolve(context.io.workingDirectory, file), nsc);
    context.result({ config }, () => config);
  });
}
