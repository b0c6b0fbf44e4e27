import { batch, computed, signal } from '@preact/signals';
import { followList } from '../api/follow.ts';
import type { ListChange } from '../api/hub.ts';
import { withoutAnsi } from '../model/format.ts';
import type { ConversationRow } from '../model/list/list.ts';
import { access, isAway } from './session.ts';

/** The list of conversations, as the daemon sends its changes. */

export const rows = signal<readonly ConversationRow[]>([]);
export const isListed = signal(false);

/** Titles of more than one conversation; their ids are shown too. */
export const sharedTitles = computed<ReadonlySet<string>>(() => {
  const seen = new Set<string>();
  const titles = rows.value.flatMap(({ title }) => (title === null ? [] : [title]));
  return new Set(titles.filter((title) => seen.has(title) || !seen.add(title)));
});

/** As the list shows it; null: it has none, or is not listed yet. */
export function titleOf(id: string): string | null {
  const title = rows.value.find((row) => row.id === id)?.title ?? null;
  return title && withoutAnsi(title);
}

function change({ whole, conversations, deleted }: ListChange): void {
  const next = new Map(whole ? [] : rows.value.map((row) => [row.id, row]));
  for (const row of conversations as readonly ConversationRow[]) next.set(row.id, row);
  for (const id of deleted) next.delete(id);
  batch(() => {
    rows.value = [...next.values()];
    isListed.value = true;
  });
}

/** Removes a conversation that the person has deleted, before the daemon says so. */
export function forgetRow(id: string): void {
  change({ whole: false, conversations: [], deleted: [id] });
}

/** Runs until the returned function is called. */
export function keepListed(): () => void {
  return followList({
    onList: change,
    onConnection(state) {
      isAway.value = state.kind === 'lost';
      if (state.kind === 'over' && state.code === 'UNAUTHORIZED') access.value = 'token-needed';
    },
  });
}
