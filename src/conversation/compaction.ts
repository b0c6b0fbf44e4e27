import type { Limit } from './budget.ts';
import type { Entry, EntryOf } from './entry.ts';
import { PREVIEW_LENGTH, previewOf } from './preview.ts';
import { expand, type Ranges, rangesOf } from './ranges.ts';
import type { ViewMessage, ViewPart } from './view.ts';

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

export interface ReductionInput {
  readonly entries: readonly Entry[];
  /** The view's parts: of the history, and block, marker, trigger and what the turn did. */
  readonly history: readonly ViewPart[];
  readonly tail: readonly ViewPart[];
  readonly isUnshown: (index: number) => boolean;
  readonly isShortened: (index: number) => boolean;
  readonly limits: ViewLimits;
  /** Estimated tokens of a message. */
  readonly tokensOf: (message: ViewMessage) => number;
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

/** A summary may have this share of what the view may hold, within these bounds, in tokens. */
const SUMMARY_SHARE = 0.15;
const SUMMARY_BOUNDS = { least: 60, most: 6_000 };
/** Tokens of a summary beside its text, and of a preview beside what it shows. */
const SUMMARY_OVERHEAD = 30;
/** A result this much longer than its preview is worth shortening, in code units. */
const WORTH_SHORTENING = 2 * PREVIEW_LENGTH;

/** Of a view or a part of it. */
export interface Size {
  readonly tokens: number;
  readonly messages: number;
  readonly chars: number;
}

interface Group {
  readonly parts: readonly ViewPart[];
  readonly size: Size;
  readonly isUnshown: boolean;
  readonly isNewestOfAPerson: boolean;
  readonly isSummary: boolean;
}

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

/** What a view holds, by every measure. */
export function sizeOf(parts: readonly ViewPart[], tokensOf: (message: ViewMessage) => number): Size {
  let tokens = 0;
  let chars = 0;
  for (const { message } of parts) {
    tokens += tokensOf(message);
    chars += message.content?.length ?? 0;
  }
  return { tokens, messages: parts.length, chars };
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
    const finished = groupsOf(input, stepsOf(input.tail)).slice(0, -1); // C4
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
    this.summary = { tokens: tokens + SUMMARY_OVERHEAD, messages: 1, chars: 4 * (tokens + SUMMARY_OVERHEAD) };
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
      if (group.isNewestOfAPerson && !isOver(left, limits)) break; // C4
      found.push(group);
      left = minus(left, group.isNewestOfAPerson ? { tokens: 0, messages: 1, chars: 0 } : group.size);
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
    const standing = new Set([...history, ...tail].flatMap((part) => [...part.entries]));
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

function summaryTokens({ tokens }: ViewLimits): number {
  const { least, most } = SUMMARY_BOUNDS;
  return Number.isFinite(tokens.max)
    ? Math.min(most, Math.max(least, Math.floor(tokens.max * SUMMARY_SHARE)))
    : most;
}

/** Smaller in each measure that is exceeded, and not too large in another. */
function isBetter(after: Size, before: Size, limits: ViewLimits): boolean {
  return (['tokens', 'messages', 'chars'] as const).every((measure) =>
    before[measure] > limits[measure].max
      ? after[measure] < before[measure]
      : after[measure] <= limits[measure].max,
  );
}

function plus(a: Size, b: Size): Size {
  return { tokens: a.tokens + b.tokens, messages: a.messages + b.messages, chars: a.chars + b.chars };
}

function minus(a: Size, b: Size): Size {
  return { tokens: a.tokens - b.tokens, messages: a.messages - b.messages, chars: a.chars - b.chars };
}

/** C3 */
function groupsOf(input: ReductionInput, parts: readonly ViewPart[]): Group[] {
  const newest = newestOfAPerson(input);
  const grouped: ViewPart[][] = [];
  for (const part of parts) {
    if (part.message.role === 'tool') grouped.at(-1)?.push(part);
    else grouped.push([part]);
  }
  return grouped.map((group) => ({
    parts: group,
    size: sizeOf(group, input.tokensOf),
    isUnshown: group.some((part) => part.entries.some(input.isUnshown)),
    isNewestOfAPerson: group.some((part) => newest !== null && part.entries.includes(newest)),
    isSummary: group.some((part) => part.kind === 'summary'),
  }));
}

/** What the running turn did so far. */
function stepsOf(tail: readonly ViewPart[]): ViewPart[] {
  return tail.filter((part) => part.kind === 'turn' || part.kind === 'summary');
}

/** The newest message of a person that the view holds; null: it holds none, or only what a summary quotes. */
function newestOfAPerson({ entries, history, tail }: ReductionInput): number | null {
  for (const parts of [tail, history]) {
    const found = parts.findLast((part) => part.entries.some((index) => isOfAPerson(entries[index])));
    if (found) return found.entries.findLast((index) => isOfAPerson(entries[index])) ?? null;
  }
  return null;
}

function isOfAPerson(entry: Entry | undefined): boolean {
  return entry?.type === 'message' && entry.author.kind === 'person';
}

function summariesOf(part: ViewPart, entries: readonly Entry[]): EntryOf<'summary'>[] {
  return part.entries.flatMap((index) => {
    const entry = entries[index];
    return entry?.type === 'summary' ? [entry] : [];
  });
}

function indexesOf(groups: readonly Group[]): Set<number> {
  return new Set(groups.flatMap(({ parts }) => parts.flatMap((part) => [...part.entries])));
}
