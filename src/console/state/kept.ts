import { useState } from 'preact/hooks';
import { keepDraft, readDraft } from '../api/session.ts';
import { opened } from './conversation.ts';

/**
 * What a person left in a conversation: unsent texts (until the tab is closed), unfolded parts and the scroll position
 * (until the page is loaded again).
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

/** The first visible block, and how far it is scrolled out. Absent: the end of the thread. */
export interface ScrollPlace {
  readonly index: number;
  readonly offset: number;
}

export const scrollPlaces = new Map<string, ScrollPlace>();
