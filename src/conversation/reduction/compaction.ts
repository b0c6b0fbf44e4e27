import { NO_LIMIT } from '../state/budget.ts';
import { PREVIEW_LENGTH } from '../text/text.ts';
import type { ViewMessage, ViewPart } from '../view/view.ts';
import {
  CHARS_PER_TOKEN,
  type Group,
  groupsOf,
  isOver,
  ReductionBuilder,
  type ReductionInput,
  type ReductionPlan,
  SHORTEST,
  type Size,
  SUMMARY_OVERHEAD,
  type SummaryBudget,
  sizeOf,
} from './reduction-builder.ts';

/**
 * Plans what to take out of an agent's view that is too large for its model.
 *
 * COMPACTION-1 Nothing is taken until a limit is exceeded. Then the view shrinks well below it, so that it stays
 *              unchanged for many calls and provider caches work.
 * COMPACTION-2 The order: files, the oldest first; old results to previews; the oldest whole groups into one summary; entries that the agent was
 *              never shown, left out by name; the running turn's older finished groups, in the same two ways. If the
 *              request still does not fit the window: the newest group's results to previews, the largest first; then
 *              everything that may be taken, the oldest first, a lone summary too if it becomes shorter.
 * COMPACTION-3 A group is an own message with its calls and all their results, or any one other message. No group is split.
 * COMPACTION-4 Never taken: prefix, trigger, open groups, the calls of the turn's newest group. The newest message of a
 *              person goes last. The summary quotes it in full, or as much of it as fits the window; it is left out only
 *              if the agent was never shown it and no request could be sent otherwise.
 *              Files of the trigger, and those that no request contained yet, are taken only if all files are too many for one
 *              request, or if it could not be sent otherwise.
 * COMPACTION-5 Pure and finite: every plan makes the view smaller; otherwise there is no plan.
 */

/** Size of a summary in tokens: this share of the window without the fixed part, within these bounds. */
const SUMMARY_SHARE = 0.2;
const SUMMARY_BOUNDS = { least: 60, most: 6_000 };
/** Null: no reduction is needed, or none is possible. */
export function planReduction(input: ReductionInput): ReductionPlan | null {
  const size = sizeOf([...input.history, ...input.tail], input.tokensOf);
  return isOver(size, input.limits) || hasTooManyFiles(input) ? plan(input, size) : null;
}

/** The plan of the next reduction, as if the view exceeded its limit now. */
export function planNextReduction(input: ReductionInput): ReductionPlan | null {
  return plan(input, sizeOf([...input.history, ...input.tail], input.tokensOf));
}

function plan(input: ReductionInput, size: Size): ReductionPlan | null {
  const steps = input.tail.filter((part) => part.kind === 'turn' || part.kind === 'summary');
  // COMPACTION-4: no request has contained yet what follows the newest own message, its results included.
  const newest = Math.max(
    0,
    steps.findLastIndex(({ message }) => message.role === 'assistant'),
  );
  const latest = steps.slice(newest);
  const older = [...input.history, ...steps.slice(0, newest)];
  const files = dropFiles(input, size, older);
  if (files.length > 0) return ofFiles(files);
  if (!isOver(size, input.limits) && hasTooManyFiles(input)) return null;
  const words = summaryBudget(input, latest);
  const groups = groupsOf(input, input.history, words.quotedTokens);
  const finished = groupsOf(input, steps.slice(0, newest), words.quotedTokens);
  const taken = { input, size, words, groups, finished, latest };
  const cuts = reduceToTarget(taken) ?? reduceUntilSent(taken);
  if (cuts === null) return ofFiles(dropLastFiles(input, size, older));
  return cuts.map((cut) => cut.result()).find((result) => result !== null) ?? null;
}

/** The parts of a view that may be taken, and its size. */
interface ReducibleView {
  readonly input: ReductionInput;
  readonly size: Size;
  readonly words: SummaryBudget;
  /** Groups of the history, and finished groups of the turn; `latest` was in no request yet. */
  readonly groups: readonly Group[];
  readonly finished: readonly Group[];
  readonly latest: readonly ViewPart[];
}

/** Reduces to the target. Null: the request would still not fit the window. */
function reduceToTarget(view: ReducibleView): ReductionBuilder[] | null {
  const { input, size, words, groups, finished, latest } = view;
  const history = new ReductionBuilder(input, size, words);
  history.shorten(partsOf(groups));
  history.cover(groups);
  history.leaveOut(groups);
  const turn = new ReductionBuilder(input, history.left, words);
  if (isOver(history.left, input.limits)) {
    turn.shorten(partsOf(finished));
    turn.cover(finished);
  }
  const previews = turn.canBeSent ? turn : shortenLatest(input, turn.left, words, latest);
  const last = new ReductionBuilder(input, previews.left, words, history.hasSummary);
  if (!previews.canBeSent) last.leaveOut(groups, true);
  return last.canBeSent ? [history, turn, previews, last] : null;
}

/** Takes whatever may be taken. Null: the request would still not fit the window (COMPACTION-5). */
function reduceUntilSent(view: ReducibleView): ReductionBuilder[] | null {
  const { input, size, words, groups, finished, latest } = view;
  const history = new ReductionBuilder(input, size, words);
  history.takeUntilSent(groups);
  const turn = new ReductionBuilder(input, history.left, words);
  turn.takeUntilSent(finished);
  const previews = turn.canBeSent ? turn : shortenLatest(input, turn.left, words, latest);
  return previews.canBeSent ? [history, turn, previews] : null;
}

