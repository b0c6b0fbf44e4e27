import type { CallPlace, Delivery } from '../log/entry.ts';

/** An entry that is routed to an agent and waits for its turn. */
export interface Waiting {
  readonly index: number;
  readonly delivery: Delivery;
  /** Agent hops from the person's message that began this chain (L15). */
  readonly hops: number;
  /** Whose call it is, if it was delegated. */
  readonly delegatedBy: Delegation | null;
}

/** A turn, or what waits for one, that answers another agent's call. */
export interface Delegation {
  readonly agent: string;
  readonly call: CallPlace;
  /** The agents that wait for this answer, the first asker first: none of them may be asked again (V13). */
  readonly chain: readonly string[];
}

/**
 * What waits for an agent, oldest first. Very many posts may wait for one that is busy for long.
 *
 * WAITING-1 A value: nothing here changes what was handed out before.
 * WAITING-2 One more costs the same, however many wait. Items lie in runs, each at least twice as long as the next one; one more
 *    is a run of its own, and runs of the same length become one. So an item is copied once each time their number doubles.
 * WAITING-3 The oldest is taken away at the cost of the runs, of which there are few; taking others costs what waits.
 */
export class WaitingQueue implements Iterable<Waiting> {
  static readonly EMPTY = new WaitingQueue([], 0);

  private readonly runs: readonly (readonly Waiting[])[];
  /** So many of the first run are gone. */
  private readonly gone: number;
  readonly length: number;

  private constructor(runs: readonly (readonly Waiting[])[], gone: number) {
    this.runs = runs;
    this.gone = gone;
    this.length = runs.reduce((sum, run) => sum + run.length, 0) - gone;
  }

  static of(items: readonly Waiting[]): WaitingQueue {
    return items.length === 0 ? WaitingQueue.EMPTY : new WaitingQueue([items], 0);
  }

  get oldest(): Waiting | undefined {
    return this.runs[0]?.[this.gone];
  }

  *[Symbol.iterator](): Iterator<Waiting> {
    let skipped = this.gone;
    for (const run of this.runs) {
      for (let place = skipped; place < run.length; place++) yield run[place] as Waiting;
      skipped = 0;
    }
  }

  /** WAITING-2 */
  with(item: Waiting): WaitingQueue {
    const runs = this.runs.slice();
    let last: readonly Waiting[] = [item];
    for (let before = runs.at(-1); before && before.length <= last.length; before = runs.at(-1)) {
      runs.pop();
      // Of a first run that has lost some, those are left out for good.
      last = [...(runs.length === 0 ? before.slice(this.gone) : before), ...last];
    }
    return new WaitingQueue([...runs, last], runs.length === 0 ? 0 : this.gone);
  }

  /** Before all others. */
  withOldest(item: Waiting): WaitingQueue {
    return WaitingQueue.of([item, ...this]);
  }

  /** WAITING-3 */
  without(indexes: readonly number[]): WaitingQueue {
    if (this.length === 0 || indexes.length === 0) return this;
    if (indexes.length === 1 && this.oldest?.index === indexes[0]) return this.withoutOldest();
    const taken = new Set(indexes);
    const left = this.filter((item) => !taken.has(item.index));
    return left.length === this.length ? this : WaitingQueue.of(left);
  }

  private withoutOldest(): WaitingQueue {
    if (this.length === 1) return WaitingQueue.EMPTY;
    const isLastOfRun = this.gone + 1 === this.runs[0]?.length;
    return isLastOfRun ? new WaitingQueue(this.runs.slice(1), 0) : new WaitingQueue(this.runs, this.gone + 1);
  }

  find(fits: (item: Waiting) => boolean): Waiting | undefined {
    for (const item of this) if (fits(item)) return item;
    return undefined;
  }

  some(fits: (item: Waiting) => boolean): boolean {
    return this.find(fits) !== undefined;
  }

  filter(fits: (item: Waiting) => boolean): Waiting[] {
    const found: Waiting[] = [];
    for (const item of this) if (fits(item)) found.push(item);
    return found;
  }

  map<T>(change: (item: Waiting) => T): T[] {
    return [...this].map(change);
  }
}
