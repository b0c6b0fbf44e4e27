import type { Entry, EntryOf, MessageEntry } from '../log/entry.ts';
import { splitFailedAnswer } from '../log/model-failure.ts';

/** Total usage of model calls. A cost is known where a price is configured and the provider reports usage. */
export interface Used {
  /** Calls with an entry: answers, failures, failed attempts, and summaries and titles written by a model. */
  readonly calls: number;
  readonly inputTokens: number;
  /** The part of `inputTokens` that the provider had cached. */
  readonly cachedInputTokens: number;
  /** The part of `inputTokens` that the provider wrote into its cache. */
  readonly cacheWriteTokens: number;
  readonly outputTokens: number;
  /** The part of `outputTokens` that is reasoning. */
  readonly reasoningTokens: number;
  /** The cost of the calls whose cost is known. */
  readonly usd: number;
  /** Calls whose cost is unknown: `usd` does not include them. */
  readonly unpricedCalls: number;
}

export const NOTHING_USED: Used = {
  calls: 0,
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  usd: 0,
  unpricedCalls: 0,
};

/** True for the entry of a model call; an imported answer, or one refused before it was sent, is none. */
function isModelCall(
  entry: Entry,
): entry is MessageEntry | EntryOf<'summary'> | EntryOf<'title-set'> | EntryOf<'attempt-failed'> {
  if (entry.type === 'attempt-failed') return entry.requestHash !== undefined;
  if (entry.type === 'title-set') return entry.writtenBy === 'model';
  if (entry.type === 'summary') return entry.usage !== undefined || entry.writtenBy === 'model';
  if (entry.type !== 'message' || entry.role !== 'assistant' || entry.author.kind !== 'agent') return false;
  return entry.usage !== undefined || Boolean(entry.requestHash);
}

const COUNTED = Object.keys(NOTHING_USED) as readonly (keyof Used)[];

/** Both together; what the other one lacks counts as 0. */
export function addedUp(used: Used, more: Partial<Used>): Used {
  const sum: { -readonly [Key in keyof Used]: Used[Key] } = { ...used };
  for (const key of COUNTED) sum[key] += more[key] ?? 0;
  return sum;
}

/** The total with one more entry; unchanged if the entry is no model call. */
export function usedWith(used: Used, entry: Entry): Used {
  if (!isModelCall(entry)) return used;
  const usage = entry.type === 'attempt-failed' ? undefined : entry.usage;
  return addedUp(used, { ...usage, calls: 1, unpricedCalls: isUnpriced(entry) ? 1 : 0 });
}

export function usedTogether(all: Iterable<Used>): Used {
  return [...all].reduce(addedUp, NOTHING_USED);
}

/** True for a call whose cost is unknown. A failure without usage and without any text of an answer costs nothing. */
function isUnpriced(entry: Entry): boolean {
  if (!isModelCall(entry) || entry.type === 'attempt-failed' || entry.usage?.usd !== undefined) return false;
  const isFailure = entry.type === 'message' && entry.partType === 'error';
  return entry.usage !== undefined || !isFailure || splitFailedAnswer(entry.content).text !== '';
}

/** Adds to the totals of a conversation, which count no calls. */
export function addUsage(
  total: { tokens: number; usd: number; unpricedCalls: number },
  entry: MessageEntry | EntryOf<'summary'> | EntryOf<'title-set'>,
): void {
  if (isUnpriced(entry)) total.unpricedCalls += 1;
  if (!entry.usage) return;
  total.tokens += entry.usage.inputTokens + entry.usage.outputTokens;
  total.usd += entry.usage.usd ?? 0;
}

/** What the model calls of one agent used on one day. */
export interface Spent {
  /** `YYYY-MM-DD`, UTC. */
  readonly day: string;
  readonly agent: string;
  readonly calls: number;
  /** In and out. */
  readonly tokens: number;
  /** The cost of the calls whose cost is known. */
  readonly usd: number;
  readonly unpricedCalls: number;
}

/** Days with calls that a conversation remembers: the newest ones. */
export const SPENT_DAYS = 31;

const DAY_MS = 86_400_000;

/** Unchanged if the entry is no model call. */
export function spentWith(spent: readonly Spent[], agent: string, entry: Entry): readonly Spent[] {
  const { calls, inputTokens, outputTokens, usd, unpricedCalls } = usedWith(NOTHING_USED, entry);
  if (calls === 0) return spent;
  const day = entry.createdAt.slice(0, 10);
  const more = { day, agent, calls, tokens: inputTokens + outputTokens, usd, unpricedCalls };
  const isSame = (one: Spent) => one.day === day && one.agent === agent;
  if (spent.some(isSame)) return spent.map((one) => (isSame(one) ? added(one, more) : one));
  const days = [...new Set([...spent.map((one) => one.day), day])].sort();
  const oldest = days.at(-SPENT_DAYS) ?? '';
  return [...spent, more].filter((one) => one.day >= oldest);
}

/** One element for each day and agent, oldest day first. */
export function spentTogether(all: readonly Spent[]): readonly Spent[] {
  const sums = new Map<string, Spent>();
  for (const one of all) {
    const key = `${one.day} ${one.agent}`;
    const before = sums.get(key);
    sums.set(key, before ? added(before, one) : one);
  }
  return [...sums.values()].sort((a, b) => (a.day < b.day ? -1 : a.day > b.day ? 1 : 0));
}

/** The first of so many days up to `now`. */
export function firstOfDays(now: number, days: number): string {
  return new Date(now - (days - 1) * DAY_MS).toISOString().slice(0, 10);
}

function added(a: Spent, b: Spent): Spent {
  return {
    ...a,
    calls: a.calls + b.calls,
    tokens: a.tokens + b.tokens,
    usd: a.usd + b.usd,
    unpricedCalls: a.unpricedCalls + b.unpricedCalls,
  };
}
