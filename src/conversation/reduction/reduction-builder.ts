import type { Entry, EntryOf } from '../log/entry.ts';
import type { FilePart } from '../log/parts.ts';
import { expand, type Ranges, rangesOf } from '../log/ranges.ts';
import type { Limit } from '../state/budget.ts';
import { isOfAPerson } from '../state/people.ts';
import { PREVIEW_LENGTH, previewOf } from '../text/text.ts';
import type { ViewMessage, ViewPart } from '../view/view.ts';
import { quotation } from './summary-text.ts';

/**
 * One reduction in progress: the view as groups that are never split, and the ways to take something out of it (COMPACTION-2 to
 * COMPACTION-5).
 */

/** A view and the facts that grouping needs. */
interface Grouping {
  readonly entries: readonly Entry[];
  /** The view's parts: the history; and block, marker, trigger and steps of the turn. */
  readonly history: readonly ViewPart[];
  readonly tail: readonly ViewPart[];
  /** By another author and never shown, or left out for good. */
  readonly isUnshown: (index: number) => boolean;
  /** By another author, and of a type that the view may contain. */
  readonly mayContain: (entry: Entry) => boolean;
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

/** The limits of a view, each with the target of a reduction. */
export interface ViewLimits {
  /** Estimated tokens for everything after prefix, run context and tools. */
  readonly tokens: Limit;
  /** A request with more tokens is never sent. */
  readonly windowTokens: number;
  readonly messages: Limit;
  /** UTF-16 code units of content. */
  readonly chars: Limit;
  /** How many files a request may have, and their bytes in all. Absent: none. */
  readonly files?: Limit;
  readonly fileBytes?: Limit;
}

export interface ReductionInput extends Grouping {
  readonly limits: ViewLimits;
  /** The summary text of a plan if no model writes one. */
  readonly write: (plan: ReductionPlan) => string;
}

export interface ReductionPlan {
  /** Entries that the summary replaces, an earlier summary's included (V17). */
  readonly covered: Ranges;
  /** Entries that the agent was never shown and never will be. */
  readonly leftOut: Ranges;
  /** Own results that become previews. */
  readonly shortened: readonly number[];
  /** Length of the previews, in code points. */
  readonly previewLength: number;
  /** Entries whose files are named, and no longer shown. */
  readonly withoutFiles: readonly number[];
  /** The newest message of a person in the view: if it is covered, the summary quotes it (COMPACTION-4). */
  readonly newestOfAPerson: number | null;
  /** Maximum size of this quotation, in estimated tokens. */
  readonly quotedTokens: number;
  /** Maximum size of the summary's text, in estimated tokens. */
  readonly summaryTokens: number;
  /** It only rewrites an earlier summary. `write` must write it: a model might not make it shorter (COMPACTION-5). */
  readonly isRewrite: boolean;
}

/** Maximum tokens of a summary, and of its quotation of the newest message of a person. */
export interface SummaryBudget {
  readonly summaryTokens: number;
  readonly quotedTokens: number;
}

/** Tokens of a summary message without its text. */
export const SUMMARY_OVERHEAD = 30;
/** At most. */
export const CHARS_PER_TOKEN = 4;
/** A result is shortened only if it is this many times as long as its preview, and longer than the line that names it. */
const WORTH_SHORTENING = 3;
export const SHORTEST = 60;

/** True: a limit is exceeded. */
export function isOver(size: Size, limits: ViewLimits): boolean {
  return (
    size.tokens > limits.tokens.max || size.messages > limits.messages.max || size.chars > limits.chars.max
  );
}

function isAtTarget(size: Size, limits: ViewLimits): boolean {
  return (
    size.tokens <= limits.tokens.target &&
    size.messages <= limits.messages.target &&
    size.chars <= limits.chars.target
  );
}

/** One reduction in progress; `left` is the size of the view after it. */
export class ReductionBuilder {
  left: Size;
  hasSummary: boolean;
  readonly #covered: Group[] = [];
  readonly #leftOut: Group[] = [];
  readonly #shortened = new Set<number>();
  #previewLength = PREVIEW_LENGTH;
  readonly #input: ReductionInput;
  readonly #words: SummaryBudget;
  readonly #summary: Size;

