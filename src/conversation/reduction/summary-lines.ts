import type { Entry } from '../log/entry.ts';
import { looksLike, plainName } from '../text/look-alikes.ts';
import { estimateTokens, firstCodePoints } from '../text/text.ts';

/** Lines of summaries: names, counts, ranges, and their sizes in tokens. */

/** Tokens of a heading and its line break. */
export const HEADING_TOKENS = 12;
/** In code points. */
export const NAME_LENGTH = 48;
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
export function oneLine(text: string, length: number): string {
  const line = [...text.replace(/[\s\p{Cc}]+/gu, ' ').trim()];
  if (line.length <= length) return line.join('');
  const end = Math.floor(length / 3);
  return `${line.slice(0, length - end).join('')} … ${line.slice(-end).join('')}`;
}
