import type { Limit } from './budget.ts';
import { PREVIEW_LENGTH, previewOf } from './preview.ts';
import { expand, type Ranges, rangesOf } from './ranges.ts';
import type { ViewMessage, ViewPart } from './view.ts';
import {
  type Group,
  type Grouping,
  groupsOf,
  minus,
  newestOfAPerson,
  plus,
  type Size,
  sizeOf,
  stoodFor,
  summariesOf,
} from './view-groups.ts';

/**
 * What is taken out of an agent's view when it has become too large for its model, and in which order.
 *
 * C1 Nothing happens until a limit is exceeded; then the view shrinks well below it, so that the cut stays for many
 *    calls and provider caches keep hitting.
 * C2 In this order: old results to previews; the oldest whole groups into one summary; what the agent was never shown
 *    and does not fit, left out by name; the running turn's older finished groups, in the same two ways.
 *    Only where it would not be sent else: the newest group's results to previews, the largest first.
 * C3 A group is an own message with its calls and all their results, or any one other message: none is ever split.
 * C4 Never taken: prefix, trigger, open groups, the calls of the turn's newest group. The newest message of a person goes
 *    last, and then stands in the summary word for word, or as much of it as the window holds beside what is never taken;
 *    it is left out only where the agent was never shown it and nothing could be sent else.
 * C5 Pure, and it ends: whatever is planned makes the view smaller, else nothing is planned.
 */

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
  /** The newest message of a person in the view: if it is covered, the summary quotes it (C4). */
  readonly newestOfAPerson: number | null;
  /** Estimated tokens that this quotation may have. */
  readonly quotedTokens: number;
  /** Estimated tokens that the summary's text may have. */
  readonly summaryTokens: number;
}

/** A summary may have this share of what the window holds beside the fixed part, within these bounds, in tokens. */
const SUMMARY_SHARE = 0.2;
const SUMMARY_BOUNDS = { least: 60, most: 6_000 };
/** Tokens of a summary beside its text, and of a preview beside what it shows. */
const SUMMARY_OVERHEAD = 30;
const CHARS_PER_TOKEN = 4;
/** A result this many times as long as its preview is worth shortening, and none that is no longer than what names it. */
const WORTH_SHORTENING = 3;
const SHORTEST = 60;

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

/** Null: nothing needs to be taken, or nothing can be. */
export function planReduction(input: ReductionInput): ReductionPlan | null {
  const size = sizeOf([...input.history, ...input.tail], input.tokensOf);
  return isOver(size, input.limits) ? plan(input, size) : null;
}

/** What the next reduction would take, were the view over its limit now. */
export function planNextReduction(input: ReductionInput): ReductionPlan | null {
  return plan(input, sizeOf([...input.history, ...input.tail], input.tokensOf));
}

function plan(input: ReductionInput, size: Size): ReductionPlan | null {
  const steps = stepsOf(input.tail);
  // C4: what follows the newest own message, its results included, no request has held yet.
  const newest = Math.max(
    0,
    steps.findLastIndex(({ message }) => message.role === 'assistant'),
  );
  const latest = steps.slice(newest);
  const words = roomForWords(input, latest);
  const groups = groupsOf(input, input.history, words.quotedTokens);
  const fits = ({ left }: Cut) => left.tokens <= input.limits.wall;
  const history = new Cut(input, size, words);
  history.shorten(partsOf(groups));
  history.cover(groups);
  history.leaveOut(groups);
  const turn = new Cut(input, history.left, words);
  if (isOver(history.left, input.limits)) {
    const finished = groupsOf(input, steps.slice(0, newest), words.quotedTokens);
    turn.shorten(partsOf(finished));
    turn.cover(finished);
  }
  const previews = fits(turn) ? turn : shortenLatest(input, turn.left, words, latest);
  const last = new Cut(input, previews.left, words, history.hasSummary);
  if (!fits(previews)) last.leaveOut(groups, true);
  if (!fits(last)) return null; // in vain: it would not be sent even so (C5)
  return history.result() ?? turn.result() ?? previews.result() ?? last.result();
}

function shortenLatest(input: ReductionInput, left: Size, words: Words, latest: readonly ViewPart[]): Cut {
  const largestFirst = latest.toSorted((a, b) => lengthOf(b) - lengthOf(a));
  const previews = new Cut(input, left, words);
  previews.shortenUntilSent(largestFirst, PREVIEW_LENGTH);
  if (previews.left.tokens <= input.limits.wall) return previews;
  const mere = new Cut(input, left, words);
  mere.shortenUntilSent(largestFirst, 0);
  return mere;
}

/** One reduction in the making; `left` is what the view would hold. */
class Cut {
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
      if (group.isNewestOfAPerson && !group.isSummary && !isOver(left, limits)) break; // C4
      found.push(group);
      left = plus(minus(left, group.size), group.kept);
    }
    // What is written must be smaller than what it replaces (C5).
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
      ...this.words,
    };
  }
}

/** What a summary and its quotation of the newest message of a person may have, in tokens. */
interface Words {
  readonly summaryTokens: number;
  readonly quotedTokens: number;
}

/** What the window holds beside what is never taken, for one in the history and one in the turn. Of the hard limit on characters, too: a token is four of them at most. */
function roomForWords({ tail, limits, tokensOf }: ReductionInput, latest: readonly ViewPart[]): Words {
  const { least, most } = SUMMARY_BOUNDS;
  const never = tail.filter(({ kind }) => kind !== 'turn' && kind !== 'summary');
  const shortest = latest.map(({ message }) =>
    message.role === 'tool' ? { ...message, content: message.content?.slice(0, SHORTEST) ?? null } : message,
  );
  const rest =
    limits.wall -
    sizeOf(never, tokensOf).tokens -
    shortest.reduce((sum, message) => sum + tokensOf(message), 0);
  const share = Math.min(SUMMARY_SHARE * Math.min(limits.wall, limits.chars.max / CHARS_PER_TOKEN), rest / 4);
  const summaryTokens = Math.min(most, Math.max(least, Math.floor(share)));
  return { summaryTokens, quotedTokens: Math.max(least, rest - 2 * (summaryTokens + SUMMARY_OVERHEAD)) };
}

/** Smaller in each measure that is exceeded, and not too large in another. */
function isBetter(after: Size, before: Size, limits: ViewLimits): boolean {
  return (['tokens', 'messages', 'chars'] as const).every((measure) =>
    before[measure] > limits[measure].max
      ? after[measure] < before[measure]
      : after[measure] <= limits[measure].max,
  );
}

const partsOf = (groups: readonly Group[]): ViewPart[] => groups.flatMap(({ parts }) => [...parts]);
const lengthOf = ({ message }: ViewPart): number => message.content?.length ?? 0;

/** What the running turn did so far. */
function stepsOf(tail: readonly ViewPart[]): ViewPart[] {
  return tail.filter((part) => part.kind === 'turn' || part.kind === 'summary');
}

function indexesOf(groups: readonly Group[]): Set<number> {
  return new Set(groups.flatMap(({ parts }) => parts.flatMap((part) => [...part.entries])));
}
