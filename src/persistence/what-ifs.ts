import { ParleyError } from '../kernel/index.ts';
import type { Documents } from './documents.ts';
import type { WhatIfTexts } from './port.ts';

/** The results of what-ifs: the documents `what-if.<conversation>.<id>`. */
export function createWhatIfTexts(documents: Documents): WhatIfTexts {
  const keyOf = (conversation: string, id: string) => `what-if.${conversation}.${requireId(id)}`;
  return {
    put: async (conversation, id, text, { durable }) =>
      documents.put(keyOf(conversation, id), text, durable ? 'durable' : 'derived'),
    get: async (conversation, id) => (await documents.get(keyOf(conversation, id))) as string | null,
    list: (conversation) => documents.keys(`what-if.${conversation}.`),
    async conversations() {
      const keys = await documents.keys('what-if.');
      return [...new Set(keys.map((key) => key.slice(0, key.indexOf('.'))))].sort();
    },
    remove: (conversation) => documents.removeAll(`what-if.${conversation}.`),
  };
}

export const WHAT_IF_ID = /^[a-z0-9][a-z0-9_-]{0,63}$/;

function requireId(id: string): string {
  if (WHAT_IF_ID.test(id)) return id;
  throw new ParleyError('INVALID_NAME', `${JSON.stringify(id)} is not the id of a what-if`, {
    hint: '`parley what-if CONVERSATION --list` prints the ids',
  });
}
