import { createContext } from 'preact';
import { useContext, useState } from 'preact/hooks';
import { keepDraft, readDraft } from '../api/session.ts';
import { opened } from './conversation.ts';

/**
 * What a person left in a conversation: unsent texts (until the tab is closed) and unfolded parts (until the page is loaded
 * again).
 */

/** The conversation of the parts inside; null: the open one. */
export const InConversation = createContext<string | null>(null);

export function useConversation(): string {
  return useContext(InConversation) ?? opened.value?.id ?? '';
}

/** A text field whose text is kept; an empty text is forgotten. */
export function useKeptText(field: string): readonly [string, (text: string) => void] {
  const place = `${useConversation()}/${field}`;
  const [text, setText] = useState(() => readDraft(place));
  return [
    text,
    (next) => {
      setText(next);
      keepDraft(place, next);
    },
  ];
}

const unfolded = new Set<string>();

/** `name`: unique in the conversation. */
export function isUnfolded(conversation: string, name: string): boolean {
  return unfolded.has(`${conversation}/${name}`);
}

export function keepUnfolded(conversation: string, name: string, isOpen: boolean): void {
  const key = `${conversation}/${name}`;
  if (isOpen) unfolded.add(key);
  else unfolded.delete(key);
}
