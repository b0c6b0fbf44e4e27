import type { Entry } from '../log/entry.ts';
import { looksLike, plainName } from '../text/look-alikes.ts';
import { estimateTokens, firstCodePoints } from '../text/text.ts';

/** What the parts of a summary are worded with: names, counts, ranges, and what they come to in tokens. */

/** Of a heading, and the line break behind it. */
export const HEADING_TOKENS = 12;
/** In code points. */
export const NAME_LENGTH = 48;
/** Names that are counted out; the others are a number. */
const NAMES_COUNTED = 6;

export function shownRange([from, to]: readonly [number, number]): string {
  return from === to ? `${from}` : `${from} to ${to}`;
}

/** `(12 more entries of Dev, 3 to 90: recall reads them)`: nobody is dropped in silence. */
export function counted(entries: readonly Entry[], names: readonly string[], canRecall: boolean): string {
  const from = entries[0]?.index ?? 0;
  const to = entries.at(-1)?.index ?? from;
  const many = entries.length === 1 ? '1 more entry' : `${entries.length} more entries`;
  const which = from === to ? 'it' : 'them';
  return `(${many} of ${listed(names)}, ${shownRange([from, to])}${recalling(canRecall, which)})`;
}

/** Nobody is pointed to a tool that is not there. */
export function recalling(canRecall: boolean, which: 'it' | 'them'): string {
  return canRecall ? `: recall reads ${which}` : '';
}

function listed(names: readonly string[]): string {
  const all = [...new Set(names)];
  const shown = all.slice(0, NAMES_COUNTED).join(', ');
  return all.length > NAMES_COUNTED ? `${shown} and ${all.length - NAMES_COUNTED} others` : shown;
}

/** What the line that counts some of these can need at most, in tokens. */
export function reserveFor(entries: readonly Entry[], names: readonly string[], canRecall: boolean): number {
  const longest = [...new Set(names)].sort((a, b) => estimateTokens(b) - estimateTokens(a));
  return entries.length === 0 ? 0 : 3 + estimateTokens(counted(entries, longest, canRecall));
}

/** Of lines, their breaks included. */
export function tokensOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + 1 + estimateTokens(line), 0);
}

/** A name that cannot end its attribution early, nor pass for the reader's own. */
export function shortName({ author }: Entry): string {
  const plain = plainName(author.name).replace(/[:：]/gu, ' ');
  const name = firstCodePoints(plain.replace(/\s+/gu, ' ').trim(), NAME_LENGTH) || plainName(author.id);
  return looksLike(name, 'you') ? `"${name}"` : name || 'unnamed';
}

/** Its beginning and its end: that is where conclusions stand. */
export function oneLine(text: string, length: number): string {
  const line = [...text.replace(/[\s\p{Cc}]+/gu, ' ').trim()];
  if (line.length <= length) return line.join('');
  const end = Math.floor(length / 3);
  return `${line.slice(0, length - end).join('')} … ${line.slice(-end).join('')}`;
}
