import { computed, effect, signal } from '@preact/signals';
import type { Entry } from '../../conversation/index.ts';
import { requests } from '../api/requests.ts';
import { keepValue, readList } from '../api/session.ts';
import { type InboxItem, inboxOf } from '../model/list/inbox.ts';
import { isListed, rows } from './conversations.ts';

/** What needs a person, and what this person has answered or dismissed. */

const DISMISSED = 'parley.dismissed';

/** Answered in this tab; the list may be older. */
const answered = signal<ReadonlySet<string>>(new Set());
/** Failures that are dismissed in this browser. */
const dismissed = signal<ReadonlySet<string>>(new Set(readList(DISMISSED)));

const all = computed(() => inboxOf(rows.value));
export const inbox = computed<readonly InboxItem[]>(() =>
  all.value.filter(({ key }) => !answered.value.has(key) && !dismissed.value.has(key)),
);

export function leaveOut({ key }: InboxItem): void {
  answered.value = new Set([...answered.value, key]);
}

/** Keys of things that are over are forgotten. */
export function dismiss(items: readonly InboxItem[]): void {
  const current = new Set(all.value.map(({ key }) => key));
  const kept = [...dismissed.value].filter((key) => !isListed.value || current.has(key));
  dismissed.value = new Set([...kept, ...items.map(({ key }) => key)]);
  keepValue(DISMISSED, [...dismissed.value]);
}

/** The entry of an item; undefined: it cannot be read now, or the list does not name it. */
export async function readEntry({ conversation, entry }: InboxItem): Promise<Entry | undefined> {
  if (entry === null) return undefined;
  const page = await requests.entries(conversation, entry, 1).catch(() => null);
  return page?.entries[0];
}

/** Tells `listener` what is new, after the first list. Runs until the returned function is called. */
export function onNewItems(listener: (items: readonly InboxItem[]) => void): () => void {
  let known: ReadonlySet<string> | null = null;
  return effect(() => {
    if (!isListed.value) return;
    const before = known;
    const items = inbox.value;
    known = new Set([...(before ?? []), ...items.map(({ key }) => key)]);
    const news = items.filter(({ key }) => before?.has(key) === false);
    if (news.length > 0) listener(news);
  });
}
