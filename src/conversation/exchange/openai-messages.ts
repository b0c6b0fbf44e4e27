import type { Entry, MessageEntry } from '../log/entry.ts';
import { wireCallId } from '../state/knowledge.ts';
import { toolError } from '../tools/conversation-tools.ts';

/** A message in OpenAI's form. */
export interface OpenAiMessage {
  readonly role: MessageEntry['role'];
  readonly content: string | null;
  /** Of a person, where it may be sent; of an agent: its slug. */
  readonly name?: string;
  readonly tool_calls?: MessageEntry['tool_calls'];
  readonly tool_call_id?: string;
}

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
/** Whom an import calls a person without a name. */
const NOBODY = 'User';

/** Said of a call that has no result. */
export const NO_RESULT: string = toolError(
  'NO_RESULT',
  'the result of this call was never kept: what came of it is unknown',
);

/**
 * What was said, by all, in the order of the log: each result directly behind its call, calls numbered through. Not
 * what any agent was shown (that is a view). Importing it and writing it again gives the same.
 */
export function messagesFromEntries(entries: readonly Entry[]): OpenAiMessage[] {
  const results = new Map<string, MessageEntry>();
  for (const entry of entries) {
    if (entry.type !== 'message' || entry.role !== 'tool' || !entry.call) continue;
    const key = wireCallId(entry.call);
    if (!results.has(key)) results.set(key, entry); // V7
  }
  const messages: OpenAiMessage[] = [];
  let calls = 0;
  for (const entry of entries) {
    if (entry.type !== 'message' || entry.role === 'tool') continue;
    const tool_calls = (entry.tool_calls ?? []).map((call, at) => ({ ...call, id: `call_${calls + at}` }));
    calls += tool_calls.length;
    messages.push({
      role: entry.role,
      content: entry.content,
      ...nameOf(entry),
      ...(tool_calls.length > 0 && { tool_calls }),
    });
    for (const [position, { id }] of tool_calls.entries()) {
      const result = results.get(wireCallId({ index: entry.index, position }));
      messages.push({ role: 'tool', tool_call_id: id, content: result?.content ?? NO_RESULT });
    }
  }
  return messages;
}

function nameOf({ role, author }: MessageEntry): { readonly name?: string } {
  const name = author.kind === 'agent' ? author.id : author.name;
  return role !== 'system' && NAME.test(name) && name !== NOBODY ? { name } : {};
}

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
