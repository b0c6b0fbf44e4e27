import { batch, signal } from '@preact/signals';
import { followList } from '../api/follow.ts';
import type { ListChange } from '../api/hub.ts';
import { withoutAnsi } from '../model/format.ts';
import type { ConversationRow } from '../model/list/list.ts';
import { Rows } from '../model/list/rows.ts';
import { access, isAway } from './session.ts';

/** The list of conversations, as the daemon sends its changes. */

const all = new Rows();
/** In the order of the list. */
export const rows = signal(all.sorted);
export const isListed = signal(false);
/** Titles of more than one conversation; their ids are shown too. */
export const sharedTitles = signal(all.sharedTitles);

/** As the list shows it; null: it has none, or is not listed yet. */
export function titleOf(id: string): string | null {
  void rows.value;
  const title = all.get(id)?.title ?? null;
  return title && withoutAnsi(title);
}

function change({ whole, conversations, deleted }: ListChange): void {
  const changed = conversations as readonly ConversationRow[];
  if (whole) all.replace(changed);
  else all.change(changed, deleted);
  batch(() => {
    rows.value = all.sorted;
    sharedTitles.value = all.sharedTitles;
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
