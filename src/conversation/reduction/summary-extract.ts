import type { Entry, MessageEntry } from '../log/entry.ts';
import { isShown, type ShownEntry } from '../log/entry-traits.ts';
import { withFileLines } from '../log/parts.ts';
import { looksLike, plainName } from '../text/look-alikes.ts';
import { estimateTokens, firstCodePoints } from '../text/text.ts';

/** Lines of summaries: names, counts, ranges, and their sizes in tokens. */

/** Tokens of a heading and its line break. */
export const HEADING_TOKENS = 12;
/** In code points. */
const NAME_LENGTH = 48;
/** Names in one list; the others are only counted. */
const NAMES_COUNTED = 6;

export function shownRange([from, to]: readonly [number, number]): string {
  return from === to ? `${from}` : `${from} to ${to}`;
}

/** `(12 more entries of Dev, 3 to 90: recall reads them)`: every omitted entry is counted. */
export function counted(entries: readonly Entry[], names: readonly string[], canRecall: boolean): string {
  const from = entries[0]?.index ?? 0;
  const to = entries.at(-1)?.index ?? from;
  const many = entries.length === 1 ? '1 more entry' : `${entries.length} more entries`;
  const which = from === to ? 'it' : 'them';
  return `(${many} of ${listed(names)}, ${shownRange([from, to])}${recalling(canRecall, which)})`;
}

/** A reference to the tool `recall`, for agents that have it. */
export function recalling(canRecall: boolean, which: 'it' | 'them'): string {
  return canRecall ? `: recall reads ${which}` : '';
}

function listed(names: readonly string[]): string {
  const all = [...new Set(names)];
  const shown = all.slice(0, NAMES_COUNTED).join(', ');
  return all.length > NAMES_COUNTED ? `${shown} and ${all.length - NAMES_COUNTED} others` : shown;
}

/** Maximum tokens of the line that counts some of these entries. */
export function reserveFor(entries: readonly Entry[], names: readonly string[], canRecall: boolean): number {
  const longest = [...new Set(names)].sort((a, b) => estimateTokens(b) - estimateTokens(a));
  return entries.length === 0 ? 0 : 3 + estimateTokens(counted(entries, longest, canRecall));
}

/** Tokens of lines, line breaks included. */
export function tokensOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + 1 + estimateTokens(line), 0);
}

/** A name that cannot end its attribution early, nor be confused with `you`, the reader. */
export function shortName({ author }: Entry): string {
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

/** The part of a summary that needs no model: the beginning and the end of each message, in log order (SUMMARY-TEXT-2, SUMMARY-TEXT-3). */

/** Code points of a message, and of an agent's last message. */
const EXTRACT_LENGTH = 160;
const LAST_WORD_LENGTH = 400;

/** A line of the extract. Weight 2: an agent's last message; 1: a handoff, phase or request; 0: the rest. */
export interface ExtractItem {
  readonly entry: Entry;
  readonly name: string;
  readonly what: string;
  readonly weight: 0 | 1 | 2;
}

export function extractItems(
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

export function extract(items: readonly ExtractItem[], budget: number, canRecall: boolean): string {
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
export function extractTokens(items: readonly ExtractItem[], limit: number): number {
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

/** The text of an entry. */
export function textOfEntry(entry: ShownEntry): string {
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

export function usedTools(covered: readonly Entry[], agent: string, budget: number): string {
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
