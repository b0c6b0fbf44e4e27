import type { Entry } from '../conversation/index.ts';

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

/** Every message with a text: of people, of agents, and results of tools. */
export function documentsOf(entries: readonly Entry[]): SearchDocument[] {
  return entries.flatMap((entry) => {
    if (entry.type !== 'message' || !entry.content?.trim()) return [];
    const { index, createdAt: at, author, phase = null, content } = entry;
    return [{ index, at, author, phase, text: content.slice(0, MOST_CHARACTERS) }];
  });
}
