import { type Entry, type MessageEntry, parseArguments } from '../conversation/index.ts';

/** The searchable part of an entry. */
export interface SearchDocument {
  readonly index: number;
  /** ISO 8601. */
  readonly at: string;
  readonly author: {
    readonly kind: 'person' | 'agent' | 'system';
    readonly id: string;
    readonly name: string;
  };
  readonly phase: string | null;
  readonly text: string;
}

/** Longer texts are searched in their beginning: a result of a tool may be megabytes. */
const MOST_CHARACTERS = 20_000;

/** Every message with a text: of people, of agents with the questions that they ask, and results of tools. */
export function documentsOf(entries: readonly Entry[]): SearchDocument[] {
  return entries.flatMap((entry) => {
    if (entry.type !== 'message') return [];
    const text = [entry.content ?? '', ...questionsIn(entry)]
      .filter((part) => part.trim() !== '')
      .join('\n\n');
    if (text === '') return [];
    const { index, createdAt: at, author, phase = null } = entry;
    return [{ index, at, author, phase, text: text.slice(0, MOST_CHARACTERS) }];
  });
}

/** Each question with its options. */
function questionsIn({ tool_calls: calls = [] }: MessageEntry): string[] {
  return calls.flatMap(({ function: { name, arguments: text } }) => {
    const asked = name === 'ask' ? parseArguments(name, text) : null;
    return asked?.ok ? [[asked.value.question, ...(asked.value.options ?? [])].join('\n')] : [];
  });
}
