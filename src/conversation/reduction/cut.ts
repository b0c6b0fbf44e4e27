import { expand, type Ranges, rangesOf } from '../log/ranges.ts';
import type { Limit } from '../state/budget.ts';
import { PREVIEW_LENGTH, previewOf } from '../text/text.ts';
import type { ViewMessage, ViewPart } from '../view/view.ts';
import {
  type Group,
  type Grouping,
  minus,
  newestOfAPerson,
  plus,
  type Size,
  stoodFor,
  summariesOf,
} from './view-groups.ts';

/** One reduction in the making: what each way to take something out of a view removes, and what it leaves (COMPACTION-2 to COMPACTION-5). */

/** How much there may be of a view: when more, it is reduced to what `target` says. */
export interface ViewLimits {
  /** Estimated tokens for everything after prefix, run context and tools. */
  readonly tokens: Limit;
  /** Tokens beyond which no request is sent at all. */
  readonly wall: number;
  readonly messages: Limit;
  /** UTF-16 code units of content. */
  readonly chars: Limit;
}

export interface ReductionInput extends Grouping {
  readonly limits: ViewLimits;
  /** The summary that would be written by a plan if no model wrote it. */
  readonly write: (plan: ReductionPlan) => string;
}

export interface ReductionPlan {
  /** What a summary is to stand for, an earlier one's included (V17). */
  readonly covered: Ranges;
  /** What the agent was never shown, and never will be. */
  readonly leftOut: Ranges;
  /** Own results that become previews. */
  readonly shortened: readonly number[];
  /** What the previews show, in code points. */
  readonly previewLength: number;
  /** The newest message of a person in the view: if it is covered, the summary quotes it (COMPACTION-4). */
  readonly newestOfAPerson: number | null;
  /** Estimated tokens that this quotation may have. */
  readonly quotedTokens: number;
  /** Estimated tokens that the summary's text may have. */
  readonly summaryTokens: number;
  /** An earlier summary in fewer words, and nothing else: what is written is `write`, or it might not end (COMPACTION-5). */
  readonly isRewrite: boolean;
}

/** What a summary and its quotation of the newest message of a person may have, in tokens. */
export interface Words {
  readonly summaryTokens: number;
  readonly quotedTokens: number;
}

/** Tokens of a summary beside its text. */
export const SUMMARY_OVERHEAD = 30;
export const CHARS_PER_TOKEN = 4;
/** A result this many times as long as its preview is worth shortening, and none that is no longer than what names it. */
const WORTH_SHORTENING = 3;
export const SHORTEST = 60;

/** True: some limit is exceeded. */
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

/** One reduction in the making; `left` is what the view would hold. */
export class Cut {
  left: Size;
  hasSummary: boolean;
  private readonly covered: Group[] = [];
  private readonly leftOut: Group[] = [];
  private readonly shortened = new Set<number>();
  private previewLength = PREVIEW_LENGTH;
  private readonly input: ReductionInput;
  private readonly words: Words;
  private readonly summary: Size;

  constructor(input: ReductionInput, size: Size, words: Words, hasSummary = false) {
    this.input = input;
    this.left = size;
    this.words = words;
    this.hasSummary = hasSummary;
    const all = words.summaryTokens + SUMMARY_OVERHEAD;
    this.summary = { tokens: all, messages: 1, chars: CHARS_PER_TOKEN * all };
  }

  shorten(parts: readonly ViewPart[]): void {
    for (const part of parts) {
      if (isAtTarget(this.left, this.input.limits)) return;
      this.shortenOne(part);
    }
  }

  /** Of a request: it would fit the window. */
  get canBeSent(): boolean {
    return this.left.tokens <= this.input.limits.wall;
  }

  /** The newest results: no more of them than must be. */
  shortenUntilSent(parts: readonly ViewPart[], length: number): void {
    this.previewLength = length;
    for (const part of parts) {
      if (!isOver(this.left, this.input.limits)) return;
      this.shortenOne(part);
    }
  }

  private shortenOne({ message, entries }: ViewPart): void {
    const [index] = entries;
    const length = Math.max(SHORTEST, WORTH_SHORTENING * this.previewLength);
    if (index === undefined || message.role !== 'tool' || (message.content?.length ?? 0) <= length) return;
    const preview = { ...message, content: previewOf(message.content ?? '', index, this.previewLength) };
    this.left = minus(this.left, minus(this.measure(message), this.measure(preview)));
    this.shortened.add(index);
  }

