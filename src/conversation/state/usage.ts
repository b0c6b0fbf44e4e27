import type { Entry, EntryOf, MessageEntry, Usage } from '../log/entry.ts';

/** What model calls used, added up. Costs are known as far as prices are configured and providers report. */
export interface Used {
  /** Calls that left an entry: answers, failures, and summaries that a model wrote. */
  readonly calls: number;
  readonly inputTokens: number;
  /** Of `inputTokens`, what the provider had in its cache. */
  readonly cachedInputTokens: number;
  readonly outputTokens: number;
  readonly usd: number;
}

export const NOTHING_USED: Used = {
  calls: 0,
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  usd: 0,
};

/** The entry of a model call; an answer that was imported, or refused before it was sent, is none. */
export function isModelCall(entry: Entry): entry is MessageEntry | EntryOf<'summary'> {
  if (entry.type === 'summary') return entry.usage !== undefined || entry.writtenBy === 'model';
  if (entry.type !== 'message' || entry.role !== 'assistant' || entry.author.kind !== 'agent') return false;
  return entry.usage !== undefined || Boolean(entry.requestHash);
}

/** With one more entry; the same if it is no model call. */
export function usedWith(used: Used, entry: Entry): Used {
  return isModelCall(entry) ? usedWithCall(used, entry.usage) : used;
}

function usedWithCall(used: Used, usage: Usage | undefined): Used {
  return {
    calls: used.calls + 1,
    inputTokens: used.inputTokens + (usage?.inputTokens ?? 0),
    cachedInputTokens: used.cachedInputTokens + (usage?.cachedInputTokens ?? 0),
    outputTokens: used.outputTokens + (usage?.outputTokens ?? 0),
    usd: used.usd + (usage?.usd ?? 0),
  };
}

export function usedTogether(all: Iterable<Used>): Used {
  let sum = NOTHING_USED;
  for (const used of all) {
    sum = {
      calls: sum.calls + used.calls,
      inputTokens: sum.inputTokens + used.inputTokens,
      cachedInputTokens: sum.cachedInputTokens + used.cachedInputTokens,
      outputTokens: sum.outputTokens + used.outputTokens,
      usd: sum.usd + used.usd,
    };
  }
  return sum;
}

/** The same for a whole conversation, which counts no calls: added to `total`. */
export function addUsage(total: { tokens: number; usd: number }, usage: Usage | undefined): void {
  if (!usage) return;
  total.tokens += usage.inputTokens + usage.outputTokens;
  total.usd += usage.usd ?? 0;
}