function shortenLatest(
  input: ReductionInput,
  left: Size,
  words: SummaryBudget,
  latest: readonly ViewPart[],
): ReductionBuilder {
  const largestFirst = latest.toSorted((a, b) => lengthOf(b) - lengthOf(a));
  const previews = new ReductionBuilder(input, left, words);
  previews.shortenUntilSent(largestFirst, PREVIEW_LENGTH);
  if (previews.canBeSent) return previews;
  const mere = new ReductionBuilder(input, left, words);
  mere.shortenUntilSent(largestFirst, 0);
  return mere;
}

/**
 * The budget of summaries, one in the history and one in the turn: the window minus the parts that are never removed.
 * The hard limit on characters applies, too: a token has at most four.
 */
function summaryBudget(
  { tail, limits, tokensOf }: ReductionInput,
  latest: readonly ViewPart[],
): SummaryBudget {
  const { least, most } = SUMMARY_BOUNDS;
  const never = tail.filter(({ kind }) => kind !== 'turn' && kind !== 'summary');
  const shortest = latest.map(({ message }) =>
    message.role === 'tool' ? { ...message, content: message.content?.slice(0, SHORTEST) ?? null } : message,
  );
  const rest =
    limits.windowTokens -
    sizeOf(never, tokensOf).tokens -
    shortest.reduce((sum, message) => sum + tokensOf(message), 0);
  const share = Math.min(
    SUMMARY_SHARE * Math.min(limits.windowTokens, limits.chars.max / CHARS_PER_TOKEN),
    rest / 4,
  );
  const summaryTokens = Math.min(most, Math.max(least, Math.floor(share)));
  return { summaryTokens, quotedTokens: Math.max(least, rest - 2 * (summaryTokens + SUMMARY_OVERHEAD)) };
}

const partsOf = (groups: readonly Group[]): ViewPart[] => groups.flatMap(({ parts }) => [...parts]);
const lengthOf = ({ message }: ViewPart): number => message.content?.length ?? 0;

/** A size that counts the files that a request would contain. */
interface FileSize {
  readonly tokens: number;
  readonly files: number;
  readonly bytes: number;
}

/** Files of the whole view exceed what one request may contain. */
function hasTooManyFiles(input: ReductionInput): boolean {
  return isOverFiles(sizeOfAll(input, 0), input);
}

function isOverFiles({ files, bytes }: FileSize, { limits }: ReductionInput): boolean {
  const { files: most = NO_LIMIT, fileBytes = NO_LIMIT } = limits;
  return files > most.max || bytes > fileBytes.max;
}

function sizeOfAll({ history, tail, filesIn = NO_FILES }: ReductionInput, tokens: number): FileSize {
  const files = [...history, ...tail].flatMap(({ message }) => (message.files ? filesIn(message) : []));
  return { tokens, files: files.length, bytes: files.reduce((sum, { size }) => sum + size, 0) };
}

const NO_FILES = () => [];

/**
 * The entries whose files are taken, the oldest first, until each exceeded measure is at its target. `older`: the parts that were in
 * a request; files of the others follow only until no limit of files is exceeded.
 */
function dropFiles(input: ReductionInput, size: Size, older: readonly ViewPart[]): number[] {
  const { limits } = input;
  const { tokens } = size;
  const { files: most = NO_LIMIT, fileBytes = NO_LIMIT } = limits;
  const before = sizeOfAll(input, tokens);
  const hasTooMany = isOverFiles(before, input);
  const isForTokens = tokens > limits.tokens.max || !(hasTooMany || isOver(size, limits));
  const isDone = (left: FileSize) =>
    (!isForTokens || left.tokens <= limits.tokens.target) &&
    (!hasTooMany || (left.files <= most.target && left.bytes <= fileBytes.target));
  const first = drop(input, before, older, isDone);
  const rest = partsBeside(input, older);
  return [...first.entries, ...drop(input, first.left, rest, (left) => !isOverFiles(left, input)).entries];
}

/** Files of the trigger, and those that no request contained yet: only as many as needed to fit the window. */
function dropLastFiles(input: ReductionInput, { tokens }: Size, older: readonly ViewPart[]): number[] {
  const fits = (left: FileSize) => left.tokens <= input.limits.windowTokens;
  return drop(input, sizeOfAll(input, tokens), partsBeside(input, older), fits).entries;
}

function partsBeside({ tail }: ReductionInput, older: readonly ViewPart[]): ViewPart[] {
  return tail.filter((part) => !older.includes(part));
}

function drop(
  { tokensOf, filesIn = NO_FILES }: ReductionInput,
  before: FileSize,
  parts: readonly ViewPart[],
  isDone: (left: FileSize) => boolean,
): { readonly entries: number[]; readonly left: FileSize } {
  const entries: number[] = [];
  let left = before;
  for (const { message, entries: owners } of parts) {
    if (isDone(left)) break;
    const shown = message.files ? filesIn(message) : [];
    if (shown.length === 0) continue;
    entries.push(...owners);
    left = {
      tokens: left.tokens - tokensOf(message) + tokensOf(withoutFiles(message)),
      files: left.files - shown.length,
      bytes: left.bytes - shown.reduce((sum, { size }) => sum + size, 0),
    };
  }
  return { entries, left };
}

function withoutFiles(message: ViewMessage): ViewMessage {
  return { ...message, files: message.files?.map((file) => ({ ...file, isDropped: true as const })) };
}

/** Null: there are none. */
function ofFiles(entries: readonly number[]): ReductionPlan | null {
  if (entries.length === 0) return null;
  return {
    covered: [],
    leftOut: [],
    shortened: [],
    previewLength: 0,
    withoutFiles: [...new Set(entries)].sort((one, other) => one - other),
    newestOfAPerson: null,
    quotedTokens: 0,
    summaryTokens: 0,
    isRewrite: false,
  };
}
