import { opened, selected, version } from './conversation.ts';
import { focusSelected } from './keys.ts';

/** Scrolls to an entry in the thread and selects it. */
export function jumpTo(index: number, { keepFocus = false } = {}): void {
  const here = opened.value;
  if (!here) return;
  const place = here.thread.placeOf(index);
  if (place < 0) return;
  if (selected.value === place) selected.value = null;
  selected.value = place;
  version.value++;
  if (!keepFocus) focusSelected();
}
