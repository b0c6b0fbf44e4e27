import type { Entry, EntryOf, MessageEntry } from '../log/entry.ts';
import { isShown, type ShownEntry } from '../log/entry-traits.ts';
import { withFileLines } from '../log/parts.ts';
import { expand, type Ranges, rangesText } from '../log/ranges.ts';
import { isOfAPerson } from '../state/people.ts';
import { looksLike, plainName } from '../text/look-alikes.ts';
import { estimateTokens, firstCodePoints, firstTokens, LINE_BREAK, quotedLines } from '../text/text.ts';

/**
 * The text of a summary.
 *
 * SUMMARY-TEXT-1 People are quoted, not paraphrased. Each quoted line begins with `> `, so that no content can pass for
 *                another quotation (L17). The newest come first, as far as they fit; a long one is cut and says so.
 * SUMMARY-TEXT-2 Messages of other agents and the agent's own are listed by name in log order: in a model's words, or
 *                the beginning and the end of each. Each agent's last message has priority, then handoffs, phases and
 *                requests, then the newest. What does not fit, people's messages too, is counted by name.
 * SUMMARY-TEXT-3 It contains no tool protocol and no reasoning: of calls only the tools and the number of uses.
 * SUMMARY-TEXT-4 Pure, and at most `maxTokens` long, except for the newest message of a person and the lines that count
 *                and name omitted entries.
 */

export interface SummaryInput {
  readonly entries: readonly Entry[];
  readonly agent: string;
  /** By another author, and of a type that this agent's views may contain. */
  readonly mayContain: (entry: Entry) => boolean;
  readonly covered: Ranges;
  readonly leftOut: Ranges;
  /** Quoted in full if it is covered, or up to `quotedTokens`. */
  readonly newestOfAPerson: number | null;
  readonly quotedTokens?: number;
  /** Estimated tokens. */
  readonly maxTokens: number;
  /** The agent has the tool `recall`: the summary refers to it. */
  readonly canRecall: boolean;
  /** Text by a model; null: an extract is made. */
  readonly prose: string | null;
}

/** Shares of the summary: for all quotations if not everything fits, for one quotation, for names of tools. */
const QUOTED_SHARE = 0.5;
const LONGEST_QUOTATION_SHARE = 0.3;
const TOOLS_SHARE = 0.15;

export function summaryText(input: SummaryInput): string {
  const covered = expand(input.covered).flatMap((index) => input.entries[index] ?? []);
  const tools = usedTools(covered, input.agent, Math.floor(input.maxTokens * TOOLS_SHARE));
  const leftOut = leftOutLine(input);
  const budget = Math.max(0, input.maxTokens - estimateTokens(tools) - estimateTokens(leftOut));
  const people = covered.filter(isOfAPerson).filter(input.mayContain);
  const items = extractItems(covered, input.agent, input.mayContain);
  // Few messages by agents leave space for quotations, and the other way round.
  const wanted = input.prose === null ? extractTokens(items, budget) : estimateTokens(input.prose);
  const forQuotations = Math.max(budget * QUOTED_SHARE, budget - wanted - 2 * HEADING_TOKENS);
  const quoted = quotations(people, Math.floor(forQuotations), input);
  const rest = budget - quoted.tokens;
  const done = proseLines(input.prose ?? '', rest) || extract(items, rest, input.canRecall);
  return [quoted.text, done, tools, leftOut].filter((text) => text !== '').join('\n');
}

/** SUMMARY-TEXT-1. `tokens`: size without the pinned message. */
function quotations(
  people: readonly MessageEntry[],
  budget: number,
  { newestOfAPerson: pinned, quotedTokens, canRecall }: SummaryInput,
): { readonly text: string; readonly tokens: number } {
  if (people.length === 0) return { text: '', tokens: 0 };
  const names = people.map((entry) => shortName(entry));
  const longest = Math.max(10, Math.floor(budget * LONGEST_QUOTATION_SHARE));
  const shown: string[] = [];
  const free = people.filter((entry) => entry.index !== pinned);
  let left = budget - HEADING_TOKENS;
  const reserve = reserveFor(free, names, canRecall);
  let at = free.length - 1;
  for (; at >= 0; at--) {
    const entry = free[at];
    if (!entry) continue;
    const text = quotation(entry, longest, canRecall);
    const needed = 1 + estimateTokens(text);
    if (needed + (at > 0 ? reserve : 0) > left) break;
    left -= needed;
    shown.unshift(text);
  }
  const older = free.slice(0, at + 1);
  const count = older.length > 0 ? [counted(older, older.map(shortName), canRecall)] : [];
  const kept = people
    .filter((entry) => entry.index === pinned)
    .map((entry) => quotation(entry, quotedTokens, canRecall));
  const optional = ['People said:', ...count, ...shown];
  return { text: [...optional, ...kept].join('\n'), tokens: tokensOf(optional) };
}

