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
 * C3 A group is an own message with its calls and all their results, or any one other message: none is ever split.
 * C4 Never taken: prefix, trigger, open groups, the turn's newest group. The newest message of a person goes last, and
 *    then stands in the summary word for word.
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
  readonly isShortened: (index: number) => boolean;
  readonly limits: ViewLimits;
}

export interface ReductionPlan {
  /** What a summary is to stand for, an earlier one's included (V17). */
  readonly covered: Ranges;
  /** What the agent was never shown, and never will be. */
  readonly leftOut: Ranges;
  /** Own results that become previews. */
  readonly shortened: readonly number[];
  /** The newest message of a person in the view: if it is covered, it stands in the summary in full (C4). */
  readonly newestOfAPerson: number | null;
  /** Estimated tokens that the summary's text may have. */
  readonly summaryTokens: number;
}

/** A summary may have this share of what the window holds beside the fixed part, within these bounds, in tokens. */
const SUMMARY_SHARE = 0.2;
const SUMMARY_BOUNDS = { least: 60, most: 6_000 };
/** Tokens of a summary beside its text, and of a preview beside what it shows. */
const SUMMARY_OVERHEAD = 30;
const CHARS_PER_TOKEN = 4;
/** A result this much longer than its preview is worth shortening, in code units. */
const WORTH_SHORTENING = 2 * PREVIEW_LENGTH;

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
  const history = new Cut(input, size);
  const groups = groupsOf(input, input.history);
  history.shorten(groups);
  history.cover(groups);
  history.leaveOut(groups);
  const turn = new Cut(input, history.left);
  if (isOver(history.left, input.limits)) {
    const steps = groupsOf(input, stepsOf(input.tail));
    // C4: what follows the newest own message, its results included, no request has held yet.
    const newest = steps.findLastIndex(({ parts }) => parts[0]?.message.role === 'assistant');
    const finished = steps.slice(0, Math.max(0, newest));
    turn.shorten(finished);
    turn.cover(finished);
  }
  if (turn.left.tokens > input.limits.wall) return null; // in vain: it would not fit even so (C5)
  return history.result() ?? turn.result();
}

/** One reduction in the making; `left` is what the view would hold. */
class Cut {
  left: Size;
  private readonly covered: Group[] = [];
  private readonly leftOut: Group[] = [];
  private readonly shortened = new Set<number>();
  private readonly input: ReductionInput;
  private readonly summary: Size;

  constructor(input: ReductionInput, size: Size) {
    this.input = input;
    this.left = size;
    const tokens = summaryTokens(input.limits);
    const all = tokens + SUMMARY_OVERHEAD;
    this.summary = { tokens: all, messages: 1, chars: CHARS_PER_TOKEN * all };
  }

  shorten(groups: readonly Group[]): void {
    for (const { message, entries } of groups.flatMap(({ parts }) => [...parts])) {
      if (isAtTarget(this.left, this.input.limits)) return;
      const [index] = entries;
      if (index === undefined || !this.isLong(message, index)) continue;
      const preview = { ...message, content: previewOf(message.content ?? '', index) };
      this.left = minus(this.left, minus(this.measure(message), this.measure(preview)));
      this.shortened.add(index);
    }
  }

  private isLong(message: ViewMessage, index: number): boolean {
    if (message.role !== 'tool' || this.input.isShortened(index)) return false;
    return (message.content?.length ?? 0) > PREVIEW_LENGTH + WORTH_SHORTENING;
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
  }

  /** What was never shown stands in no summary (V17): it is named as left out, and only as much as must be. */
  leaveOut(groups: readonly Group[]): void {
    for (const group of groups) {
      if (!isOver(this.left, this.input.limits)) return;
      if (!group.isUnshown || group.isNewestOfAPerson) continue;
      if (this.covered.length === 0 && this.leftOut.length === 0) this.left = plus(this.left, this.summary);
      this.leftOut.push(group);
      this.left = minus(this.left, group.size);
    }
  }

  result(): ReductionPlan | null {
    const { entries, history, tail, limits, isUnshown } = this.input;
    const covered = indexesOf(this.covered);
    const leftOut = indexesOf(this.leftOut);
    const shortened = [...this.shortened].filter((index) => !covered.has(index) && !leftOut.has(index));
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
      newestOfAPerson: newestOfAPerson(this.input),
      summaryTokens: summaryTokens(limits),
    };
  }
}

/** Of the hard limit on characters, too: a token is four of them at most. */
function summaryTokens({ wall, chars }: ViewLimits): number {
  const { least, most } = SUMMARY_BOUNDS;
  const share = Math.floor(Math.min(wall, chars.max / CHARS_PER_TOKEN) * SUMMARY_SHARE);
  return Math.min(most, Math.max(least, share));
}

/** Smaller in each measure that is exceeded, and not too large in another. */
function isBetter(after: Size, before: Size, limits: ViewLimits): boolean {
  return (['tokens', 'messages', 'chars'] as const).every((measure) =>
    before[measure] > limits[measure].max
      ? after[measure] < before[measure]
      : after[measure] <= limits[measure].max,
  );
}

/** What the running turn did so far. */
function stepsOf(tail: readonly ViewPart[]): ViewPart[] {
  return tail.filter((part) => part.kind === 'turn' || part.kind === 'summary');
}

function indexesOf(groups: readonly Group[]): Set<number> {
  return new Set(groups.flatMap(({ parts }) => parts.flatMap((part) => [...part.entries])));
}
