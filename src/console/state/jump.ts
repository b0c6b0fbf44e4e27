import { signal } from '@preact/signals';
import { opened, selected, version } from './conversation.ts';
import { focusSelected } from './keys.ts';
import { go, isAt, linkTo } from './route.ts';

/** The position of the block that a jump led to: it is marked for a moment. */
export const pointed = signal<number | null>(null);
const POINTED_MS = 2_000;
let pointing: ReturnType<typeof setTimeout> | undefined;

/** Scrolls to an entry in the thread, selects it and marks it for a moment. */
export function jumpTo(index: number, { keepFocus = false } = {}): void {
  const here = opened.value;
  if (!here) return;
  const place = here.thread.placeOf(index);
  if (place < 0) return;
  if (selected.value === place) selected.value = null;
  selected.value = place;
  pointed.value = place;
  clearTimeout(pointing);
  pointing = setTimeout(() => {
    pointed.value = null;
  }, POINTED_MS);
  version.value++;
  if (!keepFocus) focusSelected();
}

/** Opens a conversation at an entry. */
export function showEntry(conversation: string, index: number): void {
  const isLoaded = () => opened.value?.id === conversation && opened.value.thread.entries.length > index;
  whenReady(linkTo.conversation(conversation), isLoaded, () => jumpTo(index));
}

/** Opens a conversation and puts the cursor into its message field. */
export function writeIn(conversation: string): void {
  const field = () => document.getElementById('composer');
  const isShown = () => opened.value?.id === conversation && field() !== null;
  whenReady(linkTo.conversation(conversation), isShown, () => field()?.focus());
}

/** The same where a pointer hovers. On a phone the keyboard would cover the thread, so that it only opens. */
export function openToWrite(conversation: string): void {
  if (matchMedia('(hover: hover)').matches) writeIn(conversation);
  else go(linkTo.conversation(conversation));
}

const READY_WITHIN_MS = 10_000;

/** Goes to a page, and acts when it is loaded, unless the person has left it. */
export function whenReady(link: string, isReady: () => boolean, action: () => void): void {
  go(link);
  const givenUp = performance.now() + READY_WITHIN_MS;
  const look = () => {
    if (location.hash !== link) return;
    if (isAt(link) && isReady()) requestAnimationFrame(action);
    else if (performance.now() < givenUp) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}
