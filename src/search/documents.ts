import {
  type Entry,
  fileLine,
  filesOf,
  type MessageEntry,
  parseArguments,
  reportedText,
} from '../conversation/index.ts';

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

/** Every message with a text or a file: of people, of agents with the questions that they ask and the calls that they report, and results. */
export function documentsOf(entries: readonly Entry[]): SearchDocument[] {
  return entries.flatMap((entry) => {
    if (entry.type !== 'message' || entry.answers) return []; // a result with `answers` repeats that message
    const reports = reportedText(entry.reported, true);
    const files = filesOf(entry).map(fileLine).join('\n');
    const text = [entry.content ?? '', ...questionsIn(entry), files, reports]
      .filter((part) => part.trim() !== '')
      .join('\n\n');
    if (text === '') return [];
    const { index, createdAt: at, author, phase = null } = entry;
    return [{ index, at, author, phase, text: text.slice(0, MOST_CHARACTERS) }];
  });
}

function questionsIn({ tool_calls: calls = [] }: MessageEntry): string[] {
  return calls.flatMap(({ function: { name, arguments: text } }) => {
    const asked = name === 'ask' ? parseArguments(name, text) : null;
    return asked?.ok ? [[asked.value.question, ...(asked.value.options ?? [])].join('\n')] : [];
  });
}

/** How far a conversation is indexed. */
export interface IndexedConversation {
  readonly id: string;
  /** Entries of its log. */
  readonly length: number;
  /** The id of the newest entry: a log that was deleted and begun again has another. */
  readonly lastId: string;
  readonly updatedAt: string;
}

export interface IndexQuery {
  readonly text: string;
  readonly conversation?: string | undefined;
  readonly agent?: string | undefined;
  /** The id or the name of a person. */
  readonly person?: string | undefined;
  readonly phase?: string | undefined;
  /** ISO 8601: entries from then on, and entries before then. */
  readonly after?: string | undefined;
  readonly before?: string | undefined;
  readonly limit: number;
}

export interface FoundEntry extends Omit<SearchDocument, 'text'> {
  readonly conversation: string;
  /** Higher is better. Scores of indexes with similar texts are comparable. */
  readonly score: number;
  /** Parts of the text around the words. */
  readonly snippet: string;
  /** Where the words are in the snippet: start and end. */
  readonly marks: readonly [number, number][];
}
