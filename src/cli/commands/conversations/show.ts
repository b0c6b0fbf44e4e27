import type { Command } from 'commander';
import { type Entry, logEntries, logLength } from '../../../client/index.ts';
import type { Act, Context } from '../../context.ts';
import { ask, type Connected } from '../../find-daemon.ts';
import { conversationId, entryIndex, ofConversation } from '../../options/options.ts';
import { untilSignal } from '../../output/terminal.ts';
import { renderCosts, renderUsage } from '../../render/cost.ts';
import { MARGIN, renderEntry } from '../../render/entry.ts';
import { voiceOf } from '../../render/text.ts';
import { Transcript } from '../../render/transcript.ts';

/** Prints the log of a conversation, or follows it; or prints it as a script of the scripted model. */

export function addShow(program: Command, act: Act): void {
  const added = ofConversation(program, 'show', 'print the log of a conversation')
    .option('--from <index>', 'begin at this entry', entryIndex, 0)
    .option('--cost', 'with the usage of each model call, and the sum for each agent');
  ask(act, added, async (context, conversation: string, options: { from: number; cost?: boolean }) => {
    const { from, cost = false } = options;
    // A conversation that does not exist is an error, not an empty log.
    const { metadata, length } = await context.request('conversation', { conversation });
    if (from > length) context.note(logEnd(conversation, length));
    for await (const entry of logEntries(context.client, conversation, from))
      context.result(entry, (one) => shown(one, context, cost));
    if (cost && !context.json) context.line(`\n${renderCosts(metadata.usage, context.palette.dim)}`);
  });
}

function shown(entry: Entry, { palette }: Context, withCost: boolean): string {
  const text = renderEntry(entry, palette);
  const usage =
    entry.type === 'message' || entry.type === 'summary' || entry.type === 'title-set'
      ? entry.usage
      : undefined;
  return withCost && usage ? `${text}\n${MARGIN}${palette.dim(renderUsage(usage))}` : text;
}

export function addRecord(program: Command, act: Act): void {
  const about = 'print a script that repeats the answers of a conversation offline (scripted model)';
  ask(act, ofConversation(program, 'record', about), async (context, conversation: string) => {
    await context.request('conversation', { conversation }); // one that does not exist is an error
    const entries: Entry[] = [];
    for await (const entry of logEntries(context.client, conversation, 0)) entries.push(entry);
    const { recordedScript } = await context.dependencies.daemon();
    context.line(recordedScript(conversation, entries).trimEnd());
  });
}

/** The number of earlier entries shown. */
const LOOK_BACK = 10;

export function addTail(program: Command, act: Act): void {
  const added = program
    .command('tail')
    .description('follow a conversation: its log and the streamed text')
    .argument('<conversation>', 'its id; waits for one that does not exist yet', conversationId)
    .option('--from <index>', `begin at this entry (default: the last ${LOOK_BACK})`, entryIndex);
  ask(act, added, (context, conversation: string, options: { from?: number }) =>
    untilSignal(context.io, (signal) => tail(context, conversation, { wanted: options.from, signal })),
  );
}

async function tail(
  context: Connected,
  conversation: string,
  { wanted, signal }: { readonly wanted: number | undefined; readonly signal: AbortSignal },
): Promise<void> {
  const { palette } = context;
  const label = (agent: string) => `${voiceOf(agent, palette)(agent)}: `;
  const transcript = new Transcript({ palette, label, details: true });
  try {
    const length = await logLength(context.client, conversation);
    const from = wanted ?? Math.max(0, length - LOOK_BACK);
    if (from > length || length === 0)
      context.note(`waiting for entry ${from}: ${logEnd(conversation, length)}`);
    for await (const event of context.client.follow(conversation, { from, signal })) {
      if (event.kind === 'entry') {
        if (context.json) context.value(event.entry);
        else context.write(transcript.entry(event.entry));
      } else if (context.json) context.value({ live: { agent: event.agent, ...event.chunk } });
      else context.write(transcript.live(event.agent, event.chunk));
    }
  } finally {
    context.write(transcript.close());
  }
}

/** A note for a request beyond the end of the log. */
function logEnd(conversation: string, length: number): string {
  return `the log of ${conversation} ${length === 0 ? 'has no entry yet' : `ends with entry ${length - 1}`}`;
}
