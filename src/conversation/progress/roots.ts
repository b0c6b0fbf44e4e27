import type { Entry } from '../log/entry.ts';
import { turnInputOf } from './turn-watch.ts';

/** Folds a log, or its end, into the posts that caused each turn, through delegations and handoffs. */
export class Roots {
  readonly #posts = new Set<number>();
  /** By the index of a delegation or handoff: its turn. */
  readonly #passedOnBy = new Map<number, string>();
  readonly #of = new Map<string, Set<number>>();

  observe(entry: Entry): void {
    if (entry.type === 'message' && entry.author.kind === 'person') this.#posts.add(entry.index);
    else if (entry.type === 'delegation-requested' || entry.type === 'handoff') {
      if (entry.turnId !== undefined) this.#passedOnBy.set(entry.index, entry.turnId);
    }
    const taken = turnInputOf(entry);
    if (taken) this.#takeUp(taken.turnId, taken.messages);
  }

  /** Oldest first. */
  of(turnId: string): readonly number[] {
    return [...(this.#of.get(turnId) ?? [])];
  }

  #takeUp(turnId: string, taken: readonly number[]): void {
    const roots = this.#of.get(turnId) ?? new Set();
    this.#of.set(turnId, roots);
    for (const index of taken) {
      if (this.#posts.has(index)) roots.add(index);
      for (const root of this.of(this.#passedOnBy.get(index) ?? '')) roots.add(root);
    }
  }
}
