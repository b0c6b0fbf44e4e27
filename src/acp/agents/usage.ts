import type { PromptResponse, SessionUpdate } from '@agentclientprotocol/sdk';
import { reportedUsageSchema, type Usage } from '../../conversation/index.ts';

/**
 * What an agent reports of its own model calls.
 *
 * ACP-USAGE-1 Tokens are those of the answers to the prompts of a turn. The protocol has no stable field for them, so another form counts as none. Its
 *             numbers are disjoint: input without the cache, output without thoughts.
 * ACP-USAGE-2 A cost is the growth of the session's cost during the turn, in US dollars. Without a known start there is none.
 */
export function addUsage(sum: Usage | undefined, answer: PromptResponse): Usage | undefined {
  const { usage } = answer as { readonly usage?: Readonly<Record<string, unknown>> | null };
  const read = reportedUsageSchema.safeParse({
    inputTokens: usage?.inputTokens,
    outputTokens: usage?.outputTokens,
    cachedInputTokens: usage?.cachedReadTokens ?? 0,
    cacheWriteTokens: usage?.cachedWriteTokens ?? 0,
    reasoningTokens: usage?.thoughtTokens ?? 0,
  });
  if (!read.success) return sum;
  const { inputTokens: fresh, outputTokens: said } = read.data;
  const {
    cachedInputTokens: cached = 0,
    cacheWriteTokens: written = 0,
    reasoningTokens: thought = 0,
  } = read.data;
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
