import { PREVIEW_LENGTH } from '../text/text.ts';
import type { ViewPart } from '../view/view.ts';
import {
  CHARS_PER_TOKEN,
  Cut,
  isOver,
  type ReductionInput,
  type ReductionPlan,
  SHORTEST,
  SUMMARY_OVERHEAD,
  type Words,
} from './cut.ts';
import { type Group, groupsOf, type Size, sizeOf } from './view-groups.ts';

/**
 * What is taken out of an agent's view when it has become too large for its model, and in which order.
 *
 * COMPACTION-1 Nothing happens until a limit is exceeded; then the view shrinks well below it, so that the cut stays for many
 *    calls and provider caches keep hitting.
 * COMPACTION-2 In this order: old results to previews; the oldest whole groups into one summary; what the agent was never shown
 *    and does not fit, left out by name; the running turn's older finished groups, in the same two ways.
 *    Only where it would not be sent else: the newest group's results to previews, the largest first; then whatever may
 *    be taken, the oldest first, a lone summary too where its words become fewer.
 * COMPACTION-3 A group is an own message with its calls and all their results, or any one other message: none is ever split.
 * COMPACTION-4 Never taken: prefix, trigger, open groups, the calls of the turn's newest group. The newest message of a person goes
 *    last, and then stands in the summary word for word, or as much of it as the window holds beside what is never taken;
 *    it is left out only where the agent was never shown it and nothing could be sent else.
 * COMPACTION-5 Pure, and it ends: whatever is planned makes the view smaller, else nothing is planned.
 */

/** A summary may have this share of what the window holds beside the fixed part, within these bounds, in tokens. */
const SUMMARY_SHARE = 0.2;
const SUMMARY_BOUNDS = { least: 60, most: 6_000 };
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
  // COMPACTION-4: what follows the newest own message, its results included, no request has held yet.
  const newest = Math.max(
    0,
    steps.findLastIndex(({ message }) => message.role === 'assistant'),
  );
  const latest = steps.slice(newest);
  const words = roomForWords(input, latest);
  const groups = groupsOf(input, input.history, words.quotedTokens);
  const finished = groupsOf(input, steps.slice(0, newest), words.quotedTokens);
  const taken = { input, size, words, groups, finished, latest };
  const cuts = asNeeded(taken) ?? untilSent(taken);
  return cuts?.map((cut) => cut.result()).find((result) => result !== null) ?? null;
}

/** What can be taken out of a view, and from what size on. */
interface Takeable {
  readonly input: ReductionInput;
  readonly size: Size;
  readonly words: Words;
  /** Of the history, and of the turn but for `latest`, which no request has held yet. */
  readonly groups: readonly Group[];
  readonly finished: readonly Group[];
  readonly latest: readonly ViewPart[];
}

/** Down to the target. Null: it would not be sent even so. */
function asNeeded({ input, size, words, groups, finished, latest }: Takeable): Cut[] | null {
  const history = new Cut(input, size, words);
  history.shorten(partsOf(groups));
  history.cover(groups);
  history.leaveOut(groups);
  const turn = new Cut(input, history.left, words);
  if (isOver(history.left, input.limits)) {
    turn.shorten(partsOf(finished));
    turn.cover(finished);
  }
  const previews = turn.canBeSent ? turn : shortenLatest(input, turn.left, words, latest);
  const last = new Cut(input, previews.left, words, history.hasSummary);
  if (!previews.canBeSent) last.leaveOut(groups, true);
  return last.canBeSent ? [history, turn, previews, last] : null;
}

/** Whatever may be taken. Null: in vain, for it would not be sent even so (COMPACTION-5). */
function untilSent({ input, size, words, groups, finished, latest }: Takeable): Cut[] | null {
  const history = new Cut(input, size, words);
  history.takeUntilSent(groups);
  const turn = new Cut(input, history.left, words);
  turn.takeUntilSent(finished);
  const previews = turn.canBeSent ? turn : shortenLatest(input, turn.left, words, latest);
  return previews.canBeSent ? [history, turn, previews] : null;
}

function shortenLatest(input: ReductionInput, left: Size, words: Words, latest: readonly ViewPart[]): Cut {
  const largestFirst = latest.toSorted((a, b) => lengthOf(b) - lengthOf(a));
  const previews = new Cut(input, left, words);
  previews.shortenUntilSent(largestFirst, PREVIEW_LENGTH);
  if (previews.canBeSent) return previews;
  const mere = new Cut(input, left, words);
  mere.shortenUntilSent(largestFirst, 0);
  return mere;
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

const partsOf = (groups: readonly Group[]): ViewPart[] => groups.flatMap(({ parts }) => [...parts]);
const lengthOf = ({ message }: ViewPart): number => message.content?.length ?? 0;

/** What the running turn did so far. */
function stepsOf(tail: readonly ViewPart[]): ViewPart[] {
  return tail.filter((part) => part.kind === 'turn' || part.kind === 'summary');
}
