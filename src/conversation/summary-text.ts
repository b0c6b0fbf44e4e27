import type { Entry, MessageEntry } from './entry.ts';
import { firstCodePoints } from './preview.ts';
import { expand, type Ranges } from './ranges.ts';
import { estimateTokens, firstTokens, foldName, LINE_BREAK, plainName } from './text.ts';

/**
 * The words of a summary.
 *
 * S1 People are quoted, not paraphrased: each line of theirs behind `> `, so that no content can pass for another
 *    quotation (L17). The newest first, as far as they fit; a long one is cut and says so.
 * S2 What others and the agent itself said stands under their names, in the order of the log: told by a model, or the
 *    beginning and the end of each. As far as it fits: each agent's last word first, then handoffs, phases and requests,
 *    then the newest. What has no room, people's words too, is counted by name: nobody is dropped in silence.
 * S3 No tool protocol and no reasoning: of calls only which tools were used, and how often.
 * S4 Pure, and no longer than it may be, but for the newest message of a person and the lines that count and name what
 *    does not stand here.
 */

export interface SummaryInput {
  readonly entries: readonly Entry[];
  readonly agent: string;
  /** An entry by someone else that can stand in this agent's views. */
  readonly canStand: (entry: Entry) => boolean;
  readonly covered: Ranges;
  readonly leftOut: Ranges;
  /** Quoted in full if it is covered, or as much as `quotedTokens` hold. */
  readonly newestOfAPerson: number | null;
  readonly quotedTokens?: number;
  /** Estimated tokens. */
  readonly maxTokens: number;
  /** The agent has the tool that reads entries back: it is pointed to it. */
  readonly canRecall: boolean;
  /** What a model made of it; null: an extract is made. */
  readonly prose: string | null;
}

/** Of what a summary may hold: for quotations if there is more than fits, for one quotation, for the names of tools. */
const QUOTED_SHARE = 0.5;
const LONGEST_QUOTATION_SHARE = 0.3;
const TOOLS_SHARE = 0.15;
/** In code points: of what was said, of an agent's last word, of a name. */
const EXTRACT_LENGTH = 160;
const LAST_WORD_LENGTH = 400;
const NAME_LENGTH = 48;
/** Names that are counted out; the others are a number. */
const NAMES_COUNTED = 6;

export function summaryText(input: SummaryInput): string {
  const covered = expand(input.covered).flatMap((index) => input.entries[index] ?? []);
  const tools = usedTools(covered, input.agent, Math.floor(input.maxTokens * TOOLS_SHARE));
  const leftOut = leftOutLine(input);
  const room = Math.max(0, input.maxTokens - estimateTokens(tools) - estimateTokens(leftOut));
  const people = covered.filter(isOfAPerson).filter(input.canStand);
  const said = saidBy(covered, input);
  // Who says little leaves room to the others.
  const wanted = input.prose === null ? tokensOf(said.map(sayingLine)) : estimateTokens(input.prose);
  const forQuotations = Math.max(room * QUOTED_SHARE, room - wanted - 2 * HEADING_TOKENS);
  const quoted = quotations(people, Math.floor(forQuotations), input);
  const rest = room - quoted.tokens;
  const done = told(input.prose ?? '', rest) || extract(said, rest, input.canRecall);
  return [quoted.text, done, tools, leftOut].filter((text) => text !== '').join('\n');
}

const HEADING_TOKENS = 12;

