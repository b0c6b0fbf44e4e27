import {
  type AgentView,
  agentState,
  type ConversationState,
  type Cost,
  type Entry,
  expand,
  type LeftOut,
  type NextReduction,
  NOTHING_USED,
  type ReductionStatus,
  type ReportedPart,
  usedTogether,
  usedWith,
  windowLimit,
} from '../../conversation/index.ts';
import type { Assembled, ModelProfile } from '../requests/assemble.ts';
import { messageTokens } from '../requests/estimate.ts';
import { needsReduction, nextReductionOf, type Reducible } from '../requests/reduce.ts';

/** The report on one request: which entries it includes, which it leaves out, and the tokens of each part. */

/** The entries of the log that a request includes, and the status of the others that this agent knows. */
export interface Holdings {
  readonly included: readonly number[];
  readonly leftOut: readonly LeftOutRange[];
  readonly shortened: readonly number[];
  readonly waiting: readonly number[];
}

/** Adjacent known entries that were left out for the same reason. */
interface LeftOutRange extends LeftOut {
  readonly indexes: readonly number[];
}

export function holdingsOf(reducible: Reducible, length: number): Holdings {
  const { entries, agentView, assembled } = reducible;
  const { knowledge } = agentView;
  const shownEntries = new Set(assembled.parts.flatMap((part) => [...part.entries]));
  const known = knownBy(entries.slice(0, length), agentView);
  const waiting = known.filter((index) => knowledge.isWaiting(index));
  const isLeftOut = (index: number) => !shownEntries.has(index) && !knowledge.isWaiting(index);
  const included = [...shownEntries].filter((index) => index < length).sort((a, b) => a - b);
  return {
    included,
    leftOut: leftOutRanges(known, isLeftOut, reducible, shownEntries),
    shortened: included.filter((index) => knowledge.previewLength(index) !== undefined),
    waiting,
  };
}

/** What this agent can be shown of others, its own messages, and the results of its calls. */
function knownBy(entries: readonly Entry[], { knowledge }: AgentView): number[] {
  return entries
    .filter((entry) => {
      if (entry.type !== 'message' || entry.role !== 'tool')
        return knowledge.knows(entry) || knowledge.mayContain(entry);
      const asked = entry.call && entries[entry.call.index];
      const isCounted =
        entry.call && knowledge.resultsOf(entry.call.index)[entry.call.position] === entry.index;
      return asked !== undefined && isCounted === true && knowledge.knows(asked);
    })
    .map((entry) => entry.index);
}

/** `by` is the summary that replaces the entries, else the one that left them out. */
function leftOutRanges(
  known: readonly number[],
  isLeftOut: (index: number) => boolean,
  { entries, agentView }: Reducible,
  shownEntries: ReadonlySet<number>,
): LeftOutRange[] {
  const reasons = new Map<number, Pick<LeftOut, 'how' | 'by'>>();
  for (const entry of entries) {
    if (entry.type !== 'summary' || entry.agent !== agentView.knowledge.agent) continue;
    for (const index of expand(entry.leftOut ?? [])) reasons.set(index, { how: 'left_out', by: entry.index });
    if (!shownEntries.has(entry.index)) continue;
    for (const index of expand(entry.entries)) reasons.set(index, { how: 'summed_up', by: entry.index });
  }
  const rows: LeftOutRange[] = [];
  let last: LeftOutRange | null = null;
  for (const index of known) {
    const reason: Pick<LeftOut, 'how' | 'by'> | null = isLeftOut(index)
      ? (reasons.get(index) ?? { how: 'empty' })
      : null;
    if (last && reason && last.how === reason.how && last.by === reason.by) rows.pop();
    else last = null;
    if (reason === null) continue;
    const indexes: readonly number[] = [...(last?.indexes ?? []), index];
    const from: number = last?.from ?? index;
    last = { from, to: index, ...reason, recall: { from, to: index }, indexes };
    rows.push(last);
  }
  return rows;
}

export function statusOf(reducible: Reducible, { shortened }: Holdings): ReductionStatus {
  const { assembled } = reducible;
  if (assembled.fault?.code === 'CONTEXT_STILL_TOO_LARGE') return 'failed';
  if (needsReduction(reducible) && nextReductionOf(reducible) === null) return 'no_effect';
  const isReduced = shortened.length > 0 || assembled.parts.some((part) => kindsOf(part).includes('summary'));
  return isReduced ? 'reduced' : 'not_needed';
}

/** Tokens of each message and each group. Whole numbers that add up to the tokens of the request. */
export function weigh(
  { parts, estimatedTokens, tokens }: Assembled,
  tokenRatio: number,
): { readonly parts: readonly ReportedPart[]; readonly groups: Readonly<Record<string, number>> } {
  const plain = parts.map((part) => messageTokens(part.message));
  let upTo = estimatedTokens - plain.reduce((sum, one) => sum + one, 0);
  let counted = Math.min(tokens, Math.ceil(upTo * tokenRatio));
  const groups: Record<string, number> = counted > 0 ? { tools: counted } : {};
  const weighed = parts.map(({ kind, entries }, place) => {
    upTo += plain[place] ?? 0;
    const sum = Math.ceil(upTo * tokenRatio);
    const own = sum - counted;
    counted = sum;
    const group = kind === 'marker' ? 'away-block' : kind;
    groups[group] = (groups[group] ?? 0) + own;
    return { kind, entries, tokens: own };
  });
  return { parts: weighed, groups };
}

function kindsOf({ kind }: { readonly kind: string }): readonly string[] {
  return kind.split('+');
}

export function nextReduction(
  reducible: Reducible,
  profile: ModelProfile,
  { included }: Holdings,
): NextReduction {
  const { max, target } = windowLimit(profile.contextTokens - profile.maxOutputTokens, 0);
  const plan = nextReductionOf(reducible);
  const shownEntries = new Set(included);
  const includedOf = (indexes: readonly number[]) => indexes.filter((index) => shownEntries.has(index));
  return {
    above: max,
    target,
    limits: { messages: reducible.limits.maxMessages, chars: reducible.limits.maxChars },
    due: needsReduction(reducible),
    would: plan && {
      shorten: includedOf(plan.shortened),
      sum_up: includedOf(expand(plan.covered)),
      leave_out: includedOf(expand(plan.leftOut)),
    },
  };
}

/** `answer`: the answer to the request, which counts too. `state`: the state of `entries`, without the answer. */
export function costOfRequest(
  entries: readonly Entry[],
  state: ConversationState,
  agent: string,
  answer: Entry | null,
): Cost {
  const upTo = answer === null ? entries : [...entries, answer];
  const turnId = answer?.turnId ?? agentState(state, agent).turn?.turnId;
  const ofTurn = upTo.filter((entry) => turnId !== undefined && entry.turnId === turnId);
  const before = (slug: string) => agentState(state, slug).used;
  const own = answer === null ? before(agent) : usedWith(before(agent), answer);
  const others = Object.keys(state.agents).filter((slug) => slug !== agent);
  const usage = answer?.type === 'message' ? answer.usage : undefined;
  return {
    call: usage ?? null,
    turn: ofTurn.reduce(usedWith, NOTHING_USED),
    agent: own,
    conversation: usedTogether([own, ...others.map(before)]),
  };
}
