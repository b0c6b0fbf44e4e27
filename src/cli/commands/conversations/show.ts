import type { Command } from 'commander';
import type { Entry } from '../../../client/index.ts';
import type { Act, Context } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { logEnd, logEntries } from '../../follow/log-pages.ts';
import { conversationId, entryIndex } from '../../options/options.ts';
import { renderCosts, renderUsage } from '../../render/cost.ts';
import { MARGIN, renderEntry } from '../../render/entry.ts';

interface ShowOptions {
  readonly from: number;
  readonly cost?: boolean;
}

export function addShow(program: Command, act: Act): void {
  program
    .command('show')
    .description('print the log of a conversation')
    .argument('<conversation>', 'its id', conversationId)
    .option('--from <index>', 'begin at this entry', entryIndex, 0)
    .option('--cost', 'with the usage of each model call, and the sum for each agent')
    .action((conversation: string, options: ShowOptions, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          // A conversation that does not exist is an error, not an empty log.
          const { metadata, length } = await client.request('conversation', { conversation });
          if (options.from > length) context.note(logEnd(conversation, length));
          for await (const entry of logEntries(client, conversation, options.from)) {
            if (context.json) context.value(entry);
            else context.line(shown(entry, context, options.cost === true));
          }
          if (options.cost && !context.json) {
            context.line(`\n${renderCosts(metadata.usage, context.palette.dim)}`);
          }
          return 0;
        }),
      ),
    );
}

function shown(entry: Entry, { palette }: Context, withCost: boolean): string {
  const text = renderEntry(entry, palette);
  const usage = entry.type === 'message' || entry.type === 'summary' ? entry.usage : undefined;
  return withCost && usage ? `${text}\n${MARGIN}${palette.dim(renderUsage(usage))}` : text;
}