/** SUMMARY-TEXT-1. In full, or up to `maxTokens`. */
export function quotation(
  entry: MessageEntry,
  maxTokens = Number.POSITIVE_INFINITY,
  canRecall = true,
): string {
  const head = `[${entry.index}] ${shortName(entry)}:`;
  const text = withFileLines(entry);
  const whole = [head, ...quotedLines(text)].join('\n');
  if (estimateTokens(whole) <= maxTokens) return whole;
  const goesOn = `(entry ${entry.index} continues${recalling(canRecall, 'it')})`;
  const budget = maxTokens - estimateTokens(head) - estimateTokens(goesOn) - 2;
  const lines = quotedLines(firstTokens(text, budget));
  while (lines.length > 1 && tokensOf(lines) > budget) lines.pop(); // many short lines
  return [head, ...lines, goesOn].join('\n');
}

/** A model's text. Each line begins with `- `, so that none can pass for a heading or a quotation (L17). */
function proseLines(prose: string, budget: number): string {
  const lines = prose
    .split(LINE_BREAK)
    .map((line) => line.trim().replace(/^[-*•]\s+/u, ''))
    .filter((line) => line !== '')
    .map((line) => `- ${line}`);
  const heading = 'What was done, in the words of a model:';
  const left = budget - estimateTokens(heading) - 2;
  const text = lines.join('\n');
  if (estimateTokens(text) <= left) return text && `${heading}\n${text}`;
  const cut = firstTokens(text, left).replace(/\n-? ?$/u, ''); // no partial line prefix at the end
  return cut.length > '- '.length ? `${heading}\n${cut} …` : '';
}

function leftOutLine({ leftOut, canRecall }: SummaryInput): string {
  if (leftOut.length === 0) return '';
  const from = leftOut[0]?.[0] ?? 0;
  const to = leftOut.at(-1)?.[1] ?? from;
  const which = leftOut.length <= 5 ? rangesText(leftOut) : `some of ${rangesText([[from, to]])}`;
  return `Left out: what others said in ${from === to ? 'entry' : 'entries'} ${which} did not fit, and you have not been shown it${recalling(canRecall, 'it')}.`;
}

interface TranscriptInput extends Pick<SummaryInput, 'entries' | 'agent' | 'mayContain' | 'covered'> {
  /** Estimated tokens. */
  readonly maxTokens: number;
}

/** Code points of one entry: the first of these with which everything fits. */
const LENGTHS = [2_000, 600, 150, 40];

/**
 * The input of a summarising model: the entries to sum up, in words, and the summary that covers earlier ones.
 * Only lines that begin with `[` or `SUMMARY SO FAR` belong to the transcript itself: from its second line on, each line
 * of an author's text begins with `> `, so that no author can imitate another (L17).
 *
 * Null: it does not fit.
 */
export function transcript(input: TranscriptInput): string | null {
  for (const length of LENGTHS) {
    const text = written(input, length);
    if (estimateTokens(text) <= input.maxTokens) return text;
  }
  return null;
}

function written(input: TranscriptInput, length: number): string {
  const covered = expand(input.covered).flatMap((index) => input.entries[index] ?? []);
  const earlier = covered.filter(
    (entry): entry is EntryOf<'summary'> => entry.type === 'summary' && entry.agent === input.agent,
  );
  const known = new Set(earlier.flatMap((summary) => expand(summary.entries)));
  const newest = earlier.filter((summary) => !known.has(summary.index));
  const lines = covered
    .filter((entry) => !known.has(entry.index))
    .map((entry) => line(entry, input, length))
    .filter((text) => text !== '');
  return [...newest.map(({ content }) => `SUMMARY SO FAR\n> ${quoteRest(content)}\n`), ...lines].join('\n');
}