  private measure(message: ViewMessage): Size {
    return { tokens: this.input.tokensOf(message), messages: 1, chars: message.content?.length ?? 0 };
  }

  /** The oldest first, as far as the target asks for. */
  cover(groups: readonly Group[]): void {
    const { limits } = this.input;
    if (isAtTarget(this.left, limits)) return;
    const found: Group[] = [];
    let left = plus(this.left, this.summary);
    for (const group of groups) {
      if (group.isUnshown || isAtTarget(left, limits)) break; // V17
      if (group.isNewestOfAPerson && !group.isSummary && !isOver(left, limits)) break; // COMPACTION-4
      found.push(group);
      left = plus(minus(left, group.size), group.kept);
    }
    // What is written must be smaller than what it replaces (COMPACTION-5).
    if (!found.some((group) => !group.isSummary) || !isBetter(left, this.left, limits)) return;
    this.covered.push(...found);
    this.left = left;
    this.hasSummary = true;
  }

  /**
   * What was never shown stands in no summary (V17): it is named as left out, and only as much as must be.
   * `eachOne`: the newest message of a person, too.
   */
  leaveOut(groups: readonly Group[], eachOne = false): void {
    for (const group of groups) {
      if (!isOver(this.left, this.input.limits)) return;
      if (!group.isUnshown || group.isNewestOfAPerson !== eachOne) continue;
      if (!this.hasSummary) this.left = plus(this.left, this.summary);
      this.hasSummary = true;
      this.leftOut.push(group);
      this.left = minus(this.left, group.size);
    }
  }

  /** The oldest first: what was shown into the summary, the rest left out by name. Nothing, if that saves nothing. */
  takeUntilSent(groups: readonly Group[]): void {
    const { tokens } = this.left;
    const taken: Group[] = [];
    let planned = plus(this.left, this.summary);
    let left = this.left;
    for (const group of groups) {
      if (left.tokens <= this.input.limits.wall) break;
      taken.push(group);
      planned = minus(planned, group.size);
      if (!group.isUnshown) planned = plus(planned, group.kept);
      left = taken.length === 1 && group.isSummary ? this.rewritten(group) : planned;
    }
    if (left.tokens >= tokens) return;
    this.covered.push(...taken.filter((group) => !group.isUnshown));
    this.leftOut.push(...taken.filter((group) => group.isUnshown));
    this.left = left;
  }

  /** A plan is an upper bound: of a summary that would only be written anew it is not known that it becomes shorter. */
  private rewritten(group: Group): Size {
    const [part] = group.parts;
    const [summary] = part ? summariesOf(part, this.input.entries) : [];
    if (!part || !summary) return this.left;
    const alone = new Cut(this.input, this.left, this.words);
    alone.covered.push(group);
    const plan = alone.result();
    const { content } = part.message;
    const words =
      plan && `${content?.slice(0, content.length - summary.content.length)}${this.input.write(plan)}`;
    return minus(
      this.left,
      minus(this.measure(part.message), this.measure({ ...part.message, content: words })),
    );
  }

  result(): ReductionPlan | null {
    const { entries, history, tail, isUnshown } = this.input;
    const covered = indexesOf(this.covered);
    const leftOut = indexesOf(this.leftOut);
    const shortened = [...this.shortened]
      .filter((index) => !covered.has(index) && !leftOut.has(index))
      .sort((a, b) => a - b);
    if (covered.size + leftOut.size + shortened.length === 0) return null;
    const standing = new Set([...history, ...tail].flatMap((part) => stoodFor(part, entries)));
    const isFree = (index: number) => !standing.has(index) && !isUnshown(index);
    const earlier = this.covered.flatMap(({ parts }) => parts.flatMap((part) => summariesOf(part, entries)));
    for (const summary of earlier) for (const index of expand(summary.entries)) covered.add(index);
    for (const summary of earlier) for (const index of expand(summary.leftOut ?? [])) leftOut.add(index);
    return {
      covered: rangesOf(covered, (index) => isFree(index) && !leftOut.has(index)),
      leftOut: rangesOf(leftOut, (index) => isFree(index) && !covered.has(index)),
      shortened,
      previewLength: this.previewLength,
      newestOfAPerson: newestOfAPerson(this.input),
      isRewrite: this.covered.length === 1 && this.covered[0]?.isSummary === true,
      ...this.words,
    };
  }
}

/** Smaller in each measure that is exceeded, and not too large in another. */
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
