import type { Entry, EntryOf } from '../log/entry.ts';
import type { FilePart } from '../log/parts.ts';
import { expand } from '../log/ranges.ts';
import { isOfAPerson } from '../state/people.ts';
import type { ViewMessage, ViewPart } from '../view/view-parts.ts';
import { quotation } from './summary-text.ts';

/** A view as groups that are never split, with their sizes (COMPACTION-3). */

/** A view and the facts that grouping needs. */
export interface Grouping {
  readonly entries: readonly Entry[];
  /** The view's parts: the history; and block, marker, trigger and steps of the turn. */
  readonly history: readonly ViewPart[];
  readonly tail: readonly ViewPart[];
  /** By another author and never shown, or left out for good. */
  readonly isUnshown: (index: number) => boolean;
  /** By another author, and of a type that the view may contain. */
  readonly mayContain: (entry: Entry) => boolean;
  /** Estimated tokens of a message. */
  readonly tokensOf: (message: ViewMessage) => number;
  /** The files of a message that a request would contain. */
  readonly filesIn?: (message: ViewMessage) => readonly FilePart[];
}

/** Size of a view or a part of it. */
export interface Size {
  readonly tokens: number;
  readonly messages: number;
  readonly chars: number;
}

export interface Group {
  readonly parts: readonly ViewPart[];
  readonly size: Size;
  /** The part that remains when the group is covered: the quotation of the newest message of a person. */
  readonly kept: Size;
  readonly isUnshown: boolean;
  readonly isNewestOfAPerson: boolean;
  readonly isSummary: boolean;
}

/** The size of a view by every measure. */
export function sizeOf(parts: readonly ViewPart[], tokensOf: (message: ViewMessage) => number): Size {
  let tokens = 0;
  let chars = 0;
  for (const { message } of parts) {
    tokens += tokensOf(message);
    chars += message.content?.length ?? 0;
  }
  return { tokens, messages: parts.length, chars };
}

export function plus(a: Size, b: Size): Size {
  return { tokens: a.tokens + b.tokens, messages: a.messages + b.messages, chars: a.chars + b.chars };
}

export function minus(a: Size, b: Size): Size {
  return { tokens: a.tokens - b.tokens, messages: a.messages - b.messages, chars: a.chars - b.chars };
}

/**
 * Groups: an own message with its calls and all their results, or any one other message.
 * `quotedTokens`: maximum tokens of the newest message of a person once it is covered.
 */
export function groupsOf(input: Grouping, parts: readonly ViewPart[], quotedTokens: number): Group[] {
  const newest = newestOfAPerson(input);
  const inSummary = (part: ViewPart) =>
    newest !== null &&
    summariesOf(part, input.entries).some(({ entries }) =>
      entries.some(([from, to]) => from <= newest && newest <= to),
    );
  const grouped: ViewPart[][] = [];
  for (const part of parts) {
    const isNotice = part.entries.length === 0 && part.kind !== 'marker'; // after a paused answer
    if (part.message.role === 'tool' || isNotice) grouped.at(-1)?.push(part);
    else grouped.push([part]);
  }
  return grouped.map((group) => {
    const isNewestOfAPerson = group.some(
      (part) => newest !== null && (part.entries.includes(newest) || inSummary(part)),
    );
    return {
      parts: group,
      size: sizeOf(group, input.tokensOf),
      kept: isNewestOfAPerson ? quotedSize(input, newest, quotedTokens) : NOTHING,
      isUnshown: group.some((part) => part.entries.some(input.isUnshown)),
      isNewestOfAPerson,
      isSummary: group.some((part) => part.kind === 'summary'),
    };
  });
}

/** At most. */
const CHARS_PER_TOKEN = 4;
const NOTHING: Size = { tokens: 0, messages: 0, chars: 0 };

function quotedSize({ entries, tokensOf }: Grouping, index: number | null, atMost: number): Size {
  const entry = index === null ? undefined : entries[index];
  if (entry?.type !== 'message') return NOTHING;
  const content = quotation(entry);
  const tokens = Math.min(atMost, tokensOf({ role: 'user', content }));
  return { tokens, messages: 0, chars: Math.min(content.length, CHARS_PER_TOKEN * tokens) };
}

/** The newest message of a person in the view, as itself or in a summary; null: none. */
export function newestOfAPerson({ entries, history, tail, mayContain }: Grouping): number | null {
  for (const parts of [tail, history]) {
    for (const part of parts.toReversed()) {
      const summed = summariesOf(part, entries).flatMap((summary) => expand(summary.entries));
      const found = [...part.entries, ...summed].findLast((index) => {
        const entry = entries[index];
        // A summary's ranges also include entries that the agent is not shown.
        return isOfAPerson(entry) && mayContain(entry);
      });
      if (found !== undefined) return found;
    }
  }
  return null;
}

export function summariesOf(part: ViewPart, entries: readonly Entry[]): EntryOf<'summary'>[] {
  return part.entries.flatMap((index) => {
    const entry = entries[index];
    return entry?.type === 'summary' ? [entry] : [];
  });
}

/** The entries of a part, and those that a summary covers or names as left out. */
export function coveredEntries(part: ViewPart, entries: readonly Entry[]): number[] {
  const summed = summariesOf(part, entries).flatMap((summary) => [
    ...expand(summary.entries),
    ...expand(summary.leftOut ?? []),
  ]);
  return [...part.entries, ...summed];
}