  constructor(input: ReductionInput, size: Size, words: SummaryBudget, hasSummary = false) {
    this.#input = input;
    this.left = size;
    this.#words = words;
    this.hasSummary = hasSummary;
    const all = words.summaryTokens + SUMMARY_OVERHEAD;
    this.#summary = { tokens: all, messages: 1, chars: CHARS_PER_TOKEN * all };
  }

  shorten(parts: readonly ViewPart[]): void {
    for (const part of parts) {
      if (isAtTarget(this.left, this.#input.limits)) return;
      this.#shortenOne(part);
    }
  }

  /** The request would fit the window. */
  get canBeSent(): boolean {
    return this.left.tokens <= this.#input.limits.windowTokens;
  }

  /** Shortens the newest results, no more than necessary. */
  shortenUntilSent(parts: readonly ViewPart[], length: number): void {
    this.#previewLength = length;
    for (const part of parts) {
      if (!isOver(this.left, this.#input.limits)) return;
      this.#shortenOne(part);
    }
  }

  #shortenOne({ message, entries }: ViewPart): void {
    const [index] = entries;
    const length = Math.max(SHORTEST, WORTH_SHORTENING * this.#previewLength);
    if (index === undefined || message.role !== 'tool' || (message.content?.length ?? 0) <= length) return;
    const preview = { ...message, content: previewOf(message.content ?? '', index, this.#previewLength) };
    this.left = minus(this.left, minus(this.#measure(message), this.#measure(preview)));
    this.#shortened.add(index);
  }

  #measure(message: ViewMessage): Size {
    return { tokens: this.#input.tokensOf(message), messages: 1, chars: message.content?.length ?? 0 };
  }

  /** Covers groups, the oldest first, until the target is reached. */
  cover(groups: readonly Group[]): void {
    const { limits } = this.#input;
    if (isAtTarget(this.left, limits)) return;
    const found: Group[] = [];
    let left = plus(this.left, this.#summary);
    for (const group of groups) {
      if (group.isUnshown || isAtTarget(left, limits)) break; // V17
      if (group.isNewestOfAPerson && !group.isSummary && !isOver(left, limits)) break;
      found.push(group);
      left = plus(minus(left, group.size), group.kept);
    }
    // The summary must be smaller than what it replaces (COMPACTION-5).
    if (!found.some((group) => !group.isSummary) || !isBetter(left, this.left, limits)) return;
    for (const group of found) this.#covered.push(group); // `push(...list)` fails on very long lists
    this.left = left;
    this.hasSummary = true;
  }

  /**
   * No summary may cover entries that were never shown (V17): they are left out by name, no more than necessary.
   * `eachOne`: the newest message of a person, too.
   */
  leaveOut(groups: readonly Group[], eachOne = false): void {
    for (const group of groups) {
      if (!isOver(this.left, this.#input.limits)) return;
      if (!group.isUnshown || group.isNewestOfAPerson !== eachOne) continue;
      if (!this.hasSummary) this.left = plus(this.left, this.#summary);
      this.hasSummary = true;
      this.#leftOut.push(group);
      this.left = minus(this.left, group.size);
    }
  }

  /** The oldest first: shown groups go into the summary, others are left out by name. Takes nothing if that saves nothing. */
  takeUntilSent(groups: readonly Group[]): void {
    const { tokens } = this.left;
    const taken: Group[] = [];
    let planned = plus(this.left, this.#summary);
    let left = this.left;
    for (const group of groups) {
      if (left.tokens <= this.#input.limits.windowTokens) break;
      taken.push(group);
      planned = minus(planned, group.size);
      if (!group.isUnshown) planned = plus(planned, group.kept);
      left = taken.length === 1 && group.isSummary ? this.#rewritten(group) : planned;
    }
    if (left.tokens >= tokens) return;
    for (const group of taken) (group.isUnshown ? this.#leftOut : this.#covered).push(group);
    this.left = left;
  }

  /** The size with a rewritten summary: the plan's upper bound does not show that the new text is shorter. */
  #rewritten(group: Group): Size {
    const [part] = group.parts;
    const [summary] = part ? summariesOf(part, this.#input.entries) : [];
    if (!part || !summary) return this.left;
    const alone = new ReductionBuilder(this.#input, this.left, this.#words);
    alone.#covered.push(group);
    const plan = alone.result();
    const { content } = part.message;
    const words =
      plan && `${content?.slice(0, content.length - summary.content.length)}${this.#input.write(plan)}`;
    return minus(
      this.left,
      minus(this.#measure(part.message), this.#measure({ ...part.message, content: words })),
    );
  }

  result(): ReductionPlan | null {
    const { entries, history, tail, isUnshown } = this.#input;
    const covered = indexesOf(this.#covered);
    const leftOut = indexesOf(this.#leftOut);
    const shortened = [...this.#shortened]
      .filter((index) => !covered.has(index) && !leftOut.has(index))
      .sort((a, b) => a - b);
    if (covered.size + leftOut.size + shortened.length === 0) return null;
    const inView = new Set([...history, ...tail].flatMap((part) => coveredEntries(part, entries)));
    const isFree = (index: number) => !inView.has(index) && !isUnshown(index);
    const earlier = this.#covered.flatMap(({ parts }) => parts.flatMap((part) => summariesOf(part, entries)));
    for (const summary of earlier) for (const index of expand(summary.entries)) covered.add(index);
    for (const summary of earlier) for (const index of expand(summary.leftOut ?? [])) leftOut.add(index);
    return {
      covered: rangesOf(covered, (index) => isFree(index) && !leftOut.has(index)),
      leftOut: rangesOf(leftOut, (index) => isFree(index) && !covered.has(index)),
      shortened,
      previewLength: this.#previewLength,
      withoutFiles: [],
      newestOfAPerson: newestOfAPerson(this.#input),
      isRewrite: this.#covered.length === 1 && this.#covered[0]?.isSummary === true,
      ...this.#words,
    };
  }
}

/** Smaller in each exceeded measure, and within the limits in the others. */
function isBetter(after: Size, before: Size, limits: ViewLimits): boolean {
  return (['tokens', 'messages', 'chars'] as const).every((measure) =>
    before[measure] > limits[measure].max
      ? after[measure] < before[measure]
      : after[measure] <= limits[measure].max,
  );
}

function indexesOf(groups: readonly Group[]): Set<number> {
  return new Set(groups.flatMap(({ parts }) => parts.flatMap((part) => [...part.entries])));
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

function plus(a: Size, b: Size): Size {
  return { tokens: a.tokens + b.tokens, messages: a.messages + b.messages, chars: a.chars + b.chars };
}

function minus(a: Size, b: Size): Size {
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

const NOTHING: Size = { tokens: 0, messages: 0, chars: 0 };

function quotedSize({ entries, tokensOf }: Grouping, index: number | null, atMost: number): Size {
  const entry = index === null ? undefined : entries[index];
  if (entry?.type !== 'message') return NOTHING;
  const content = quotation(entry);
  const tokens = Math.min(atMost, tokensOf({ role: 'user', content }));
  return { tokens, messages: 0, chars: Math.min(content.length, CHARS_PER_TOKEN * tokens) };
}

/** The newest message of a person in the view, as itself or in a summary; null: none. */
function newestOfAPerson({ entries, history, tail, mayContain }: Grouping): number | null {
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

function summariesOf(part: ViewPart, entries: readonly Entry[]): EntryOf<'summary'>[] {
  return part.entries.flatMap((index) => {
    const entry = entries[index];
    return entry?.type === 'summary' ? [entry] : [];
  });
}

/** The entries of a part, and those that a summary covers or names as left out. */
function coveredEntries(part: ViewPart, entries: readonly Entry[]): number[] {
  const summed = summariesOf(part, entries).flatMap((summary) => [
    ...expand(summary.entries),
    ...expand(summary.leftOut ?? []),
  ]);
  return [...part.entries, ...summed];
}
