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

/** The account of one request: what it holds, what it does not, and what each part of it weighs. */

/** What of the log a request holds (`included`), and what became of the rest that this agent knows. */
export interface Holdings {
  readonly included: readonly number[];
  readonly leftOut: readonly Gone[];
  readonly shortened: readonly number[];
  readonly waiting: readonly number[];
}

/** Of one fate, with nothing that this agent knows between them. */
interface Gone extends LeftOut {
  readonly indexes: readonly number[];
}

export function holdingsOf(reducible: Reducible, length: number): Holdings {
  const { entries, agentView, assembled } = reducible;
  const { knowledge } = agentView;
  const standing = new Set(assembled.parts.flatMap((part) => [...part.entries]));
  const known = knownBy(entries.slice(0, length), agentView);
  const waiting = known.filter((index) => knowledge.isWaiting(index));
  const isGone = (index: number) => !standing.has(index) && !knowledge.isWaiting(index);
  const included = [...standing].filter((index) => index < length).sort((a, b) => a - b);
  return {
    included,
    leftOut: fatesOf(known, isGone, reducible, standing),
    shortened: included.filter((index) => knowledge.previewLength(index) !== undefined),
    waiting,
  };
}

/** By others and of a kind that can stand in its views, its own words, and the results of its calls. */
function knownBy(entries: readonly Entry[], { knowledge }: AgentView): number[] {
  return entries
    .filter((entry) => {
      if (entry.type !== 'message' || entry.role !== 'tool')
        return knowledge.knows(entry) || knowledge.canStand(entry);
      const asked = entry.call && entries[entry.call.index];
      const isCounted =
        entry.call && knowledge.resultsOf(entry.call.index)[entry.call.position] === entry.index;
      return asked !== undefined && isCounted === true && knowledge.knows(asked);
    })
    .map((entry) => entry.index);
}

/** Named by the summary that stands for them, else by the one that left them out. */
function fatesOf(
  known: readonly number[],
  isGone: (index: number) => boolean,
  { entries, agentView }: Reducible,
  standing: ReadonlySet<number>,
): Gone[] {
  const fates = new Map<number, Pick<LeftOut, 'how' | 'by'>>();
  for (const entry of entries) {
    if (entry.type !== 'summary' || entry.agent !== agentView.knowledge.agent) continue;
    for (const index of expand(entry.leftOut ?? [])) fates.set(index, { how: 'left_out', by: entry.index });
    if (!standing.has(entry.index)) continue;
    for (const index of expand(entry.entries)) fates.set(index, { how: 'summed_up', by: entry.index });
  }
  const rows: Gone[] = [];
  let last: Gone | null = null;
  for (const index of known) {
    const fate: Pick<LeftOut, 'how' | 'by'> | null = isGone(index)
      ? (fates.get(index) ?? { how: 'empty' })
      : null;
    if (last && fate && last.how === fate.how && last.by === fate.by) rows.pop();
    else last = null;
    if (fate === null) continue;
    const indexes: readonly number[] = [...(last?.indexes ?? []), index];
    const from: number = last?.from ?? index;
    last = { from, to: index, ...fate, recall: { from, to: index }, indexes };
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

/** What each message and each group weighs; in whole tokens that add up to those of the request. */
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
  const standing = new Set(included);
  const ofThese = (indexes: readonly number[]) => indexes.filter((index) => standing.has(index));
  return {
    above: max,
    target,
    limits: { messages: reducible.limits.maxMessages, chars: reducible.limits.maxChars },
    due: needsReduction(reducible),
    would: plan && {
      shorten: ofThese(plan.shortened),
      sum_up: ofThese(expand(plan.covered)),
      leave_out: ofThese(expand(plan.leftOut)),
    },
  };
}

/** `answer`: what answers the request; it counts too. `state`: that of `entries`, without it. */
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
