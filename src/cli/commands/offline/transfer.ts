import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { ParleyError } from '../../../client/index.ts';
import type { ExportFormat } from '../../../daemon/index.ts';
import { escapeHidden } from '../../../kernel/index.ts';
import type { Act, Context } from '../../context.ts';
import { dataDirectoryOf } from '../../find-daemon.ts';
import { conversationId } from '../../options/options.ts';
import { ask } from '../../output/question.ts';

export function addExport(program: Command, act: Act): void {
  program
    .command('export')
    .description(
      'print a conversation as OpenAI messages, as Markdown, or all its entries as JSON Lines; needs no daemon',
    )
    .argument('<conversation>', 'its id', conversationId)
    .addOption(
      new Option('--format <format>', 'openai: the messages; markdown: for people; jsonl: all entries')
        .choices(['openai', 'markdown', 'jsonl'] satisfies ExportFormat[])
        .default('openai'),
    )
    .action((conversation: string, { format }: { format: ExportFormat }, command: Command) =>
      act(command, async (context) => {
        const { exportConversation } = await context.dependencies.daemon();
        const text = await exportConversation(dataDirectoryOf(context), conversation, format);
        // On a terminal, control characters of a message would act; in JSON an escape is the same text.
        const isSafe = format === 'markdown' && context.io.stdout.isTTY !== true;
        context.line(isSafe ? text : escapeHidden(text));
        return 0;
      }),
    );
}

export function addImport(program: Command, act: Act): void {
  program
    .command('import')
    .description(
      'create a conversation from a messages.json or an export, and start nothing; no daemon may run',
    )
    .argument('<file>', 'an array of messages, or JSON Lines')
    .requiredOption('--conversation <id>', 'its id', conversationId)
    .option('--agent <slug>', 'the author of messages that name no agent', agentSlug, 'assistant')
    .option('--resume', 'continue what is outstanding in an own export: runs calls, wakes agents')
    .option('--yes', 'with --resume: do not ask')
    .action((file: string, options: ImportCommandOptions, command: Command) =>
      act(command, async (context) => {
        const { importConversation } = await context.dependencies.daemon();
        const outcome = await importConversation({
          dataDirectory: dataDirectoryOf(context),
          file: resolve(context.io.workingDirectory, file),
          conversation: options.conversation,
          agent: options.agent,
          ...(options.resume && { resume: (work) => confirms(context, work, options.yes === true) }),
        });
        if (outcome === null) {
          context.note('nothing is imported');
          return 1;
        }
        const { conversation, entries, duplicate, work } = outcome;
        if (context.json) context.value(outcome);
        else if (duplicate) context.line(`${conversation} already has these ${entries} entries`);
        else context.line(`${conversation}: ${entries} entries imported`);
        if (duplicate || options.resume || work.length === 0) return 0;
        for (const line of work) context.note(`ended, since a file starts nothing: ${line}`);
        return 0;
      }),
    );
}

interface ImportCommandOptions {
  readonly conversation: string;
  readonly agent: string;
  readonly resume?: true;
  readonly yes?: true;
}

async function confirms(context: Context, work: readonly string[], yes: boolean): Promise<boolean> {
  const { io, json } = context;
  if (work.length === 0 || yes) return true;
  const lines = work.map((line) => `  ${line}`);
  if (json || !io.stdin.isTTY || !io.stdout.isTTY)
    throw new ParleyError('USAGE', ['at the next start of the daemon:', ...lines].join('\n'), {
      hint: 'nothing was changed; to run this, give --yes too, or leave out --resume: then nothing of the file runs',
    });
  for (const line of ['At the next start of the daemon:', ...lines]) context.line(line);
  return /^y(es)?$/i.test((await ask(io, io.stdout, 'Import it to run this? [y/N] ')) ?? '');
}

function agentSlug(value: string): string {
  if (/^[a-z0-9][a-z0-9-]{0,63}$/.test(value)) return value;
  throw new InvalidArgumentError('Give the slug of an agent: a-z, 0-9 and hyphens.');
}
