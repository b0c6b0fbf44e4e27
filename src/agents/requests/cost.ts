import type { Usage } from '../../conversation/index.ts';

/** US dollars per million tokens. */
interface TokenPrices {
  readonly inputPerMillion: number;
  readonly cachedInputPerMillion: number;
  /** Default: as other input. */
  readonly cacheWritePerMillion?: number | undefined;
  readonly outputPerMillion: number;
}

export interface Price extends TokenPrices {
  /** The prices of requests with more input tokens than `inputTokens`, ascending. */
  readonly above?: readonly (TokenPrices & { readonly inputTokens: number })[];
}

/** The cost of a call, from the usage reported by its provider. */
export function costOf(usage: Usage, prices: Price): number {
  const price = prices.above?.findLast(({ inputTokens }) => usage.inputTokens > inputTokens) ?? prices;
  const { cachedInputTokens: cached = 0, cacheWriteTokens: written = 0 } = usage;
  const fresh = Math.max(0, usage.inputTokens - cached - written);
  const sum =
    fresh * price.inputPerMillion +
    cached * price.cachedInputPerMillion +
    written * (price.cacheWritePerMillion ?? price.inputPerMillion) +
    usage.outputTokens * price.outputPerMillion;
  return sum / 1_000_000;
}

/** The limits of one conversation (null: none) and its usage. */
export interface Budget {
  readonly tokensPerConversation: number | null;
  readonly usdPerConversation: number | null;
  readonly usedTokens: number;
  readonly usedUsd: number;
}

/** Upper bound of a call's usage: its request, which may be written into a cache, and the longest answer. */
export interface Reservation {
  readonly tokens: number;
  readonly usd: number;
}

export function reservationFor(
  inputTokens: number,
  maxOutputTokens: number,
  price: Price | null,
): Reservation {
  const usage = { inputTokens, outputTokens: maxOutputTokens };
  const dearest = (prices: Price) =>
    Math.max(costOf(usage, prices), costOf({ ...usage, cacheWriteTokens: inputTokens }, prices));
  return { tokens: inputTokens + maxOutputTokens, usd: price ? dearest(price) : 0 };
}

/** The limit that this call could exceed (L15); null: none. */
export function overBudget(
  budget: Budget,
  reserved: readonly Reservation[],
): { readonly name: string; readonly message: string } | null {
  const tokens = budget.usedTokens + reserved.reduce((sum, item) => sum + item.tokens, 0);
  const usd = budget.usedUsd + reserved.reduce((sum, item) => sum + item.usd, 0);
  const { tokensPerConversation, usdPerConversation } = budget;
  if (tokensPerConversation !== null && tokens > tokensPerConversation) {
    const message = `${grouped(budget.usedTokens)} tokens are used, and the next call may take it to ${grouped(tokens)}; the limit is ${grouped(tokensPerConversation)}`;
    return { name: 'tokensPerConversation', message };
  }
  if (usdPerConversation !== null && usd > usdPerConversation) {
    const message = `$${budget.usedUsd.toFixed(4)} are spent, and the next call may take it to $${usd.toFixed(4)}; the limit is $${usdPerConversation.toFixed(4)}`;
    return { name: 'usdPerConversation', message };
  }
  return null;
}

/** 112,897 */
const grouped = (tokens: number): string => tokens.toLocaleString('en');
