import { estimateTokens, type Usage } from '../../conversation/index.ts';
import type { WireMessage, WireTool } from '../model-port.ts';
import { CALL_FIELDS, MESSAGE_FIELDS } from './wire-form.ts';

/** US dollars per million tokens. */
export interface Price {
  readonly inputPerMillion: number;
  readonly cachedInputPerMillion: number;
  readonly outputPerMillion: number;
}

/** The cost of a call, from the usage reported by its provider. */
export function costOf(usage: Usage, price: Price): number {
  const cached = usage.cachedInputTokens ?? 0;
  const fresh = Math.max(0, usage.inputTokens - cached);
  const sum =
    fresh * price.inputPerMillion +
    cached * price.cachedInputPerMillion +
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

/** Upper bound of a call's usage: its request and the longest answer. */
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
  return { tokens: inputTokens + maxOutputTokens, usd: price ? costOf(usage, price) : 0 };
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
    const message = `$${budget.usedUsd.toFixed(4)} are spent, and the next call may take it to $${usd.toFixed(4)}; the limit is $${usdPerConversation}`;
    return { name: 'usdPerConversation', message };
  }
  return null;
}

/** 112,897 */
const grouped = (tokens: number): string => tokens.toLocaleString('en');

/** Estimates the tokens of a request's parts, including what providers add to each message and each call. */

const PER_MESSAGE = 10;
const PER_CALL = 50;

export function messageTokens(message: WireMessage): number {
  let tokens = PER_MESSAGE + estimateTokens(message.content ?? '');
  tokens += estimateTokens(message.reasoning_content ?? '');
  for (const call of message.tool_calls ?? []) {
    tokens += PER_CALL + estimateTokens(call.function.name) + estimateTokens(call.function.arguments);
    tokens += opaqueTokens(call, CALL_FIELDS) + opaqueTokens(call.function, CALL_FIELDS);
  }
  return tokens + opaqueTokens(message, MESSAGE_FIELDS);
}

function opaqueTokens(fields: object, known: ReadonlySet<string>): number {
  let tokens = 0;
  for (const [name, value] of Object.entries(fields))
    if (!known.has(name)) tokens += estimateTokens(JSON.stringify([name, value]));
  return tokens;
}

export function toolTokens(tool: WireTool): number {
  return PER_CALL + estimateTokens(JSON.stringify(tool));
}
