import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { type Entry, ParleyError } from '../../../client/index.ts';
import type { Act } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { logEntries } from '../../follow/log-pages.ts';
import { conversationId } from '../../options/options.ts';

export function addRecord(program: Command, act: Act): void {
  program
    .command('record')
    .description('print a script that repeats the answers of a conversation offline (scripted model)')
    .argument('<conversation>', 'its id', conversationId)
    .option('--out <file>', 'write the script to this file')
    .action((conversation: string, { out }: { out?: string }, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          await client.request('conversation', { conversation }); // one that does not exist is an error
          const entries: Entry[] = [];
          for await (const entry of logEntries(client, conversation, 0)) entries.push(entry);
          const { recordedScript } = await context.dependencies.daemon();
          const script = recordedScript(conversation, entries);
          if (out === undefined) {
            context.line(script.trimEnd());
            return 0;
          }
          const file = resolve(context.io.workingDirectory, out);
          await writeFile(file, script).catch((cause: unknown) => {
            throw unwritable(file, cause);
          });
          if (context.json) context.value({ conversation, file });
          else context.line(`${file}: the answers of ${conversation}`);
          return 0;
        }),
      ),
    );
}

function unwritable(file: string, cause: unknown): ParleyError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new ParleyError('FILE_UNWRITABLE', `cannot write ${file}: ${why}`, {
    hint: 'give another path with --out, or leave it out to print the script',
    cause,
  });
}
