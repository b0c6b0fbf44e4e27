import { useState } from 'preact/hooks';
import { keepDraft, readDraft } from '../api/session.ts';
import { opened } from './conversation.ts';

/**
 * What a person left in a conversation: unsent texts (until the tab is closed) and unfolded parts (until the page is loaded
 * again).
 */

/** A text field whose text is kept; an empty text is forgotten. */
export function useKeptText(field: string): readonly [string, (text: string) => void] {
  const place = `${opened.value?.id ?? ''}/${field}`;
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
export function isUnfolded(name: string): boolean {
  return unfolded.has(`${opened.value?.id}/${name}`);
}

export function keepUnfolded(name: string, isOpen: boolean): void {
  const key = `${opened.value?.id}/${name}`;
  if (isOpen) unfolded.add(key);
  else unfolded.delete(key);
}