function line(entry: Entry, { agent, mayContain }: TranscriptInput, length: number): string {
  const cut = (text: string) => quoteRest(firstCodePoints(text, length));
  if (entry.type === 'message' && entry.agentId === agent) {
    if (entry.role === 'tool')
      return `[${entry.index}] ${quoteRest(entry.toolName ?? 'a tool')} answered: ${cut(withFileLines(entry))}`;
    return `[${entry.index}] ${agent}: ${cut([withFileLines(entry), ...calls(entry)].join(' '))}`;
  }
  if (!isShown(entry) || !mayContain(entry)) return '';
  return `[${entry.index}] ${shortName(entry)}: ${cut(textOfEntry(entry))}`;
}

/** Puts `> ` before each line but the first. */
function quoteRest(text: string): string {
  return text.split(LINE_BREAK).join('\n> ');
}

function calls({ tool_calls: made = [] }: MessageEntry): string[] {
  return made.map(({ function: call }) => `(calls ${call.name} ${call.arguments})`);
}

/** Tokens of a heading and its line break. */
const HEADING_TOKENS = 12;
/** In code points. */
const NAME_LENGTH = 48;
/** Names in one list; the others are only counted. */
const NAMES_COUNTED = 6;

/** `(12 more entries of Dev, 3 to 90: recall reads them)`: every omitted entry is counted. */
function counted(entries: readonly Entry[], names: readonly string[], canRecall: boolean): string {
  const from = entries[0]?.index ?? 0;
  const to = entries.at(-1)?.index ?? from;
  const many = entries.length === 1 ? '1 more entry' : `${entries.length} more entries`;
  const which = from === to ? 'it' : 'them';
  return `(${many} of ${listed(names)}, ${rangesText([[from, to]])}${recalling(canRecall, which)})`;
}

/** A reference to the tool `recall`, for agents that have it. */
function recalling(canRecall: boolean, which: 'it' | 'them'): string {
  return canRecall ? `: recall reads ${which}` : '';
}

function listed(names: readonly string[]): string {
  const all = [...new Set(names)];
  const shown = all.slice(0, NAMES_COUNTED).join(', ');
  return all.length > NAMES_COUNTED ? `${shown} and ${all.length - NAMES_COUNTED} others` : shown;
}

/** Maximum tokens of the line that counts some of these entries. */
function reserveFor(entries: readonly Entry[], names: readonly string[], canRecall: boolean): number {
  const longest = [...new Set(names)].sort((a, b) => estimateTokens(b) - estimateTokens(a));
  return entries.length === 0 ? 0 : 3 + estimateTokens(counted(entries, longest, canRecall));
}

/** Tokens of lines, line breaks included. */
function tokensOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + 1 + estimateTokens(line), 0);
}

/** A name that cannot end its attribution early, nor be confused with `you`, the reader. */
function shortName({ author }: Entry): string {
  const plain = plainName(author.name).replace(/[:：]/gu, ' ');
  const name = firstCodePoints(plain.replace(/\s+/gu, ' ').trim(), NAME_LENGTH) || plainName(author.id);
  return looksLike(name, 'you') ? `"${name}"` : name || 'unnamed';
}

/** The beginning and the end of a text: conclusions are often at the end. */
function oneLine(text: string, length: number): string {
  const line = [...text.replace(/[\s\p{Cc}]+/gu, ' ').trim()];
  if (line.length <= length) return line.join('');
  const end = Math.floor(length / 3);
  return `${line.slice(0, length - end).join('')} … ${line.slice(-end).join('')}`;
}

/** Code points of a message, and of an agent's last message. */
const EXTRACT_LENGTH = 160;
const LAST_WORD_LENGTH = 400;

/** A line of the extract. Weight 2: an agent's last message; 1: a handoff, phase or request; 0: the rest. */
interface ExtractItem {
  readonly entry: Entry;
  readonly name: string;
  readonly what: string;
  readonly weight: 0 | 1 | 2;
}

