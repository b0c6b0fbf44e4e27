import type { Entry } from '../../conversation/index.ts';
import type { Arrival } from '../../gateway/index.ts';
import { RunningTexts } from './running-texts.ts';

type Watcher = (arrival: Arrival) => void;

/** Subscribes to what a conversation publishes, where another process may publish it. */
export type Follow = (conversation: string, tell: Watcher) => { readonly ready: Promise<void>; stop(): void };

interface Watched {
  readonly watchers: Set<Watcher>;
  readonly ready: Promise<void>;
  stop(): void;
}

/**
 * Passes on what a conversation publishes to watchers in this process, in the order of the bus. A watcher is called
 * synchronously, takes no time and does not throw.
 */
export class Watchers {
  readonly #of = new Map<string, Watched>();
  readonly #follow: Follow | undefined;
  readonly #texts = new RunningTexts();

  constructor(follow?: Follow) {
    this.#follow = follow;
  }

  /** Publishes to watchers. Does nothing where `follow` is set: watchers get it from there. */
  tell(conversation: string, arrival: Arrival): void {
    this.#texts.take(conversation, arrival);
    if (this.#follow === undefined) this.#spread(conversation, arrival);
  }

  /** The text so far of the model calls that run in this daemon. Later chunks continue it. */
  textsOf(conversation: string): readonly Arrival[] {
    return this.#texts.of(conversation);
  }

  /** Returns a function that ends it, and may be called twice. */
  watch(conversation: string, watcher: Watcher): () => void {
    const watched = this.#of.get(conversation) ?? this.#begin(conversation);
    watched.watchers.add(watcher);
    return () => {
      watched.watchers.delete(watcher);
      if (watched.watchers.size > 0 || this.#of.get(conversation) !== watched) return;
      this.#of.delete(conversation);
      watched.stop();
    };
  }

  /** Resolves when watchers of this conversation miss nothing from now on: a read of the log then leaves no gap. */
  async ready(conversation: string): Promise<void> {
    await this.#of.get(conversation)?.ready;
  }

  #begin(conversation: string): Watched {
    const followed = this.#follow?.(conversation, (arrival) => this.#spread(conversation, arrival));
    const { ready, stop } = followed ?? { ready: Promise.resolve(), stop: () => undefined };
    const watched = { watchers: new Set<Watcher>(), ready, stop };
    this.#of.set(conversation, watched);
    return watched;
  }

  #spread(conversation: string, arrival: Arrival): void {
    for (const watcher of this.#of.get(conversation)?.watchers ?? []) watcher(arrival);
  }
}

/**
 * The entries of one answer: as many as fit.
 *
 * WATCHERS-1 Never more bytes than `room`, as long as an entry without its long texts fits.
 * WATCHERS-2 At least one, if there is one: an entry that fits no answer must not hide those after it.
 */

/** Characters that are kept of a long text, at most and at least. */
const MOST_SHOWN = 32_768;
const LEAST_SHOWN = 256;

export function pageOf(found: readonly Entry[], room: number): readonly Entry[] {
  let left = room;
  const fitting = found.findIndex((entry) => {
    left -= sizeOf(entry) + 1;
    return left < 0;
  });
  if (fitting < 0) return found;
  const [first] = found;
  return fitting === 0 && first ? [shortened(first, room)] : found.slice(0, fitting);
}

/** An entry with its long texts cut, and `truncated`: the log has it complete. */
function shortened(entry: Entry, room: number): Entry {
  for (let shown = MOST_SHOWN; ; shown /= 2) {
    const short = cutTo(entry, shown);
    if (shown <= LEAST_SHOWN || sizeOf(short) < room) return short as Entry;
  }
}

function cutTo(entry: Entry, shown: number): object {
  const cut = Object.entries(entry).map(([key, value]) => {
    if (typeof value === 'string') return [key, value.slice(0, shown).replace(/\p{Surrogate}$/u, '')];
    const isLarge = JSON.stringify(value ?? null).length > shown;
    return isLarge ? [key, undefined] : [key, value];
  });
  return { ...Object.fromEntries(cut), truncated: true };
}

function sizeOf(entry: object): number {
  return Buffer.byteLength(JSON.stringify(entry));
}
