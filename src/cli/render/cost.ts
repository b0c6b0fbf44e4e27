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

/** `2 calls, 1,204 tokens in (900 cached, 200 written), 77 out (30 reasoning), $0.0012`. */
export function renderUsed({ calls, usd, unpricedCalls, ...tokens }: Used): string {
  return `${plural(calls, 'call')}, ${renderTokens(tokens)}${costText(usd, unpricedCalls)}`;
}

type Usage = NonNullable<MessageEntry['usage']>;

export function renderUsage({ usd, ...tokens }: Usage): string {
  return `${renderTokens(tokens)}${usd === undefined ? costText(0, 1) : costText(usd, 0)}`;
}

function renderTokens(tokens: Omit<Usage, 'usd'>): string {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, reasoningTokens } = tokens;
  const input = parts([cachedInputTokens, 'cached'], [cacheWriteTokens, 'written']);
  return `${count(inputTokens)} tokens in${input}, ${count(outputTokens)} out${parts([reasoningTokens, 'reasoning'])}`;
}

function parts(...given: readonly (readonly [tokens: number | undefined, what: string])[]): string {
  const known = given.flatMap(([tokens, what]) => (tokens ? [`${count(tokens)} ${what}`] : []));
  return known.length > 0 ? ` (${known.join(', ')})` : '';
}

function costText(usd: number, unpricedCalls: number): string {
  if (usd === 0) return unpricedCalls > 0 ? ', cost unknown' : '';
  return `, ${money(usd, unpricedCalls)}`;
}

const COLUMNS: readonly (readonly [heading: string, key: keyof Used])[] = [
  ['CALLS', 'calls'],
  ['TOKENS IN', 'inputTokens'],
  ['CACHED', 'cachedInputTokens'],
  ['WRITTEN', 'cacheWriteTokens'],
  ['TOKENS OUT', 'outputTokens'],
  ['REASONING', 'reasoningTokens'],
];
/** Shown only if there is any: few providers report them. */
const RARE: ReadonlySet<keyof Used> = new Set(['cacheWriteTokens', 'reasoningTokens']);

/** One row for each agent that called its model, and their sum. */
export function renderCosts(
  usage: Readonly<Record<string, Used>>,
  paintHeading: (text: string) => string,
): string {
  const rows = Object.entries(usage).filter(([, { calls }]) => calls > 0);
  const all = rows.map(([, used]) => used);
  const sum = (key: keyof Used) => all.reduce((total, used) => total + used[key], 0);
  const columns = COLUMNS.filter(([, key]) => !RARE.has(key) || sum(key) > 0);
  const cells = (name: string, of: (key: keyof Used) => number) => [
    name,
    ...columns.map(([, key]) => count(of(key))),
    money(of('usd'), of('unpricedCalls')),
  ];
  return renderTable(
    ['AGENT', ...columns.map(([heading]) => heading), 'COST'],
    [...rows.map(([slug, used]) => cells(slug, (key) => used[key])), cells('all', sum)],
    paintHeading,
  );
}