function extractItems(
  covered: readonly Entry[],
  agent: string,
  mayContain: (entry: Entry) => boolean,
): ExtractItem[] {
  const items: ExtractItem[] = [];
  const lastHeard = new Set<string>();
  for (const entry of covered.toReversed()) {
    // An agent hands over and delegates by a call, and of calls only the names are listed.
    const isOwn = isBy(entry, agent) && entry.includeInContext !== false;
    if (entry.type === 'message' && (entry.author.kind === 'person' || entry.role === 'tool')) continue;
    if (!isShown(entry) || (!isOwn && !mayContain(entry))) continue;
    const what = textOfEntry(entry);
    if (!what) continue;
    const isLast = entry.type === 'message' && !lastHeard.has(entry.author.id);
    if (isLast) lastHeard.add(entry.author.id);
    const name = isOwn ? 'you' : shortName(entry);
    items.push({ entry, name, what, weight: isLast ? 2 : entry.type === 'message' ? 0 : 1 });
  }
  return items.reverse();
}

/** The part of a summary that needs no model: the beginning and the end of each message, in log order (SUMMARY-TEXT-2, SUMMARY-TEXT-3). */
function extract(items: readonly ExtractItem[], budget: number, canRecall: boolean): string {
  if (items.length === 0) return '';
  let left = budget - HEADING_TOKENS;
  const isWhole = extractTokens(items, left) <= left;
  left -= isWhole ? 0 : reserveFor(entriesOf(items), namesOf(items), canRecall);
  const shown = new Map<number, string>();
  for (const weight of [2, 1, 0]) {
    for (let at = items.length - 1; at >= 0; at--) {
      const one = items[at];
      if (one?.weight !== weight) continue;
      const line = extractLine(one);
      const needed = 1 + estimateTokens(line);
      if (needed > left) break;
      left -= needed;
      shown.set(at, line);
    }
  }
  const missing = items.filter((_, at) => !shown.has(at));
  const count = missing.length > 0 ? [counted(entriesOf(missing), namesOf(missing), canRecall)] : [];
  return ['What was done:', ...count, ...items.flatMap((_, at) => shown.get(at) ?? [])].join('\n');
}

/** Tokens of the full extract, or any number above `limit`: a long log needs far more than fits. */
function extractTokens(items: readonly ExtractItem[], limit: number): number {
  let tokens = 0;
  for (const one of items) {
    tokens += 1 + estimateTokens(extractLine(one));
    if (tokens > limit) break;
  }
  return tokens;
}

function extractLine({ entry, name, what, weight }: ExtractItem): string {
  return `- entry ${entry.index}, ${name}: ${oneLine(what, weight === 2 ? LAST_WORD_LENGTH : EXTRACT_LENGTH)}`;
}

function textOfEntry(entry: ShownEntry): string {
  switch (entry.type) {
    case 'message':
      return withFileLines(entry);
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
      return entry satisfies never;
  }
}

function usedTools(covered: readonly Entry[], agent: string, budget: number): string {
  const uses = new Map<string, number>();
  for (const entry of covered) {
    if (!isOwnMessage(entry, agent)) continue;
    for (const { function: call } of entry.tool_calls ?? []) {
      const name = oneLine(call.name, NAME_LENGTH);
      uses.set(name, (uses.get(name) ?? 0) + 1);
    }
  }
  if (uses.size === 0) return '';
  const named = [...uses].sort((a, b) => b[1] - a[1]).map(([name, count]) => `${name} ${count}×`);
  const line = (count: number) => {
    const others = named.length > count ? [`${named.length - count} others`] : [];
    return `Tools you used: ${[...named.slice(0, count), ...others].join(', ')}`;
  };
  let count = Math.min(named.length, 8);
  while (count > 0 && estimateTokens(line(count)) > budget) count--;
  return line(count);
}

const entriesOf = (items: readonly ExtractItem[]): Entry[] => items.map(({ entry }) => entry);
const namesOf = (items: readonly ExtractItem[]): string[] => items.map(({ name }) => name);

function isOwnMessage(entry: Entry, agent: string): entry is MessageEntry {
  return (
    entry.type === 'message' &&
    entry.role === 'assistant' &&
    isBy(entry, agent) &&
    entry.includeInContext !== false
  );
}

function isBy({ author }: Entry, agent: string): boolean {
  return author.kind === 'agent' && author.id === agent;
}
