import type { Entry, MessageEntry } from './entry.ts';
import { firstCodePoints } from './preview.ts';
import { expand, type Ranges } from './ranges.ts';
import { estimateTokens, LINE_BREAK, plainName } from './text.ts';

/**
 * The words of a summary.
 *
 * S1 People are quoted, not paraphrased: each line of theirs behind `> `, so that no content can pass for another
 *    quotation (L17). The newest first, as far as they fit; how many are not quoted is said.
 * S2 What others and the agent itself said stands under their names: told by a model, or the beginning of each, the
 *    newest first, as far as it fits. What has no room is counted by name: nobody is dropped in silence.
 * S3 No tool protocol and no reasoning: of calls only which tools were used, and how often.
 * S4 Pure, and no longer than it may be, but for the newest message of a person and what is named as left out.
 */

export interface SummaryInput {
  readonly entries: readonly Entry[];
  readonly agent: string;
  /** An entry by someone else that can stand in this agent's views. */
  readonly canStand: (entry: Entry) => boolean;
  readonly covered: Ranges;
  readonly leftOut: Ranges;
  /** Quoted in full if it is covered. */
  readonly newestOfAPerson: number | null;
  /** Estimated tokens. */
  readonly maxTokens: number;
  /** What a model made of it; null: an extract is made. */
  readonly prose: string | null;
}

/** Of what a summary may hold, for quotations; the rest is for what was done. */
const QUOTED_SHARE = 0.5;
const EXTRACT_LENGTH = 160;
/** Kept for the lines that count what had no room. */
const COUNT_TOKENS = 25;

export function summaryText(input: SummaryInput): string {
  const covered = expand(input.covered).flatMap((index) => input.entries[index] ?? []);
  const people = covered.filter(isOfAPerson).filter(input.canStand);
  const quoted = quotations(people, input);
  const rest = Math.max(0, input.maxTokens - estimateTokens(quoted.optional) - 2 * COUNT_TOKENS);
  const done = input.prose === null ? extract(covered, input, rest) : told(input.prose, rest);
  return [quoted.text, done, usedTools(covered, input.agent), leftOutLine(input.leftOut)]
    .filter((text) => text !== '')
    .join('\n');
}

/** S1 */
function quotations(
  people: readonly MessageEntry[],
  input: SummaryInput,
): { text: string; optional: string } {
  let room = Math.max(0, input.maxTokens * QUOTED_SHARE - COUNT_TOKENS);
  const shown: string[] = [];
  const pinned: string[] = [];
  let at = people.length - 1;
  for (; at >= 0; at--) {
    const entry = people[at];
    if (!entry) continue;
    const text = quotation(entry);
    if (entry.index === input.newestOfAPerson) pinned.push(text);
    else {
      room -= estimateTokens(text);
      if (room < 0) break;
      shown.push(text);
    }
  }
  const older = people.slice(0, at + 1);
  const count = older.length > 0 ? [`(${counted(older, 'of people')}: recall reads them)`] : [];
  const optional = [...count, ...shown.reverse()];
  const all = [...optional, ...pinned];
  return { text: all.length > 0 ? ['People said:', ...all].join('\n') : '', optional: optional.join('\n') };
}

function quotation(entry: MessageEntry): string {
  const lines = (entry.content ?? '').split(LINE_BREAK);
  return [`[${entry.index}] ${plainName(entry.author.name)}:`, ...lines.map((line) => `> ${line}`)].join(
    '\n',
  );
}

