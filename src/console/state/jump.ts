import { opened, selected, version } from './conversation.ts';
import { focusSelected } from './keys.ts';

/** Shows an entry in the thread, and puts the keyboard there. */
export function jumpTo(index: number): void {
  const here = opened.value;
  if (!here) return;
  const place = here.thread.placeOf(index);
  if (place < 0) return;
  if (selected.value === place) selected.value = null;
  selected.value = place;
  version.value++;
  focusSelected();
}
