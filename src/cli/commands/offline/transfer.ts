import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { escapeHidden } from '../../../kernel/index.ts';
import type { Act } from '../../context.ts';
import type { ExportFormat } from '../../dependencies.ts';
import { dataDirectoryOf } from '../../find-daemon.ts';
import { conversationId } from '../../options/options.ts';

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
        const { exportConversation } = await context.rooms.daemon();
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
    .description('create a conversation from a messages.json or an export; no daemon may run')
    .argument('<file>', 'an array of messages, or JSON Lines')
    .requiredOption('--conversation <id>', 'its id', conversationId)
    .option('--agent <slug>', 'the author of messages that name no agent', agentSlug, 'assistant')
    .action((file: string, options: { conversation: string; agent: string }, command: Command) =>
      act(command, async (context) => {
        const { importConversation } = await context.rooms.daemon();
        const outcome = await importConversation({
          dataDirectory: dataDirectoryOf(context),
          file: resolve(context.io.workingDirectory, file),
          conversation: options.conversation,
          agent: options.agent,
        });
        const { conversation, entries, duplicate } = outcome;
        if (context.json) context.value(outcome);
        else if (duplicate) context.line(`${conversation} already has these ${entries} entries`);
        else context.line(`${conversation}: ${entries} entries imported`);
        return 0;
      }),
    );
}

function agentSlug(value: string): string {
  if (/^[a-z0-9][a-z0-9-]{0,63}$/.test(value)) return value;
  throw new InvalidArgumentError('Give the slug of an agent: a-z, 0-9 and hyphens.');
}
