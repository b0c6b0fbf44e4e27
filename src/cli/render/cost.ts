import type { MessageEntry, Used } from '../../client/index.ts';
import { renderTable } from './table.ts';
import { plural } from './text.ts';

/** Tokens and money, for people. */

export const count = (value: number): string => value.toLocaleString('en-US');

/** Costs of calls are small: four digits, unless there is none. */
export const money = (usd: number): string => (usd === 0 ? '-' : `$${usd.toFixed(4)}`);

/** `2 calls, 1,204 tokens in (900 cached), 77 out, $0.0012`; what nobody knows is left out. */
export function renderUsed({ calls, ...usage }: Used): string {
  return `${plural(calls, 'call')}, ${renderUsage(usage)}`;
}

type Usage = NonNullable<MessageEntry['usage']>;

export function renderUsage({ inputTokens, cachedInputTokens, outputTokens, usd }: Usage): string {
  const cached = cachedInputTokens ? ` (${count(cachedInputTokens)} cached)` : '';
  const cost = usd ? `, ${money(usd)}` : '';
  return `${count(inputTokens)} tokens in${cached}, ${count(outputTokens)} out${cost}`;
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
    money(of('usd')),
  ];
  return renderTable(
    ['AGENT', 'CALLS', 'TOKENS IN', 'CACHED', 'TOKENS OUT', 'COST'],
    [...rows.map(([slug, used]) => cells(slug, (key) => used[key])), cells('all', sum)],
    paintHeading,
  );
}
