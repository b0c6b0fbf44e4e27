import { computed, signal } from '@preact/signals';
import { requests, Unreachable } from '../api/requests.ts';
import type { ConversationRow } from '../model/list.ts';
import { isAway } from './session.ts';

/** The list of conversations, polled while the page is visible. */

export const rows = signal<readonly ConversationRow[]>([]);
export const isListed = signal(false);

/** Titles of more than one conversation; their ids are shown too. */
export const sharedTitles = computed<ReadonlySet<string>>(() => {
  const seen = new Set<string>();
  const titles = rows.value.flatMap(({ title }) => (title === null ? [] : [title]));
  return new Set(titles.filter((title) => seen.has(title) || !seen.add(title)));
});

const EVERY_MS = 2_500;
/** Of a hidden page, whose title and notifications tell what needs a person. */
const HIDDEN_EVERY_MS = 15_000;

export async function refresh(): Promise<void> {
  try {
    rows.value = await requests.conversations();
    isListed.value = true;
    isAway.value = false;
  } catch (error) {
    isAway.value ||= error instanceof Unreachable; // the list stays unchanged
  }
}

/** Runs until the returned function is called. */
export function keepListed(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  const again = async () => {
    await refresh();
    clearTimeout(timer);
    if (!isOver)
      timer = setTimeout(again, document.visibilityState === 'visible' ? EVERY_MS : HIDDEN_EVERY_MS);
  };
  const onShown = () => {
    clearTimeout(timer);
    timer = setTimeout(again);
  };
  document.addEventListener('visibilitychange', onShown);
  void again();
  return () => {
    isOver = true;
    document.removeEventListener('visibilitychange', onShown);
    clearTimeout(timer);
  };
}
