import type { Entry, EntryOf, MessageEntry } from '../log/entry.ts';
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

/**
 * Each message below its author, its time and its index; calls and results as code; runs with their nodes.
 *
 * EXPORT-1 Markdown quotes the text of messages, briefs and summaries: no text ends its quote, so none looks like the heading of
 *          another message, and an open fence or comment hides nothing after it.
 */
function markdownFromEntries(entries: readonly Entry[]): string {
  const title = entries.findLast((entry) => entry.type === 'title-set')?.title;
  const parts = entries.flatMap((entry) => {
    if (entry.type === 'message') return messagePart(entry);
    return isOfRun(entry) ? runPart(entry) : [];
  });
  return [...(title === undefined ? [] : [`# ${inOneLine(title)}`]), ...parts].join('\n\n');
}

type RunEntry = EntryOf<'run-started'> | EntryOf<'node-entered'> | EntryOf<'run-ended'>;

function isOfRun(entry: Entry): entry is RunEntry {
  return entry.type === 'run-started' || entry.type === 'node-entered' || entry.type === 'run-ended';
}

function runPart(entry: RunEntry): string {
  switch (entry.type) {
    case 'run-started':
      return headingOf(`Run of ${entry.workflowId} started`, entry);
    case 'node-entered': {
      const { node, brief, agent, to = [], outcome, summary } = entry;
      const handedOn =
        outcome === undefined ? [] : [`Outcome of the node before: ${inOneLine(outcome)}`, quoted(summary)];
      const who = to[0] ?? agent;
      const given = [who && `Agent: ${who}`, brief && `Brief:\n\n${quoted(brief)}`];
      return joined(headingOf(`Node ${node}`, entry), ...handedOn, ...given);
    }
    case 'run-ended':
      return joined(headingOf(`Run ended: ${entry.outcome}`, entry), quoted(entry.summary));
  }
}

function headingOf(text: string, { createdAt, index }: Entry): string {
  const time = `${createdAt.slice(0, 16).replace('T', ' ')} UTC`;
  return `## ${inOneLine(text)} (${time}, entry ${index})`;
}

function joined(...parts: readonly (string | null | undefined)[]): string {
  return parts.filter((part) => part).join('\n\n');
}

function messagePart(entry: MessageEntry): string {
  if (entry.role === 'tool')
    return `Result of ${inOneLine(entry.toolName ?? 'a call')}:\n\n${fenced(entry.content ?? '')}`;
  const calls = (entry.tool_calls ?? []).map(
    ({ function: { name, arguments: text } }) => `Calls ${inOneLine(name)}:\n\n${fenced(text)}`,
  );
  return joined(headingOf(entry.author.name, entry), quoted(entry.content), ...calls);
}

const inOneLine = (text: string): string => text.replace(/\s+/gu, ' ').trim();

/** EXPORT-1. A line of Markdown ends at each of these. */
function quoted(text: string | null | undefined): string | null {
  const lines = text ? text.split(/\r\n|\n|\r/) : [];
  return lines.length === 0 ? null : lines.map((line) => (line === '' ? '>' : `> ${line}`)).join('\n');
}

/** The fence is longer than any in the text. */
function fenced(text: string): string {
  const longest = Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const fence = '`'.repeat(Math.max(3, longest + 1));
  return `${fence}\n${text}\n${fence}`;
}
