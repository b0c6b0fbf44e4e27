import type { MessageEntry, Used } from '../../client/index.ts';
import { plural, renderTable } from './text.ts';

/** Tokens and money, for people. */

export const count = (value: number): string => value.toLocaleString('en-US');

/** Costs of calls are small: four digits, and a dash for none. An unknown cost is never shown as zero. */
export function money(usd: number, unpricedCalls = 0): string {
  const known = usd === 0 ? '-' : `$${usd.toFixed(4)}`;
  if (unpricedCalls > 0) return usd === 0 ? 'unknown' : `${known} + unknown`;
  return known;
}

/** `2 calls, 1,204 tokens in (900 cached), 77 out, $0.0012`. */
export function renderUsed({ calls, usd, unpricedCalls, ...tokens }: Used): string {
  return `${plural(calls, 'call')}, ${renderTokens(tokens)}${costText(usd, unpricedCalls)}`;
}

type Usage = NonNullable<MessageEntry['usage']>;

export function renderUsage({ usd, ...tokens }: Usage): string {
  return `${renderTokens(tokens)}${usd === undefined ? costText(0, 1) : costText(usd, 0)}`;
}

function renderTokens({ inputTokens, cachedInputTokens, outputTokens }: Omit<Usage, 'usd'>): string {
  const cached = cachedInputTokens ? ` (${count(cachedInputTokens)} cached)` : '';
  return `${count(inputTokens)} tokens in${cached}, ${count(outputTokens)} out`;
}

function costText(usd: number, unpricedCalls: number): string {
  if (usd === 0) return unpricedCalls > 0 ? ', cost unknown' : '';
  return `, ${money(usd, unpricedCalls)}`;
}

/** One row for each agent that called its model, and their sum. */
export function renderCosts(
  usage: Readonly<Record<string, Used>>,
  paintHeading: (text: string) => string,
): string {
  const rows = Object.entries(usage).filter(([, { calls }]) => calls > 0);
  const all = rows.map(([, used]) => used);
  const sum = (key: keyof Used) => all.reduce((total, used) => total + used[key], 0);
  const cells = (name: string, of: (key: keyof Used) => number) => [
    name,
    count(of('calls')),
    count(of('inputTokens')),
    count(of('cachedInputTokens')),
    count(of('outputTokens')),
    money(of('usd'), of('unpricedCalls')),
  ];
  return renderTable(
    ['AGENT', 'CALLS', 'TOKENS IN', 'CACHED', 'TOKENS OUT', 'COST'],
    [...rows.map(([slug, used]) => cells(slug, (key) => used[key])), cells('all', sum)],
    paintHeading,
  );
}
