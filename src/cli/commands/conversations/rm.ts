import type { Command } from 'commander';
import { type ConversationSummary, type DeletionAnswer, ParleyError } from '../../../client/index.ts';
import { isOverdue } from '../../../kernel/index.ts';
import type { Act, Context } from '../../context.ts';
import { type Connected, withDaemon } from '../../find-daemon.ts';
import { conversationId, duration } from '../../options/options.ts';
import { confirms } from '../../output/terminal.ts';
import { renderTable } from '../../render/text.ts';
import { allConversations, minuteOf } from './ls.ts';

interface RmOptions {
  /** Milliseconds. */
  readonly olderThan?: number;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

export function addRm(program: Command, act: Act): void {
  const added = program
    .command('rm')
    .description('delete a conversation and its files; can be repeated')
    .argument('[conversation]', 'its id', conversationId)
    .option(
      '--older-than <age>',
      'every conversation without a new entry for this long: 90d, 12h, …',
      duration,
    )
    .option('--dry-run', 'with --older-than: list them, delete nothing')
    .option('--yes', 'with --older-than: do not ask');
  act(added, (context, conversation: string | undefined, { olderThan, dryRun, yes }: RmOptions) => {
    if ((conversation === undefined) === (olderThan === undefined) || (conversation && (dryRun || yes)))
      throw new ParleyError('USAGE', 'name one conversation, or an age', {
        hint: '`parley rm demo`   or   `parley rm --older-than 90d --dry-run`',
      });
    return withDaemon(context, (connected) =>
      conversation === undefined
        ? removeOld(connected, { olderThan, dryRun, yes })
        : remove(connected, { conversation }),
    );
  });
}

/** The daemon checks each one again and keeps those in use. */
async function removeOld(context: Connected, { olderThan = 0, dryRun, yes }: RmOptions): Promise<void> {
  const now = Date.now();
  const lastEntryBefore = new Date(now - olderThan).toISOString();
  const rows = await olderRows(context, lastEntryBefore);
  if (dryRun && context.json) for (const row of rows) context.value(row);
  if (rows.length === 0) context.note('no conversation is older than that, except those in use');
  else if (!context.json && (dryRun || !yes)) context.line(table(context, rows));
  if (rows.length === 0) return;
  if (rows.every(({ updatedAt }) => isOverdue(updatedAt, olderThan, now))) {
    if (yes && !dryRun) throw doubt(now);
    context.note(`parley: ${doubt(now).message}`);
  }
  if (dryRun) return;
  const question = `Delete ${rows.length === 1 ? 'it' : `these ${rows.length}`}?`;
  if (!yes && !(await confirms(context, question, [], NO_TERMINAL))) {
    context.note('nothing is deleted');
    return;
  }
  for (const { id } of rows) await remove(context, { conversation: id, lastEntryBefore });
}

const NO_TERMINAL = {
  message: 'there is no terminal for the question',
  hint: 'check the list with --dry-run, then give --yes',
};

/** The same check as in the daemon's retention. */
function doubt(now: number): ParleyError {
  const why = 'nothing became due in the last week, and something did before';
  return new ParleyError(
    'CLOCK_DOUBTFUL',
    `the clock may be wrong (${new Date(now).toISOString()}): ${why}`,
    {
      hint: 'nothing is deleted. Check the clock; then omit --yes on a terminal and answer, or delete each by name: `parley rm ID`',
    },
  );
}

async function remove(
  context: Connected,
  request: { readonly conversation: string; readonly lastEntryBefore?: string },
): Promise<void> {
  const answer = await context.request('delete', request);
  const { conversation } = request;
  const value = request.lastEntryBefore ? { conversation, ...answer } : answer;
  context.result(value, () => erasedText(conversation, answer).join('\n'));
}

async function olderRows({ client }: Connected, lastEntryBefore: string): Promise<ConversationSummary[]> {
  const { rows } = await allConversations(client);
  const limit = Date.parse(lastEntryBefore);
  return rows.filter(({ updatedAt, running, waiting, stopped = [] }) => {
    const isInUse = running.length + waiting.length + stopped.length > 0;
    return Date.parse(updatedAt) < limit && !isInUse;
  });
}

function table({ palette }: Context, rows: readonly ConversationSummary[]): string {
  const cells = rows.map(({ id, title, length, updatedAt }) => [
    id,
    title ?? '-',
    String(length),
    minuteOf(updatedAt),
  ]);
  return renderTable(['ID', 'TITLE', 'LENGTH', 'UPDATED'], cells, palette.dim);
}

/** What a deletion erased, what is left, and what no daemon can erase. */
function erasedText(conversation: string, answer: DeletionAnswer): string[] {
  if (answer.deleted === false) return [`${conversation} stays: ${answer.kept ?? 'it is in use'}`];
  const { existed, erased, left = [], notReached = [] } = answer;
  const counts = erased ? countsOf(erased) : '';
  const removed = counts === '' ? '' : `: ${counts}`;
  const first =
    existed === false
      ? `no conversation ${JSON.stringify(conversation)}${counts && `; erased what was left of it: ${counts}`}`
      : `${conversation} is deleted${removed}`;
  return [
    first,
    ...left.map((what) => `not erased yet, the daemon tries again: ${what}`),
    ...(existed === false || notReached.length === 0 ? [] : [`not reached: ${notReached.join('; ')}`]),
  ];
}

type Erased = Extract<DeletionAnswer, { deleted: true }>['erased'];

function countsOf({ entries, posts, deadLetters, records, outputs, files }: Erased) {
  const counts = [
    [entries, 'entry', 'entries'],
    [posts, 'post in the stream', 'posts in the stream'],
    [deadLetters, 'dead letter', 'dead letters'],
    [records, 'record of tool calls', 'records of tool calls'],
    [outputs, 'large output', 'large outputs'],
    [files, 'file', 'files'],
  ] as const;
  const shown = counts.filter(([count]) => count > 0);
  return shown.map(([count, one, many]) => `${count} ${count === 1 ? one : many}`).join(', ');
}
