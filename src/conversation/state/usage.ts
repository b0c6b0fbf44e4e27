import type { Entry, EntryOf, MessageEntry, Usage } from '../log/entry.ts';

/** Total usage of model calls. Costs are included where prices are configured and the provider reports usage. */
export interface Used {
  /** Calls with an entry: answers, failures, and summaries written by a model. */
  readonly calls: number;
  readonly inputTokens: number;
  /** The part of `inputTokens` that the provider had cached. */
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

/** True for the entry of a model call; an imported answer, or one refused before it was sent, is none. */
function isModelCall(entry: Entry): entry is MessageEntry | EntryOf<'summary'> {
  if (entry.type === 'summary') return entry.usage !== undefined || entry.writtenBy === 'model';
  if (entry.type !== 'message' || entry.role !== 'assistant' || entry.author.kind !== 'agent') return false;
  return entry.usage !== undefined || Boolean(entry.requestHash);
}

/** The total with one more entry; unchanged if the entry is no model call. */
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

/** Adds to the totals of a conversation, which count no calls. */
export function addUsage(total: { tokens: number; usd: number }, usage: Usage | undefined): void {
  if (!usage) return;
  total.tokens += usage.inputTokens + usage.outputTokens;
  total.usd += usage.usd ?? 0;
}
