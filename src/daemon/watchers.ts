import type { Arrival } from '../gateway/index.ts';

type Watcher = (arrival: Arrival) => void;

/**
 * Who in this process is told what a conversation publishes: the same as goes to the bus, in the same order.
 * A watcher is called at once, takes no time and does not throw.
 */
export class Watchers {
  readonly #of = new Map<string, Set<Watcher>>();

  tell(conversation: string, arrival: Arrival): void {
    for (const watcher of this.#of.get(conversation) ?? []) watcher(arrival);
  }

  /** Answers with how to end it; again is fine. */
  watch(conversation: string, watcher: Watcher): () => void {
    const watching = this.#of.get(conversation) ?? new Set();
    watching.add(watcher);
    this.#of.set(conversation, watching);
    return () => {
      watching.delete(watcher);
      if (watching.size === 0 && this.#of.get(conversation) === watching) this.#of.delete(conversation);
    };
  }
}
