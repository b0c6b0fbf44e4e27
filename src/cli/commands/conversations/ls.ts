import type { Command } from 'commander';
import {
  type AnswerOf,
  type ConversationSummary,
  type ParleyClient,
  ParleyError,
  type RequestOf,
  turnsCsv,
} from '../../../client/index.ts';
import type { Act } from '../../context.ts';
import { ask } from '../../find-daemon.ts';
import { conversationId, pointInTime, wholeNumber } from '../../options/options.ts';
import { money } from '../../render/cost.ts';
import { oneLine } from '../../render/entry.ts';
import { ageText, waitText } from '../../render/state.ts';
import { dateTime, type Palette, renderTable, voiceOf } from '../../render/text.ts';

/** Lists conversations, and finds messages in them. */

const HEADINGS = [
  ...['ID', 'TITLE', 'PHASE', 'MODE', 'TALKING', 'STATUS', 'WAITS FOR'],
  ...['LENGTH', 'TOKENS', 'USD', 'UPDATED'],
];
/** Longer lists are cut: `parley status` has all. */
const SHOWN_WAITS = 2;

export function addLs(program: Command, act: Act): void {
  const added = program.command('ls').description('list the conversations');
  ask(act, added, async (context) => {
    const { rows, unanswered } = await allConversations(context.client);
    if (context.json) for (const row of rows) context.value(row);
    else if (rows.length === 0)
      context.note(`no conversations yet: start one with \`${context.command('chat')}\``);
    else {
      const table = rows.map((row) => cells(row, Date.now()));
      context.line(renderTable(HEADINGS, table, context.palette.dim));
    }
    if (unanswered.size > 0) {
      const daemons = [...unanswered].join(', ');
      context.note(`the list may be incomplete or stale: no answer from daemon ${daemons}`);
    }
  });
}

/** `unanswered`: daemons whose conversations may be missing. */
export async function allConversations(
  client: ParleyClient,
): Promise<{ rows: ConversationSummary[]; unanswered: Set<string> }> {
  const rows: ConversationSummary[] = [];
  const unanswered = new Set<string>();
  for (let after: string | null | undefined; after !== null; ) {
    const page = await client.request('conversations', after ? { after } : {});
    rows.push(...page.conversations);
    for (const daemon of page.incomplete ?? []) unanswered.add(daemon);
    after = page.next;
  }
  return { rows, unanswered };
}

/** `2026-11-22 05:00` */
export const minuteOf = (iso: string): string => dateTime(iso).slice(0, 16);

function cells(row: ConversationSummary, now: number): string[] {
  const { id, title, phase, mode, activeAgent, length, tokens, usd, unpricedCalls, updatedAt } = row;
  return [
    ...[id, title ?? '-', phase, mode, activeAgent ?? '-', status(row), waitsFor(row, now), String(length)],
    ...[String(tokens), money(usd, unpricedCalls), minuteOf(updatedAt)],
  ];
}

/** The first that applies: running turns, waiting ones, stopped agents with work, limited ones, failed last turns. */
function status({ running, waiting, limited, stopped, activity }: ConversationSummary): string {
  const failed = activity.filter((one) => one.status === 'failed').map(({ agent }) => agent);
  const states: [readonly string[], string][] = [
    [running, 'at work'],
    [waiting, 'waiting'],
    [stopped, stopped.length === 1 ? 'is stopped' : 'are stopped'],
    [limited, 'limited'],
    [failed, 'failed'],
  ];
  const [agents, what] = states.find(([agents]) => agents.length > 0) ?? [];
  return agents ? `${agents.join(', ')} ${what}` : '-';
}