/** A model's words, kept from passing for a quotation or a heading of a summary. */
function told(prose: string, room: number): string {
  const lines = prose
    .trim()
    .split(LINE_BREAK)
    .map((line) => line.replace(/^(?=\s*(?:\[|>))/u, '\\'));
  const text = lines.join('\n');
  if (estimateTokens(text) <= room) return text && `What was done:\n${text}`;
  const cut = firstCodePoints(text, room);
  return cut && `What was done:\n${cut} …`;
}

/** S2 */
function extract(covered: readonly Entry[], { agent, canStand }: SummaryInput, room: number): string {
  const said = covered.flatMap((entry) => {
    if (isOfAPerson(entry)) return [];
    const name = isOwnMessage(entry, agent) ? 'you' : canStand(entry) ? plainName(entry.author.name) : null;
    const what = name === null ? '' : wordsOf(entry);
    return name !== null && what ? [{ entry, name, what }] : [];
  });
  const lines: string[] = [];
  let left = room - COUNT_TOKENS;
  let at = said.length - 1;
  for (; at >= 0; at--) {
    const item = said[at];
    if (!item) continue;
    const line = `- entry ${item.entry.index}, ${item.name}: ${oneLine(item.what)}`;
    left -= estimateTokens(line);
    if (left < 0) break;
    lines.unshift(line);
  }
  const older = said.slice(0, at + 1);
  if (older.length > 0) {
    const names = [...new Set(older.map((item) => item.name))];
    const who =
      names.length > 3 ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} others` : names.join(', ');
    lines.unshift(
      `(${counted(
        older.map((item) => item.entry),
        `of ${who}`,
      )}: recall reads them)`,
    );
  }
  return lines.length > 0 ? ['What was done:', ...lines].join('\n') : '';
}

/** What somebody else did, in words. */
export function wordsOf(entry: Entry): string {
  switch (entry.type) {
    case 'message':
      return entry.content ?? '';
    case 'handoff':
      return `hands over to ${entry.to}: ${entry.summary}`;
    case 'delegation-requested':
      return `asks ${entry.to}: ${entry.request}`;
    case 'phase-entered':
    case 'mode-entered':
      return `${entry.type === 'phase-entered' ? 'phase' : 'mode'} ${entry.from} → ${entry.to}`;
    case 'run-started':
      return `run of ${entry.workflowId} started`;
    case 'node-entered':
      return `node ${entry.node} entered`;
    case 'run-ended':
      return `run ended: ${entry.outcome}`;
    case 'limit-reached':
    case 'note':
      return entry.content;
    default:
      return '';
  }
}

/** S3 */
function usedTools(covered: readonly Entry[], agent: string): string {
  const uses = new Map<string, number>();
  for (const entry of covered) {
    if (!isOwnMessage(entry, agent)) continue;
    for (const {
      function: { name },
    } of entry.tool_calls ?? [])
      uses.set(name, (uses.get(name) ?? 0) + 1);
  }
  const most = [...uses].sort((a, b) => b[1] - a[1]).slice(0, 8);
  if (most.length === 0) return '';
  return `Tools you used: ${most.map(([name, count]) => `${oneLine(name).slice(0, 64)} ${count}×`).join(', ')}`;
}

function leftOutLine(leftOut: Ranges): string {
  if (leftOut.length === 0) return '';
  const from = leftOut[0]?.[0] ?? 0;
  const to = leftOut.at(-1)?.[1] ?? from;
  const which =
    leftOut.length <= 5 ? leftOut.map(shownRange).join(', ') : `some of ${shownRange([from, to])}`;
  return `Left out: what others said in entries ${which} did not fit, and you have not been shown it: recall reads it.`;
}

function shownRange([from, to]: readonly [number, number]): string {
  return from === to ? `${from}` : `${from} to ${to}`;
}

/** `12 more messages of Dev, entries 3 to 90`. */
function counted(entries: readonly Entry[], of: string): string {
  const from = entries[0]?.index ?? 0;
  const to = entries.at(-1)?.index ?? from;
  return entries.length === 1
    ? `1 more message ${of}, entry ${from}`
    : `${entries.length} more messages ${of}, entries ${from} to ${to}`;
}

function oneLine(text: string): string {
  const line = text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
  return line.length > EXTRACT_LENGTH ? `${firstCodePoints(line, EXTRACT_LENGTH)} …` : line;
}

function isOfAPerson(entry: Entry): entry is MessageEntry {
  return entry.type === 'message' && entry.author.kind === 'person';
}

function isOwnMessage(entry: Entry, agent: string): entry is MessageEntry {
  return (
    entry.type === 'message' &&
    entry.role === 'assistant' &&
    entry.author.kind === 'agent' &&
    entry.author.id === agent &&
    entry.includeInContext !== false
  );
}
