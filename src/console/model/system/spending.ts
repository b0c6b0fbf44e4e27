import type { Spent } from '../../../conversation/index.ts';

/** What model calls used, for a chart by day and a table by agent. */

export type Unit = 'usd' | 'tokens';

export interface Day {
  readonly day: string;
  readonly total: number;
  /** From the bottom up, in the order of the agents. */
  readonly parts: readonly { readonly agent: string; readonly value: number }[];
}

export interface Chart {
  readonly days: readonly Day[];
  /** The largest total; at least a little, so that it can divide. */
  readonly most: number;
}

export type Sum = Omit<Spent, 'day'>;

/** The agents, the highest usage first. */
export function sumsOf(spent: readonly Spent[]): readonly Sum[] {
  const sums = new Map<string, Sum>();
  for (const { agent, calls, tokens, usd, unpricedCalls } of spent) {
    const before = sums.get(agent) ?? { agent, calls: 0, tokens: 0, usd: 0, unpricedCalls: 0 };
    sums.set(agent, {
      agent,
      calls: before.calls + calls,
      tokens: before.tokens + tokens,
      usd: before.usd + usd,
      unpricedCalls: before.unpricedCalls + unpricedCalls,
    });
  }
  return [...sums.values()].sort((a, b) => b.usd - a.usd || b.tokens - a.tokens);
}

const DAY_MS = 86_400_000;

/** `now`: ISO 8601. The days up to today, also those without calls. */
export function chartOf(spent: readonly Spent[], unit: Unit, now: string, count: number): Chart {
  const agents = sumsOf(spent).map(({ agent }) => agent);
  const days = Array.from({ length: count }, (_, n) => {
    const day = new Date(Date.parse(now) - (count - 1 - n) * DAY_MS).toISOString().slice(0, 10);
    const ofDay = spent.filter((one) => one.day === day);
    const parts = agents.flatMap((agent) =>
      ofDay.filter((one) => one.agent === agent && one[unit] > 0).map((one) => ({ agent, value: one[unit] })),
    );
    return { day, parts, total: parts.reduce((sum, { value }) => sum + value, 0) };
  });
  return { days, most: Math.max(Number.EPSILON, ...days.map(({ total }) => total)) };
}
