import { batch, computed, signal } from '@preact/signals';
import { followList } from '../api/follow.ts';
import type { ListChange } from '../api/hub.ts';
import type { Activity, ConversationRow } from '../model/answers.ts';
import { oneLine, withoutAnsi } from '../model/format.ts';
import { Rows } from '../model/list/rows.ts';
import { firstPosts, forgetAccepted } from './outbox.ts';
import { access, isAway } from './session.ts';

/** The list of conversations, as the daemon sends its changes. */

const all = new Rows();
/** In the order of the list. */
export const rows = signal(all.sorted);
export const isListed = signal(false);
/** Titles of more than one conversation; their ids are shown too. */
export const sharedTitles = signal(all.sharedTitles);

/** Conversations that this person begins and the daemon does not list yet. */
export const begun = computed<readonly ConversationRow[]>(() => {
  void rows.value;
  const unlisted = [...firstPosts.value].filter(([id]) => all.get(id) === undefined);
  return unlisted.map(([id, { post }]) => ({ ...NEW_ROW, id, title: oneLine(post.content, TITLE_LENGTH) }));
});

/** As the daemon's. */
const TITLE_LENGTH = 60;
const NEW_ROW = {
  ...{ phase: '', mode: 'chat' as const, length: 0, updatedAt: '', activeAgent: null },
  ...{ running: [], waiting: [], limited: [], stopped: [] },
};

/** As the list shows it; null: it has none, or is not listed yet. */
export function titleOf(id: string): string | null {
  void rows.value;
  const row = all.get(id) ?? begun.value.find((one) => one.id === id);
  return row?.title ? withoutAnsi(row.title) : null;
}

/** What this agent does there, as the daemon that works on the conversation says. */
export function activityOf(id: string, agent: string): Activity | undefined {
  void rows.value;
  return all.get(id)?.activity?.find((one) => one.agent === agent);
}

/** Those of the list that were deleted since, here or elsewhere. */
export const deletedIds = signal<ReadonlySet<string>>(new Set());

function change({ whole, conversations, deleted }: ListChange): void {
  const changed = conversations as readonly ConversationRow[];
  if (whole) all.replace(changed);
  else all.change(changed, deleted);
  batch(() => {
    forgetAccepted((id) => (whole ? all.get(id) === undefined : deleted.includes(id)));
    const gone = whole ? deletedIds.value : [...deletedIds.value, ...deleted];
    deletedIds.value = new Set([...gone].filter((id) => all.get(id) === undefined));
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
