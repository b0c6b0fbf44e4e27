import type { Command } from 'commander';
import type { Act } from '../act.ts';
import { withDaemon } from '../find-daemon.ts';
import { logEntries } from '../log-pages.ts';
import { conversationId, entryIndex } from '../options.ts';
import { renderEntry } from '../render/entry.ts';

export function addShow(program: Command, act: Act): void {
  program
    .command('show')
    .description('print the log of a conversation')
    .argument('<conversation>', 'its id', conversationId)
    .option('--from <index>', 'begin at this entry', entryIndex, 0)
    .action((conversation: string, options: { from: number }, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          // Asked for first: one that does not exist is an error, not an empty log.
          await client.request('conversation', { conversation });
          for await (const entry of logEntries(client, conversation, options.from)) {
            if (context.json) context.value(entry);
            else context.line(renderEntry(entry, context.palette));
          }
          return 0;
        }),
      ),
    );
}
