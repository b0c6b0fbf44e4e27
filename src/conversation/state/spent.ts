import type { Entry } from '../log/entry.ts';
import { NOTHING_USED, usedWith } from './usage.ts';

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
