import type { WhatIfTexts } from '../index.ts';

/** Results of what-ifs in memory. */
export function createWhatIfTexts(): WhatIfTexts {
  const texts = new Map<string, Map<string, string>>();
  return {
    async put(conversation, id, text) {
      texts.set(conversation, (texts.get(conversation) ?? new Map<string, string>()).set(id, text));
    },
    get: async (conversation, id) => texts.get(conversation)?.get(id) ?? null,
    list: async (conversation) => [...(texts.get(conversation)?.keys() ?? [])].sort(),
    conversations: async () => [...texts.keys()].sort(),
    async remove(conversation) {
      texts.delete(conversation);
    },
  };
}
