import type { Entry, MessageEntry } from '../log/entry.ts';
import { wireCallId } from '../log/entry.ts';
import { toolError } from '../tools/conversation-tools.ts';

/** A message in OpenAI's form. */
export interface OpenAiMessage {
  readonly role: MessageEntry['role'];
  readonly content: string | null;
  /** A person's name, if the protocol allows it; an agent's slug. */
  readonly name?: string;
  readonly tool_calls?: MessageEntry['tool_calls'];
  readonly tool_call_id?: string;
}

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
/** The name that an import gives to people without one. */
const UNNAMED_PERSON = 'User';

/** The result of a call without one. */
const NO_RESULT: string = toolError(
  'NO_RESULT',
  'the result of this call was never kept: what came of it is unknown',
);

/**
 * All messages in log order, each result directly after its call, with new call ids. This is not the view of any agent.
 * Importing the result and exporting it again gives the same.
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
  return role !== 'system' && NAME.test(name) && name !== UNNAMED_PERSON ? { name } : {};
}

/**
 * Closes calls in imported messages that have no result: nothing would answer them, and no request may contain them
 * (L13). Returns one error result per call, in call order, to be appended. Calls of a turn are not included.
 */
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
