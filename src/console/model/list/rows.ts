import type { ConversationRow } from '../answers.ts';
import { newestFirst } from './list.ts';

/**
 * All rows in the order of the list.
 *
 * ROWS-1 After each change, the rows are those of a sorted rebuild, and unchanged rows are the same objects. A change of few rows
 *    moves those alone.
 */
export class Rows {
  /** Another array after each change. */
  sorted: readonly ConversationRow[] = [];
  /** Titles of more than one conversation. Another set after each change of them. */
  sharedTitles: ReadonlySet<string> = new Set();
  readonly #byId = new Map<string, ConversationRow>();
  /** How many rows have a title. */
  readonly #titles = new Map<string, number>();
  readonly #shared = new Set<string>();
  #isSharedNew = false;

  get(id: string): ConversationRow | undefined {
    return this.#byId.get(id);
  }

  replace(rows: readonly ConversationRow[]): void {
    this.#byId.clear();
    this.#titles.clear();
    this.#shared.clear();
    this.#isSharedNew = true;
    for (const row of rows) this.#byId.set(row.id, row);
    for (const { title } of this.#byId.values()) this.#count(title, 1);
    this.#show([...this.#byId.values()].sort(newestFirst));
  }

  change(changed: readonly ConversationRow[], deleted: readonly string[]): void {
    if (changed.length + deleted.length > MOST_MOVED) {
      const gone = new Set(deleted);
      this.replace([...this.#byId.values(), ...changed].filter(({ id }) => !gone.has(id)));
      return;
    }
    const sorted = [...this.sorted];
    for (const row of changed) {
      const before = this.#byId.get(row.id);
      if (before) sorted.splice(placeOf(sorted, before), 1);
      sorted.splice(placeOf(sorted, row), 0, row);
      this.#byId.set(row.id, row);
      this.#retitle(before?.title ?? null, row.title);
    }
    for (const id of deleted) {
      const before = this.#byId.get(id);
      if (!before) continue;
      sorted.splice(placeOf(sorted, before), 1);
      this.#byId.delete(id);
      this.#retitle(before.title, null);
    }
    this.#show(sorted);
  }

  #retitle(before: string | null, title: string | null): void {
    if (before === title) return;
    this.#count(before, -1);
    this.#count(title, 1);
  }

  #show(sorted: readonly ConversationRow[]): void {
    this.sorted = sorted;
    if (this.#isSharedNew) this.sharedTitles = new Set(this.#shared);
    this.#isSharedNew = false;
  }

  #count(title: string | null, by: 1 | -1): void {
    if (title === null) return;
    const count = (this.#titles.get(title) ?? 0) + by;
    if (count === 0) this.#titles.delete(title);
    else this.#titles.set(title, count);
    if (count > 1 === this.#shared.has(title)) return;
    if (count > 1) this.#shared.add(title);
    else this.#shared.delete(title);
    this.#isSharedNew = true;
  }
}

/** To move more rows costs more than to sort all. */
const MOST_MOVED = 50;

/** Where the row is, or belongs. */
function placeOf(sorted: readonly ConversationRow[], row: ConversationRow): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const there = sorted[middle];
    if (there && newestFirst(there, row) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
