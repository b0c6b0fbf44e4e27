import type { Entry, MessageEntry } from '../log/entry.ts';
import { messagesFromEntries } from './openai-messages.ts';

/** A conversation as a text. `openai`: its messages; `markdown`: the same for people; `jsonl`: all entries, one a line. */
export const EXPORT_FORMATS = ['openai', 'markdown', 'jsonl'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

export function exportEntries(entries: readonly Entry[], format: ExportFormat): string {
  switch (format) {
    case 'openai':
      return JSON.stringify(messagesFromEntries(entries));
    case 'markdown':
      return markdownFromEntries(entries);
    case 'jsonl':
      return entries.map((entry) => JSON.stringify(portableEntry(entry))).join('\n');
    default:
      return format satisfies never;
  }
}

/** Without the ingress sequence of a post, which is meaningless with another stream. */
export function portableEntry({ ingressSequence: _, ...entry }: Entry): Entry {
  return entry as Entry;
}

/** Each message below its author, its time and its index; calls and results as code. */
function markdownFromEntries(entries: readonly Entry[]): string {
  const title = entries.findLast((entry) => entry.type === 'title-set')?.title;
  const parts = entries.flatMap((entry) => (entry.type === 'message' ? messagePart(entry) : []));
  return [...(title === undefined ? [] : [`# ${inOneLine(title)}`]), ...parts].join('\n\n');
}

function messagePart(entry: MessageEntry): string {
  if (entry.role === 'tool')
    return `Result of ${inOneLine(entry.toolName ?? 'a call')}:\n\n${fenced(entry.content ?? '')}`;
  const time = `${entry.createdAt.slice(0, 16).replace('T', ' ')} UTC`;
  const calls = (entry.tool_calls ?? []).map(
    ({ function: { name, arguments: text } }) => `Calls ${inOneLine(name)}:\n\n${fenced(text)}`,
  );
  const heading = `## ${inOneLine(entry.author.name)} (${time}, entry ${entry.index})`;
  return [heading, entry.content ?? '', ...calls].filter((part) => part !== '').join('\n\n');
}

const inOneLine = (text: string): string => text.replace(/\s+/gu, ' ').trim();

/** The fence is longer than any in the text. */
function fenced(text: string): string {
  const longest = Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const fence = '`'.repeat(Math.max(3, longest + 1));
  return `${fence}\n${text}\n${fence}`;
}
