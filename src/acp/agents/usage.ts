import type { PromptResponse, SessionUpdate } from '@agentclientprotocol/sdk';
import { z } from 'zod';
import type { Usage } from '../../conversation/index.ts';

/**
 * What an agent reports of its own model calls.
 *
 * ACP-USAGE-1 Tokens are those of the answers to the prompts of a turn. The protocol has no stable field for them, so another form counts as none. Its
 *             numbers are disjoint: input without the cache, output without thoughts.
 * ACP-USAGE-2 A cost is the growth of the session's cost during the turn, in US dollars. Without a known start there is none.
 */
const count = z.int().nonnegative();
const tokensSchema = z.object({
  inputTokens: count,
  outputTokens: count,
  cachedReadTokens: count.nullish(),
  cachedWriteTokens: count.nullish(),
  thoughtTokens: count.nullish(),
});

export function addUsage(sum: Usage | undefined, answer: PromptResponse): Usage | undefined {
  const { usage } = answer as { readonly usage?: Readonly<Record<string, unknown>> | null };
  const read = tokensSchema.safeParse(usage);
  if (!read.success) return sum;
  const {
    inputTokens: fresh,
    outputTokens: said,
    cachedReadTokens,
    cachedWriteTokens,
    thoughtTokens,
  } = read.data;
  const [cached, written, thought] = [cachedReadTokens ?? 0, cachedWriteTokens ?? 0, thoughtTokens ?? 0];
  const plus = (name: 'cachedInputTokens' | 'cacheWriteTokens' | 'reasoningTokens', tokens: number) => {
    const total = (sum?.[name] ?? 0) + tokens;
    return total > 0 ? { [name]: total } : {};
  };
  return {
    inputTokens: (sum?.inputTokens ?? 0) + fresh + cached + written,
    ...plus('cachedInputTokens', cached),
    ...plus('cacheWriteTokens', written),
    outputTokens: (sum?.outputTokens ?? 0) + said + thought,
    ...plus('reasoningTokens', thought),
  };
}

/** The costs of the sessions of one process (ACP-USAGE-2). */
export class SessionCosts {
  readonly #usd = new Map<string, number>();

  /** `session/new` has cost nothing. */
  begin(session: string): void {
    this.#usd.set(session, 0);
  }

  take(session: string, update: SessionUpdate): void {
    if (update.sessionUpdate !== 'usage_update' || update.cost?.currency !== 'USD') return;
    this.#usd.set(session, update.cost.amount);
  }

  of(session: string): number | undefined {
    return this.#usd.get(session);
  }

  clear(): void {
    this.#usd.clear();
  }
}

export function usdBetween(before: number | undefined, after: number | undefined): { readonly usd?: number } {
  return before === undefined || after === undefined || after <= before ? {} : { usd: after - before };
}
