import type { SearchDocument } from './documents.ts';

/** What the daemon and the thread of the index exchange. */

/** How far a conversation is indexed. */
export interface IndexedConversation {
  readonly id: string;
  /** Entries of its log. */
  readonly length: number;
  /** Of the newest entry: a log that was deleted and begun again has another. */
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

/** Calls of the index in its thread, which executes them in order. */
export interface IndexCalls {
  conversations(): IndexedConversation[];
  /** Adds the documents of a conversation, and notes how far it is indexed. */
  put(batch: readonly (IndexedConversation & { readonly documents: readonly SearchDocument[] })[]): void;
  /** Their texts are overwritten in the file. */
  remove(ids: readonly string[]): void;
  search(query: IndexQuery): FoundEntry[];
  close(): void;
}
