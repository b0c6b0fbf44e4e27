import { batch, computed, signal } from '@preact/signals';
import { followList } from '../api/follow.ts';
import type { ListChange } from '../api/hub.ts';
import type { Activity, ConversationRow } from '../model/answers.ts';
import { shortLine, withoutAnsi } from '../model/format.ts';
import { beginningOf, changedRows, sharedTitlesOf, shortTitleOf } from '../model/list/list.ts';
import { filesFor, postOf } from './files.ts';
import { firstPosts, forgetAccepted } from './outbox.ts';
import { access, isAway } from './session.ts';

/** The list of conversations, as the daemon sends its changes. */

export const rows = signal<readonly ConversationRow[]>([]);
const byId = computed(() => new Map(rows.value.map((row) => [row.id, row])));
export const isListed = signal(false);
const shared = computed(() => sharedTitlesOf(rows.value));
const repeated = computed(() => sharedTitlesOf(rows.value, shortTitleOf));
/** Others look the same: their ids tell them apart. */
export const isRepeated = (title: string | null) => repeated.value.has(shortTitleOf(title ?? ''));
/** Titles of several conversations begin so: their ends are shown too. */
export const isShared = (title: string | null = null) => shared.value.has(beginningOf(title ?? ''));

/** Conversations that this person begins and the daemon does not list yet. */
export const begun = computed<readonly ConversationRow[]>(() => {
  const unlisted = [...firstPosts.value].filter(([id]) => !byId.value.has(id));
  return unlisted.map(([id, { post }]) => {
    const names = filesFor(postOf(post.id)).map(({ name }) => name);
    return { ...NEW_ROW, id, title: shortLine(post.content || names.join(', '), TITLE_LENGTH) };
  });
});

/** As the daemon's. */
const TITLE_LENGTH = 60;
const NEW_ROW = {
  ...{ newest: null, phase: '', mode: 'chat' as const, activeAgent: null, archived: false },
  ...{ length: 0, activeLength: 0, updatedAt: '', activeAt: '', tokens: 0, usd: 0, unpricedCalls: 0 },
  ...{ running: [], waiting: [], limited: [], stopped: [], agents: [], people: [], activity: [] },
};

export const rowOf = (id: string) => byId.value.get(id) ?? begun.value.find((one) => one.id === id);

/** As the list shows it; null: it has none, or is not listed yet. */
export const titleOf = (id: string) => withoutAnsi(rowOf(id)?.title ?? '') || null;

/** What this agent does there, as the daemon that works on the conversation says. */
export function activityOf(id: string, agent: string): Activity | undefined {
  return byId.value.get(id)?.activity.find((one) => one.agent === agent);
}

/** Those of the list that were deleted since, here or elsewhere. */
export const deletedIds = signal<ReadonlySet<string>>(new Set());

function change({ whole, conversations, deleted }: ListChange): void {
  batch(() => {
    rows.value = changedRows(whole ? [] : rows.value, conversations as readonly ConversationRow[], deleted);
    forgetAccepted((id) => (whole ? !byId.value.has(id) : deleted.includes(id)));
    const gone = [...deletedIds.value, ...deleted];
    deletedIds.value = new Set(gone.filter((id) => !byId.value.has(id)));
    isListed.value = true;
  });
}

/** Removes a conversation that the person has deleted, before the daemon says so. */
export function forgetRow(id: string): void {
  change({ whole: false, conversations: [], deleted: [id] });
}

export function keepListed(): () => void {
  return followList({
    onList: change,
    onConnection(state) {
      isAway.value = state.kind === 'lost';
      if (state.kind === 'over' && state.code === 'UNAUTHORIZED') access.value = 'token-needed';
    },
  });
}