/** S1. `tokens`: of what is not the pinned one. */
function quotations(
  people: readonly MessageEntry[],
  room: number,
  { newestOfAPerson: pinned, quotedTokens, canRecall }: SummaryInput,
): { readonly text: string; readonly tokens: number } {
  if (people.length === 0) return { text: '', tokens: 0 };
  const names = people.map((entry) => shortName(entry));
  const longest = Math.max(10, Math.floor(room * LONGEST_QUOTATION_SHARE));
  const shown: string[] = [];
  const free = people.filter((entry) => entry.index !== pinned);
  let left = room - HEADING_TOKENS;
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

/** S1. In full, or as much as so many tokens hold. */
export function quotation(
  entry: MessageEntry,
  maxTokens = Number.POSITIVE_INFINITY,
  canRecall = true,
): string {
  const head = `[${entry.index}] ${shortName(entry)}:`;
  const whole = [head, ...quotedLines(entry.content ?? '')].join('\n');
  if (estimateTokens(whole) <= maxTokens) return whole;
  const goesOn = `(entry ${entry.index} goes on${recalling(canRecall, 'it')})`;
  const room = maxTokens - estimateTokens(head) - estimateTokens(goesOn) - 2;
  const lines = quotedLines(firstTokens(entry.content ?? '', room));
  while (lines.length > 1 && tokensOf(lines) > room) lines.pop(); // many short lines
  return [head, ...lines, goesOn].join('\n');
}

function quotedLines(text: string): string[] {
  return text.split(LINE_BREAK).map((line) => `> ${line}`);
}

/** A model's words, each line behind `- `, so that none can pass for a heading or a quotation (L17). */
function told(prose: string, room: number): string {
  const lines = prose
    .split(LINE_BREAK)
    .map((line) => line.trim().replace(/^[-*•]\s+/u, ''))
    .filter((line) => line !== '')
    .map((line) => `- ${line}`);
  const heading = 'What was done, in the words of a model:';
  const left = room - estimateTokens(heading) - 2;
  const text = lines.join('\n');
  if (estimateTokens(text) <= left) return text && `${heading}\n${text}`;
  const cut = firstTokens(text, left).replace(/\n-? ?$/u, ''); // no half of a line's beginning
  return cut.length > '- '.length ? `${heading}\n${cut} …` : '';
}

/** Something that was said or done, and how much it matters: 2 an agent's last word, 1 what changed the course, 0 the rest. */
interface Said {
  readonly entry: Entry;
  readonly name: string;
  readonly what: string;
  readonly weight: 0 | 1 | 2;
}

function saidBy(covered: readonly Entry[], { agent, canStand }: SummaryInput): Said[] {
  const said: Said[] = [];
  const lastHeard = new Set<string>();
  for (const entry of covered.toReversed()) {
    // What it handed over or asked for it said by a call, and of calls only the names are told.
    const isOwn = isBy(entry, agent) && entry.includeInContext !== false;
    if (entry.type === 'message' && (entry.author.kind === 'person' || entry.role === 'tool')) continue;
    if (!isOwn && !canStand(entry)) continue;
    const what = wordsOf(entry);
    if (!what) continue;
    const isLast = entry.type === 'message' && !lastHeard.has(entry.author.id);
    if (isLast) lastHeard.add(entry.author.id);
    const name = isOwn ? 'you' : shortName(entry);
    said.push({ entry, name, what, weight: isLast ? 2 : entry.type === 'message' ? 0 : 1 });
  }
  return said.reverse();
}

/** S2 */
function extract(said: readonly Said[], room: number, canRecall: boolean): string {
  if (said.length === 0) return '';
  let left = room - HEADING_TOKENS;
  const lines = said.map(sayingLine);
  const reserve = tokensOf(lines) <= left ? 0 : reserveFor(entriesOf(said), namesOf(said), canRecall);
  left -= reserve;
  const shown = new Set<number>();
  for (const weight of [2, 1, 0]) {
    for (let at = said.length - 1; at >= 0; at--) {
      if (said[at]?.weight !== weight) continue;
      const needed = 1 + estimateTokens(lines[at] ?? '');
      if (needed > left) break;
      left -= needed;
      shown.add(at);
    }
  }
  const missing = said.filter((_, at) => !shown.has(at));
  const count = missing.length > 0 ? [counted(entriesOf(missing), namesOf(missing), canRecall)] : [];
  return ['What was done:', ...count, ...lines.filter((_, at) => shown.has(at))].join('\n');
}

function sayingLine({ entry, name, what, weight }: Said): string {
  return `- entry ${entry.index}, ${name}: ${oneLine(what, weight === 2 ? LAST_WORD_LENGTH : EXTRACT_LENGTH)}`;
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
function usedTools(covered: readonly Entry[], agent: string, room: number): string {
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
  while (count > 0 && estimateTokens(line(count)) > room) count--;
  return line(count);
}

function leftOutLine({ leftOut, canRecall }: SummaryInput): string {
  if (leftOut.length === 0) return '';
  const from = leftOut[0]?.[0] ?? 0;
  const to = leftOut.at(-1)?.[1] ?? from;
  const which =
    leftOut.length <= 5 ? leftOut.map(shownRange).join(', ') : `some of ${shownRange([from, to])}`;
  return `Left out: what others said in entries ${which} did not fit, and you have not been shown it${recalling(canRecall, 'it')}.`;
}

function shownRange([from, to]: readonly [number, number]): string {
  return from === to ? `${from}` : `${from} to ${to}`;
}

/** `(12 more messages of Dev, entries 3 to 90: recall reads them)`: nobody is dropped in silence. */
function counted(entries: readonly Entry[], names: readonly string[], canRecall: boolean): string {
  const from = entries[0]?.index ?? 0;
  const to = entries.at(-1)?.index ?? from;
  const many = entries.length === 1 ? '1 more entry' : `${entries.length} more entries`;
  const which = from === to ? 'it' : 'them';
  return `(${many} of ${listed(names)}, ${shownRange([from, to])}${recalling(canRecall, which)})`;
}

/** Nobody is pointed to a tool that is not there. */
function recalling(canRecall: boolean, which: 'it' | 'them'): string {
  return canRecall ? `: recall reads ${which}` : '';
}

function listed(names: readonly string[]): string {
  const all = [...new Set(names)];
  const shown = all.slice(0, NAMES_COUNTED).join(', ');
  return all.length > NAMES_COUNTED ? `${shown} and ${all.length - NAMES_COUNTED} others` : shown;
}

/** What the line that counts some of these can need at most, in tokens. */
function reserveFor(entries: readonly Entry[], names: readonly string[], canRecall: boolean): number {
  const longest = [...new Set(names)].sort((a, b) => estimateTokens(b) - estimateTokens(a));
  return entries.length === 0 ? 0 : 3 + estimateTokens(counted(entries, longest, canRecall));
}

const entriesOf = (said: readonly Said[]): Entry[] => said.map(({ entry }) => entry);
const namesOf = (said: readonly Said[]): string[] => said.map(({ name }) => name);

/** Of lines, their breaks included. */
function tokensOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + 1 + estimateTokens(line), 0);
}

/** A name that cannot end its attribution early, nor pass for the reader's own. */
export function shortName({ author }: Entry): string {
  const plain = plainName(author.name).replace(/[:：]/gu, ' ');
  const name = firstCodePoints(plain.replace(/\s+/gu, ' ').trim(), NAME_LENGTH) || plainName(author.id);
  return foldName(name) === 'you' ? `"${name}"` : name || 'unnamed';
}

/** Its beginning and its end: that is where conclusions stand. */
function oneLine(text: string, length: number): string {
  const line = [...text.replace(/[\s\p{Cc}]+/gu, ' ').trim()];
  if (line.length <= length) return line.join('');
  const end = Math.floor(length / 3);
  return `${line.slice(0, length - end).join('')} … ${line.slice(-end).join('')}`;
}

function isOfAPerson(entry: Entry): entry is MessageEntry {
  return entry.type === 'message' && entry.author.kind === 'person';
}

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
