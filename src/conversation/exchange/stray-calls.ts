import type { Entry, MessageEntry } from '../log/entry.ts';
import { wireCallId } from '../state/knowledge.ts';
import { NO_RESULT } from './openai-messages.ts';

/**
 * Calls in words that no turn said (imported ones) and that have no result: nobody will ever answer them, and no
 * request may hold them (L13).
 */

/** What closes them, in call order: an error result each, to be appended. What a turn owes is not among them. */
export function closeStrayCalls(
  entries: readonly Entry[],
  at: { readonly newId: (entry: MessageEntry, position: number) => string; readonly createdAt: string },
): MessageEntry[] {
  const answered = new Set(
    entries.flatMap((entry) =>
      entry.type === 'message' && entry.role === 'tool' && entry.call ? [wireCallId(entry.call)] : [],
    ),
  );
  const closing: MessageEntry[] = [];
  for (const entry of entries) {
    if (entry.type !== 'message' || entry.role !== 'assistant' || entry.turnId) continue;
    for (const [position, call] of (entry.tool_calls ?? []).entries()) {
      const place = { index: entry.index, position };
      if (answered.has(wireCallId(place))) continue;
      closing.push({
        index: entries.length + closing.length,
        id: at.newId(entry, position),
        createdAt: at.createdAt,
        type: 'message',
        role: 'tool',
        author: entry.author,
        agentId: entry.author.id,
        content: NO_RESULT,
        toolName: call.function.name,
        tool_call_id: wireCallId(place),
        call: place,
        partType: 'tool_result',
      });
    }
  }
  return closing;
}
