import type { Entry } from '../conversation/index.ts';
import { ParleyError } from '../kernel/index.ts';
import type { ParleyClient } from './client.ts';

/** Yields the log from an index on, page by page. */
export async function* logEntries(
  client: ParleyClient,
  conversation: string,
  from: number,
): AsyncGenerator<Entry, void, undefined> {
  for (let next = from; ; ) {
    const { entries, length } = await client.request('entries', { conversation, from: next });
    yield* entries;
    const last = entries.at(-1);
    if (last === undefined || last.index + 1 >= length) return;
    next = last.index + 1;
  }
}

const NOT_THERE = new Set(['NOT_FOUND', 'CONVERSATION_NOT_FOUND', 'UNKNOWN_CONVERSATION']);

/** The length of the log; 0 for a conversation that does not exist yet. */
export async function logLength(client: ParleyClient, conversation: string): Promise<number> {
  try {
    return (await client.request('conversation', { conversation })).length;
  } catch (error) {
    if (error instanceof ParleyError && NOT_THERE.has(error.code)) return 0;
    throw error;
  }
}
