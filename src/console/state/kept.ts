import { computed, effect } from '@preact/signals';
import { createContext } from 'preact';
import { useContext, useState } from 'preact/hooks';
import { drafted, forgetDrafts, keepDraft, keepValue, readDraft, readValue } from '../api/browser.ts';
import { opened } from './conversation.ts';
import { deletedIds } from './conversations.ts';
import { chosen, draftOf } from './files.ts';

/** What a person left in a conversation: unsent texts, and until the tab is closed, unfolded parts and the place in the thread. */

/** The conversation of the parts inside; null: the open one. */
export const InConversation = createContext<string | null>(null);

export function useConversation(): string {
  return useContext(InConversation) ?? opened.value?.id ?? '';
}

/** The end of the name of a field that is no message. */
export const WHAT_IF = '/what-if';

/** Those with an unsent message, answer or reason. */
export const unsent = computed<ReadonlySet<string>>(() => {
  const texts = [...drafted.value].flatMap((place) => (place.endsWith(WHAT_IF) ? [] : place.split('/', 1)));
  const ofFile = (of: string) => (of.startsWith(draftOf('')) ? of.slice(draftOf('').length) : []);
  return new Set([...texts, ...chosen.value.flatMap(({ of }) => ofFile(of))]);
});

/** The next message begins the open one anew. */
effect(() => {
  for (const id of deletedIds.value) if (id !== opened.value?.id) forgetDrafts(id);
});

/** A text field whose text is kept; an empty text, and the one that was `offered`, is forgotten. */
export function useKeptText(field: string, offered = ''): readonly [string, (text: string) => void] {
  const place = `${useConversation()}/${field}`;
  const [text, setText] = useState(() => readDraft(place));
  const keep = (next: string) => {
    setText(next);
    keepDraft(place, next === offered ? '' : next);
  };
  return [text, keep];
}

/** The entry at the top of the window, and how many pixels of it are above. */
export type ReadingPlace = { readonly index: number; readonly offset: number };

type Left = { readonly unfolded?: readonly string[]; readonly place?: ReadingPlace };

const placeOf = (conversation: string) => `parley.left.${conversation}`;
const leftIn = (conversation: string): Left =>
  (readValue(placeOf(conversation), sessionStorage) ?? {}) as Left;

function changeLeft(conversation: string, change: Left): void {
  keepValue(placeOf(conversation), { ...leftIn(conversation), ...change }, sessionStorage);
}

/** `name`: unique in the conversation. */
export function isUnfolded(conversation: string, name: string): boolean {
  return leftIn(conversation).unfolded?.includes(name) ?? false;
}

export function keepUnfolded(conversation: string, name: string, isOpen: boolean): void {
  const others = leftIn(conversation).unfolded?.filter((one) => one !== name) ?? [];
  changeLeft(conversation, { unfolded: isOpen ? [...others, name] : others });
}

/** Undefined: at the end. */
export function readingPlace(conversation: string): ReadingPlace | undefined {
  return leftIn(conversation).place;
}

export function keepReadingPlace(conversation: string, place: ReadingPlace | undefined): void {
  if (place || leftIn(conversation).place) changeLeft(conversation, { place });
}
