import type { AssistantMessage, Message } from '@ag-ui/core';
import {
  type Entry,
  failureOf,
  type MessageEntry,
  Utterances,
  wireCallId,
} from '../../conversation/index.ts';
import { canonicalArguments } from '../../kernel/index.ts';

/** Entries as AG-UI messages, with the ids they had when streamed. */
export function messagesOf(entries: readonly Entry[]): Message[] {
  const utterances = new Utterances();
  const called = new Set<string>();
  const messages: Message[] = [];
  for (const entry of entries) {
    if (entry.type === 'message' && entry.includeInContext !== false && !entry.isCollapsed) {
      messages.push(...messageOf(entry, utterances.nameOf(entry), called));
    }
    utterances.observe(entry);
  }
  return messages;
}

function messageOf(entry: MessageEntry, name: string, called: Set<string>): Message[] {
  const content = entry.content ?? '';
  if (entry.role === 'user') return [{ id: entry.id, role: 'user', content, name: entry.author.name }];
  if (entry.role === 'assistant') return answerOf(entry, name, called);
  const toolCallId = entry.call && wireCallId(entry.call);
  const isPaired = entry.role === 'tool' && toolCallId !== undefined && called.has(toolCallId);
  return isPaired ? [{ id: entry.id, role: 'tool', toolCallId, content }] : [];
}

function answerOf(entry: MessageEntry, id: string, called: Set<string>): Message[] {
  const content = entry.partType === 'error' ? failureOf(entry.content).partial : (entry.content ?? '');
  const toolCalls = (entry.tool_calls ?? []).map(({ function: tool }, position) => ({
    id: wireCallId({ index: entry.index, position }),
    type: 'function' as const,
    function: { name: tool.name, arguments: canonicalArguments(tool.arguments) },
  }));
  for (const call of toolCalls) called.add(call.id);
  const message: AssistantMessage = { id, role: 'assistant', name: entry.author.id, content };
  return [
    ...(entry.reasoning
      ? [{ id: thoughtsOf(id), role: 'reasoning' as const, content: entry.reasoning }]
      : []),
    ...(content !== '' || toolCalls.length > 0
      ? [{ ...message, ...(toolCalls.length > 0 && { toolCalls }) }]
      : []),
  ];
}

/** The id of the reasoning before a message. */
export function thoughtsOf(message: string): string {
  return `${message}-thoughts`;
}
