import type { CallPlace, DeliveryMode } from '../log/entry.ts';

/** An entry that is routed to an agent and waits for its turn. */
export interface WaitingEntry {
  readonly index: number;
  readonly delivery: DeliveryMode;
  /** Agent hops from the person's message that began this chain (L15). */
  readonly hops: number;
  /** The call that delegated it, if any. */
  readonly delegatedBy: Delegation | null;
  /** What it brings to the turn that it starts: it joins no other entry. */
  readonly brings?: 'tools' | 'schema';
}

/** The call of another agent that a turn, or a waiting entry, answers. */
export interface Delegation {
  readonly agent: string;
  readonly call: CallPlace;
  /** The agents that wait for this answer, the first asker first. None of them may be asked again (V13). */
  readonly chain: readonly string[];
}

/**
 * The entries that wait for an agent, oldest first: up to tens of thousands for an agent that is busy for long.
 *
 * WAITING-1 Immutable.
 * WAITING-2 Adding an item costs amortised O(log n). Items are stored in runs, each at least twice as long as the next;
 *           a new item is a run of its own, and runs of equal length are merged.
 * WAITING-3 Removing the oldest item costs O(number of runs); removing others costs O(n).
 */
export class WaitingQueue implements Iterable<WaitingEntry> {
  // `this`: tsc reads the name of the class here before it is set.
  static readonly EMPTY = new this([], 0);

  readonly #runs: readonly (readonly WaitingEntry[])[];
  /** Number of removed items at the start of the first run. */
  readonly #gone: number;
  readonly length: number;

  private constructor(runs: readonly (readonly WaitingEntry[])[], gone: number) {
    this.#runs = runs;
    this.#gone = gone;
    this.length = runs.reduce((sum, run) => sum + run.length, 0) - gone;
  }

  static of(items: readonly WaitingEntry[]): WaitingQueue {
    return items.length === 0 ? WaitingQueue.EMPTY : new WaitingQueue([items], 0);
  }

  get oldest(): WaitingEntry | undefined {
    return this.#runs[0]?.[this.#gone];
  }

  *[Symbol.iterator](): Iterator<WaitingEntry> {
    let skipped = this.#gone;
    for (const run of this.#runs) {
      for (let place = skipped; place < run.length; place++) yield run[place] as WaitingEntry;
      skipped = 0;
    }
  }

  with(item: WaitingEntry): WaitingQueue {
    const runs = this.#runs.slice();
    let last: readonly WaitingEntry[] = [item];
    for (let before = runs.at(-1); before && before.length <= last.length; before = runs.at(-1)) {
      runs.pop();
      // Drop the removed items of the first run for good.
      last = [...(runs.length === 0 ? before.slice(this.#gone) : before), ...last];
    }
    return new WaitingQueue([...runs, last], runs.length === 0 ? 0 : this.#gone);
  }

  /** Adds an item before all others. */
  withOldest(item: WaitingEntry): WaitingQueue {
    return WaitingQueue.of([item, ...this]);
  }

  without(indexes: readonly number[]): WaitingQueue {
    if (this.length === 0 || indexes.length === 0) return this;
    if (indexes.length === 1 && this.oldest?.index === indexes[0]) return this.#withoutOldest();
    const taken = new Set(indexes);
    const left = this.filter((item) => !taken.has(item.index));
    return left.length === this.length ? this : WaitingQueue.of(left);
  }

  #withoutOldest(): WaitingQueue {
    if (this.length === 1) return WaitingQueue.EMPTY;
    const isLastOfRun = this.#gone + 1 === this.#runs[0]?.length;
    return isLastOfRun
      ? new WaitingQueue(this.#runs.slice(1), 0)
      : new WaitingQueue(this.#runs, this.#gone + 1);
  }

  find(fits: (item: WaitingEntry) => boolean): WaitingEntry | undefined {
    for (const item of this) if (fits(item)) return item;
    return undefined;
  }

  some(fits: (item: WaitingEntry) => boolean): boolean {
    return this.find(fits) !== undefined;
  }

  filter(fits: (item: WaitingEntry) => boolean): WaitingEntry[] {
    const found: WaitingEntry[] = [];
    for (const item of this) if (fits(item)) found.push(item);
    return found;
  }

  map<T>(change: (item: WaitingEntry) => T): T[] {
    return [...this].map(change);
  }
}

/** It joins others in a trigger. */
function isJoining({ delivery, brings }: WaitingEntry): boolean {
  return delivery !== 'queue' && !brings;
}

/** V12: the oldest; unless it is queued, with all others that are not. */
export function nextItems(waiting: WaitingQueue): readonly WaitingEntry[] {
  const { oldest } = waiting;
  if (!oldest) return [];
  return isJoining(oldest) ? waiting.filter(isJoining) : [oldest];
}

export function nextTrigger(waiting: WaitingQueue): number[] {
  return nextItems(waiting).map((item) => item.index);
}
