import { effect, signal } from '@preact/signals';
import { keepValue, readList, readValue } from '../api/session.ts';
import type { ConversationRow } from '../model/answers.ts';
import { isUnread, newsOf, type Seen, withSeen } from '../model/list/list.ts';
import { opened, version } from './conversation.ts';

/** What this browser keeps about conversations: pins, and how far they were read. All tabs share it. */

const PINS = 'parley.pins';
const SEEN = 'parley.seen';

export const pins = signal<ReadonlySet<string>>(new Set(readList(PINS)));
const seen = signal<Seen>(readSeen());

export function pin(id: string, isPinned: boolean): void {
  const others = [...pins.value].filter((one) => one !== id);
  pins.value = new Set(isPinned ? [...others, id] : others);
  keepValue(PINS, [...pins.value]);
}

/** The open conversation counts as read while its page is visible. */
export function isNew(row: ConversationRow): boolean {
  return row.id !== opened.value?.id && isUnread(row, seen.value);
}

export function markUnread(row: ConversationRow): void {
  keepSeen(new Map([[row.id, newsOf(row) - 1]]));
}

export function markRead(rows: readonly ConversationRow[]): void {
  keepSeen(new Map(rows.map(({ id, length }) => [id, length])));
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
}

const AFTER_MS = 500;

/** Runs until the returned function is called. */
export function keepMarks(): () => void {
  const planned = new Set<string>();
  const endSeen = effect(() => {
    void version.value;
    const here = opened.value;
    if (!here || planned.has(here.id)) return;
    planned.add(here.id);
    setTimeout(() => {
      planned.delete(here.id);
      const { length } = here.thread.entries;
      if (document.visibilityState === 'visible' && length > 0) keepSeen(new Map([[here.id, length]]));
    }, AFTER_MS);
  });
  const onStorage = ({ key }: StorageEvent) => {
    if (key === SEEN) seen.value = readSeen();
    if (key === PINS) pins.value = new Set(readList(PINS));
  };
  addEventListener('storage', onStorage);
  return () => {
    endSeen();
    removeEventListener('storage', onStorage);
  };
}
