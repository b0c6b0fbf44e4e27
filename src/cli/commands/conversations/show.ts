import type { Command } from 'commander';
import type { Entry, ParleyClient } from '../../../client/index.ts';
import type { Act, Context } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { logEnd, logEntries, logLength } from '../../follow/log-pages.ts';
import { conversationId, entryIndex } from '../../options/options.ts';
import { renderCosts, renderUsage } from '../../render/cost.ts';
import { MARGIN, renderEntry } from '../../render/entry.ts';
import { voiceOf } from '../../render/palette.ts';
import { Transcript } from '../../render/transcript.ts';

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

/** The number of earlier entries shown. */
const LOOK_BACK = 10;

export function addTail(program: Command, act: Act): void {
  program
    .command('tail')
    .description('follow a conversation: its log and the streamed text')
    .argument('<conversation>', 'its id; waits for one that does not exist yet', conversationId)
    .option('--from <index>', `begin at this entry (default: the last ${LOOK_BACK})`, entryIndex)
    .action((conversation: string, options: { from?: number }, command: Command) =>
      act(command, (context) =>
        withDaemon(context, (client) => tail(context, client, conversation, options.from)),
      ),
    );
}

async function tail(
  context: Context,
  client: ParleyClient,
  conversation: string,
  wanted: number | undefined,
): Promise<number> {
  const abort = new AbortController();
  const release = context.io.onSignal(() => abort.abort());
  const { palette } = context;
  const label = (agent: string) => `${voiceOf(agent, palette)(agent)}: `;
  const transcript = new Transcript({ palette, label, details: true });
  try {
    const length = await logLength(client, conversation);
    const from = wanted ?? Math.max(0, length - LOOK_BACK);
    if (from > length || length === 0)
      context.note(`waiting for entry ${from}: ${logEnd(conversation, length)}`);
    for await (const event of client.follow(conversation, { from, signal: abort.signal })) {
      if (event.kind === 'entry') {
        if (context.json) context.value(event.entry);
        else context.write(transcript.entry(event.entry));
      } else if (context.json) context.value({ live: { agent: event.agent, ...event.chunk } });
      else context.write(transcript.live(event.agent, event.chunk));
    }
    return 0;
  } finally {
    context.write(transcript.close());
    release();
  }
}
