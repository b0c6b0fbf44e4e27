import type { AnswerOf } from '../../../bus/contract.ts';
import type { Activity, ConversationRow } from '../answers.ts';

/** Which conversations the list shows, and in which order. */

export const SHOWN = {
  all: 'All',
  unread: 'Unread',
  waiting: 'Waiting',
  running: 'Running',
  failed: 'Failed',
  mine: 'Mine',
  archived: 'Archived',
} as const;
export type Shown = keyof typeof SHOWN;

export interface ListFilter {
  readonly shown: Shown;
  /** Empty: any. */
  readonly agent: string;
  readonly phase: string;
  /** In the title or the id. */
  readonly text: string;
}

/** What this browser knows about conversations. */
export interface Known {
  readonly pins: ReadonlySet<string>;
  /** The ids that messages of this browser had: a person may change the name. */
  readonly mine: ReadonlySet<string>;
  isUnread(row: ConversationRow): boolean;
}

export const hasFailed = ({ activity = [] }: ConversationRow): boolean =>
  activity.some(({ status }) => status === 'failed');

/** What a person reads first comes first. A program that is not connected is named elsewhere. */
const WAITS = {
  approval: 'approval needed',
  outcome: 'outcome unknown',
  question: 'answer needed',
  input: 'message needed',
  agent: 'waits for an agent',
};

const FOR_PERSONS: ReadonlySet<string> = new Set(['approval', 'outcome', 'question']);

const kindOf = (one: Activity) => (one.asks === undefined ? one.for : 'question');

/** A person is waited for, also where another agent works. */
export const needsPerson = ({ activity }: Pick<ConversationRow, 'activity'>): boolean =>
  activity.some(({ for: what = '' }) => FOR_PERSONS.has(what));

/** What a waiting conversation waits for: each thing that a person can do, else one of the others. */
export function waitOf({ activity }: Pick<ConversationRow, 'activity'>): string {
  const waits = Object.entries(WAITS).filter(([kind]) => activity.some((one) => kindOf(one) === kind));
  const shown = needsPerson({ activity })
    ? waits.filter(([kind]) => FOR_PERSONS.has(kind))
    : waits.slice(0, 1);
  return shown.map(([, words]) => words).join(', ') || 'waits';
}

/** Never 0: the id decides between rows of the same time. */
export function newestFirst(a: ConversationRow, b: ConversationRow): number {
  if (a.activeAt !== b.activeAt) return a.activeAt < b.activeAt ? 1 : -1;
  return a.id < b.id ? -1 : 1;
}

/** The rows in the order of the list after a change. A deletion wins over a row. */
export function changedRows(
  sorted: readonly ConversationRow[],
  changed: readonly ConversationRow[],
  deleted: readonly string[],
): readonly ConversationRow[] {
  const newest = new Map(changed.map((row) => [row.id, row]));
  const others = sorted.filter(({ id }) => !newest.has(id));
  const gone = new Set(deleted);
  return [...others, ...newest.values()].filter(({ id }) => !gone.has(id)).sort(newestFirst);
}

/** What a narrow list shows of a title: those that share it are not told apart by it. */
export const beginningOf = (title: string): string => title.slice(0, 24);

/** A title, and apart from it its last short words or the end of a long one: they tell those that begin alike apart, unless it is cut. */
export const partsOf = (title: string): readonly string[] =>
  /^(.{24,}?\s|.{16,}(?=.{8}$))(\S[^(]{0,15})(?<!…)$/su.exec(title)?.slice(1) ?? [title];

/** What is in sight of a title in any list. */
export const shortTitleOf = (title: string): string => `${beginningOf(title)}…${partsOf(title)[1] ?? ''}`;

/** What several of them share: beginnings of titles, or as `part` says. */
export function sharedTitlesOf(rows: readonly ConversationRow[], part = beginningOf): ReadonlySet<string> {
  const all = rows.flatMap(({ title }) => (title === null ? [] : part(title)));
  const first = new Set<string>();
  return new Set(all.filter((one) => first.size === first.add(one).size));
}

/** Pinned ones first, then the newest. Rows that are sorted already are sorted fastest. */
export function listed(
  rows: readonly ConversationRow[],
  filter: ListFilter,
  known: Known,
): readonly ConversationRow[] {
  const wanted = filter.text.trim().toLowerCase();
  const fits = (row: ConversationRow) =>
    (row.archived === true) === (filter.shown === 'archived') &&
    IS_SHOWN[filter.shown](row, known) &&
    (filter.phase === '' || row.phase === filter.phase) &&
    (filter.agent === '' || row.agents.includes(filter.agent)) &&
    (wanted === '' || `${row.title ?? ''} ${row.id}`.toLowerCase().includes(wanted));
  const found = rows.filter(fits).sort(newestFirst);
  const isPinned = ({ id }: ConversationRow) => known.pins.has(id);
  return [...found.filter(isPinned), ...found.filter((row) => !isPinned(row))];
}

const IS_SHOWN: Readonly<Record<Shown, (row: ConversationRow, known: Known) => boolean>> = {
  all: () => true,
  archived: () => true,
  mine: ({ people }, { mine }) => people.some((person) => mine.has(person)),
  unread: (row, known) => known.isUnread(row),
  waiting: ({ waiting }) => waiting.length > 0,
  running: ({ running }) => running.length > 0,
  failed: hasFailed,
};

/** The entries that a person has seen of each conversation. Conversations that are older than `since` count as read. */
export type Seen = Pick<AnswerOf<'reading'>, 'since' | 'lengths'>;

export function isUnread(row: ConversationRow, { since, lengths }: Seen): boolean {
  const seen = Object.hasOwn(lengths, row.id) ? lengths[row.id] : undefined;
  return seen === undefined ? row.activeAt > since : row.activeLength > seen;
}

/** The newest come last; of more than `most`, the oldest are forgotten. */
export function withSeen({ since, lengths }: Seen, seen: ReadonlyMap<string, number>, most = 10_000): Seen {
  const others = Object.entries(lengths).filter(([other]) => !seen.has(other));
  return { since, lengths: Object.fromEntries([...others, ...seen].slice(-most)) };
}
