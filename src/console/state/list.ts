import { computed, effect, signal } from '@preact/signals';
import { keepValue, keptList, keptSet, onStored, readValue, whileVisible } from '../api/browser.ts';
import { requests } from '../api/requests.ts';
import type { ConversationRow } from '../model/answers.ts';
import { withoutAnsi } from '../model/format.ts';
import { isUnread, type ListFilter, listed, type Seen, withSeen } from '../model/list/list.ts';
import { loading, opened, version } from './conversation.ts';
import { begun, rows } from './conversations.ts';
import { attempt, identity, me, myIds, notice, sender } from './session.ts';

/** The list of conversations as it is shown, with what this browser keeps about it: pins, and how far each was read. */

export const filter = signal<ListFilter>({ shown: 'all', agent: '', phase: '', text: '' });

/** The filters are shown although none is set. */
export const isFilterOpen = signal(false);

export function narrow(change: Partial<ListFilter>): void {
  filter.value = { ...filter.value, ...change };
}

export const found = computed(() => {
  const isShownAsUnread = (row: ConversationRow) => isNew(row) || row.id === opened.value?.id; // its row stays in reach
  const known = { pins: pins.value, mine: myIds.value, isUnread: isShownAsUnread };
  const mine = begun.value.map((row) => ({ ...row, people: [me.value] }));
  return [mine, rows.value].flatMap((some) => listed(some, filter.value, known));
});

export const isFiltered = computed(
  () => filter.value.shown !== 'all' || filter.value.agent !== '' || filter.value.phase !== '',
);

export type SavedFilter = ListFilter & { readonly name: string };

/** Of this person; where the token is not of one, of this browser. */
const filters = keptList('parley.filters', localStorage, (stored) => stored as SavedFilter[]);
export const savedFilters = filters.list;

/** Null removes it. */
export function saveFilter(name: string, saved: ListFilter | null): void {
  const others = savedFilters.value.filter((one) => one.name !== name);
  filters.keep(saved === null ? others : [...others, { ...saved, name }]);
  void sync({ filters: [...savedFilters.value] });
}

const pinned = keptSet('parley.pins');
export const pins = pinned.texts;
export function pin({ id, title }: ConversationRow, isOn: boolean): void {
  pinned.put(id, isOn);
  const text = `${isOn ? 'Pinned' : 'Unpinned'}: ${withoutAnsi(title ?? id)}`;
  notice.value = { text, hint: '', undo: () => pinned.put(id, !isOn) };
}

const SEEN = 'parley.seen';
const seen = signal<Seen>(readSeen());
onStored(SEEN, () => (seen.value = readSeen()));

/** Renames it, archives it or moves it out of the archive, and offers to undo that. */
export async function label(row: ConversationRow, change: { title?: string; archived?: boolean }) {
  if (!(await attempt(() => requests.label(row.id, { ...change, ...sender() })))) return;
  const isTitle = change.title !== undefined;
  const before = isTitle ? { title: row.title ?? row.id } : { archived: !change.archived };
  const undo = () => void label({ ...row, ...change }, before);
  const done = isTitle ? 'Renamed' : change.archived ? 'Archived' : 'Moved out of the archive';
  notice.value = { text: `${done}: ${withoutAnsi(change.title ?? row.title ?? row.id)}`, hint: '', undo };
}

/** The open conversation counts as read while its page is visible. */
export function isNew(row: ConversationRow): boolean {
  return row.id !== opened.value?.id && isUnread(row, seen.value);
}

export function markUnread(row: ConversationRow): void {
  keepSeen(new Map([[row.id, row.activeLength - 1]]));
}

/** `own`: the entries after it that an answer of this person appends. */
export function markRead(rows: readonly ConversationRow[], own = 0): void {
  keepSeen(new Map(rows.map(({ id, length }) => [id, length + own])));
}

export function markAllRead(rows: readonly ConversationRow[]): void {
  const known = new Map(Object.entries(seen.value.lengths));
  const before = new Map(rows.map(({ id }) => [id, known.get(id) ?? 0]));
  markRead(rows);
  notice.value = { text: `${rows.length} marked as read`, hint: '', undo: () => keepSeen(before) };
}

function readSeen(): Seen {
  const { since, lengths } = (readValue(SEEN) ?? {}) as Partial<Record<string, unknown>>;
  if (typeof since === 'string' && typeof lengths === 'object' && lengths !== null)
    return { since, lengths: lengths as Seen['lengths'] };
  const first = { since: new Date().toISOString(), lengths: {} };
  keepValue(SEEN, first);
  return first;
}

function keepSeen(lengths: ReadonlyMap<string, number>): void {
  seen.value = withSeen(readSeen(), lengths); // another tab may have changed it
  keepValue(SEEN, seen.value);
  if (!isPerson()) return;
  for (const [id, length] of lengths) unsent.set(id, length);
  clearTimeout(sending);
  sending = setTimeout(() => {
    const read = Object.fromEntries(unsent);
    unsent.clear();
    void sync({ read });
  }, SEND_AFTER_MS);
}

/** What the daemon does not know yet. */
const unsent = new Map<string, number>();
let sending: ReturnType<typeof setTimeout> | undefined;
const SEND_AFTER_MS = 1_000;

const isPerson = () => (identity.value?.name ?? null) !== null;

/** Sends changes, and shows what other browsers of this person sent. Without the daemon, this browser keeps them. */
async function sync(changes: Parameters<typeof requests.reading>[0]): Promise<void> {
  if (!isPerson()) return;
  const kept = await requests.reading(changes).catch(() => null);
  if (kept === null) {
    for (const [id, length] of Object.entries(changes.read ?? {}))
      if (!unsent.has(id)) unsent.set(id, length);
    return;
  }
  seen.value = withSeen({ since: kept.since, lengths: kept.lengths }, unsent);
  keepValue(SEEN, seen.value);
  filters.keep(kept.filters as readonly SavedFilter[]);
}

const AFTER_MS = 500;
const SYNC_EVERY_MS = 20_000;

export function keepMarks(): () => void {
  const planned = new Set<string>();
  const endSeen = effect(() => {
    void version.value;
    const here = opened.value;
    if (!here || planned.has(here.id)) return;
    planned.add(here.id);
    setTimeout(() => {
      planned.delete(here.id);
      const length = loading.peek() ? 0 : here.thread.entries.length; // the rest was read before
      if (document.visibilityState === 'visible' && length > 0) keepSeen(new Map([[here.id, length]]));
    }, AFTER_MS);
  });
  const endSync = whileVisible(() => sync({}), SYNC_EVERY_MS); // what other browsers read
  return () => {
    endSeen();
    endSync();
  };
}

/** The conversation whose menu is open; null: none. */
export const organized = signal<string | null>(null);