function waitsFor({ activity }: ConversationSummary, now: number): string {
  const waits = activity.flatMap((one) => {
    const text = waitText(one);
    return text === null ? [] : [`${text} (${ageText(one.since, now)})`];
  });
  if (waits.length === 0) return '-';
  const more = waits.length - SHOWN_WAITS;
  return `${waits.slice(0, SHOWN_WAITS).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

interface TurnsOptions extends Omit<RequestOf<'turns'>, 'conversation' | 'after'> {
  readonly in?: string;
  readonly limit: number;
  readonly csv?: true;
}

const TURN_HEADINGS = [
  'STARTED',
  'CONVERSATION',
  'ENTRY',
  'AGENT',
  'MODEL',
  'OUTCOME',
  'SECONDS',
  'TOKENS',
  'USD',
  'TOOLS',
  'RATED',
];

export function addTurns(program: Command, act: Act): void {
  const added = program
    .command('turns')
    .description('a table of the turns of all conversations, newest conversation first')
    .option('--in <conversation>', 'only in this conversation', conversationId)
    .option('--agent <slug>', 'only turns of this agent')
    .option('--model <name>', 'only turns that asked this model, by its name in parley.yaml or in answers')
    .option('--outcome <outcome>', 'running, waiting, completed, failed, aborted or limited')
    .option('--tool <name>', 'only turns that called this tool, or one of a pattern: mcp__github__*')
    .option('--rated <up|down>', 'only turns with an answer that a person rated so')
    .option('--since <time>', 'only turns from this time on: 2026-01-31, or with a time of day', pointInTime)
    .option('--limit <n>', 'at most this many turns', wholeNumber, 100)
    .option('--csv', 'print comma-separated values');
  ask(act, added, async (context, { in: conversation, limit, csv, ...filters }: TurnsOptions) => {
    const turns: FoundTurn[] = [];
    let after: string | null | undefined;
    do {
      const asked = { conversation, ...filters, limit: Math.min(500, limit - turns.length) };
      const page = await context.request('turns', { ...asked, ...(after && { after }) });
      turns.push(...page.turns);
      after = page.next;
    } while (after !== null && turns.length < limit);
    if (csv) context.write(turnsCsv(turns));
    else if (context.json) for (const turn of turns) context.value(turn);
    else if (turns.length === 0) context.note('no turn fits');
    else context.line(renderTable(TURN_HEADINGS, turns.map(turnCells), context.palette.dim));
    if (after !== null) context.note(`there may be more: only ${limit} are printed; give --limit`);
  });
}

type FoundTurn = AnswerOf<'turns'>['turns'][number];

function turnCells(turn: FoundTurn): string[] {
  const { conversation, agent, index, answer, startedAt, ms, outcome, models, tools, tokens } = turn;
  return [
    ...[
      minuteOf(startedAt),
      conversation,
      String(answer ?? index),
      agent,
      oneLine(models.join(', ')),
      outcome,
    ],
    ...[ms === null ? '-' : (ms / 1_000).toFixed(1), String(tokens), money(turn.usd, turn.unpricedCalls)],
    oneLine(tools.join(', ')),
    turn.rated.join(', '),
  ];
}

interface SearchOptions extends Omit<RequestOf<'search'>, 'q' | 'conversation'> {
  readonly in?: string;
}

export function addSearch(program: Command, act: Act): void {
  const added = program
    .command('search <words...>')
    .description('find messages of all conversations; words in quotation marks occur in this order')
    .option('--in <conversation>', 'only in this conversation', conversationId)
    .option('--agent <slug>', 'only messages of this agent')
    .option('--person <name>', 'only messages of this person: the name or the id')
    .option('--phase <phase>', 'only messages in this phase')
    .option(
      '--after <time>',
      'only messages from this time on: 2026-01-31, or with a time of day',
      pointInTime,
    )
    .option('--before <time>', 'only messages before this time', pointInTime)
    .option('--limit <n>', 'at most this many messages (default: 20)', wholeNumber);
  ask(act, added, async (context, words: string[], { in: conversation, ...options }: SearchOptions) => {
    if (words.join('').trim() === '')
      throw new ParleyError('USAGE', 'there is no word to search for', {
        hint: 'parley search WORD …',
      });
    const found = await context.request('search', { q: words.join(' '), conversation, ...options });
    const { hits, pending, incomplete = [] } = found;
    if (context.json || hits.length > 0) context.result(found, () => renderFound(hits, context.palette));
    else context.note('no message has these words');
    if (pending > 0)
      context.note(`the index is being built: ${pending} conversations are missing; search again soon`);
    if (incomplete.length > 0)
      context.note(`the answer may be incomplete: no answer from daemon ${incomplete.join(', ')}`);
  });
}

type Hit = AnswerOf<'search'>['hits'][number];

/** Found messages: a line that names the place, and the snippet. */
function renderFound(hits: readonly Hit[], palette: Palette): string {
  return hits.map((hit) => `${placeText(hit, palette)}\n  ${snippetText(hit, palette)}`).join('\n');
}

function placeText({ conversation, title, index, at, author, phase }: Hit, palette: Palette): string {
  const name = oneLine(author.name);
  const who = author.kind === 'agent' ? voiceOf(author.id, palette)(name) : palette.bold(name);
  const facts = [minuteOf(at), phase, title === null ? null : oneLine(title)];
  return `${conversation} ${index}  ${who}  ${palette.dim(facts.filter((fact) => fact !== null).join(' · '))}`;
}

function snippetText({ snippet, marks }: Hit, palette: Palette): string {
  let [text, end] = ['', 0];
  for (const [from, to] of marks) {
    text += oneLine(snippet.slice(end, from)) + palette.bold(oneLine(snippet.slice(from, to)));
    end = to;
  }
  return text + oneLine(snippet.slice(end));
}
