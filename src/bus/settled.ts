import { isCount } from '../kernel/index.ts';
import type { StreamPosition } from './post.ts';

/**
 * Which posts of the ingress stream are settled, as the server keeps it for stores that did not settle them. Pure.
 *
 * SETTLED-1  The record never leads the logs: a post in it is in a log, or has a dead letter.
 * SETTLED-2  It belongs to one stream, by its creation time. Of one that was created again, or lost its end, it says nothing. A
 *            server that is killed while it changes the settings of a stream forgets those alone; the stream that is then
 *            created has its posts. It is the same one if it has the newest known post with its sequence and time.
 * SETTLED-3  A store continues from its own position: its logs decide what it has. What other stores settled before
 *            it began (`before`) it skips for ever.
 * SETTLED-4  Another store skips all that is settled, and settles what is not.
 * SETTLED-5  A low-water mark never passes a message that is under way, and never decreases.
 * SETTLED-6  It is the newest message up to which everything opened is settled.
 * SETTLED-7  A store that has no position in this stream, on a server without a record of it, answers none of its posts
 *            before a person has decided on them (`OLD_POSTS`).
 * SETTLED-8  A store reads again what is after its own record: a server that was restored from an older backup gives these
 *            sequences to other posts. Ids suppress repetitions.
 * SETTLED-9  A backup on which no daemon has started answers no post that another store settled, or may have settled, after
 *            its position, before a person has decided on them. A backup is another store than its original.
 */

/** Every post up to `upTo` but those in `open`, which is in ascending order. */
export interface Settled {
  readonly upTo: number;
  readonly open: readonly number[];
}

/** Names a store: its logs, not the daemon that uses them now. */
export interface Owner {
  readonly id: string;
  /** Shown to people. */
  readonly name: string;
}

/** A post of the stream, and when the stream took it, in nanoseconds. */
export interface SeenPost {
  readonly sequence: number;
  readonly time: string;
}

export interface SettledRecord {
  /** The creation time of the stream, as in a `StreamPosition`. */
  readonly stream: string;
  readonly by: Owner;
  readonly settled: Settled;
  /** The part of `settled` that is in no log of `by`. */
  readonly before: Settled | null;
  /** The newest post that `by` read. The stream has another one there if it lost its end. Null: not known. */
  readonly last: SeenPost | null;
  /** The daemon that reads the stream, where several share the logs of `by`. Null: none, or one that is alone. */
  readonly reader: string | null;
}

/** Where one store begins to read. */
export interface Start {
  /** Null: at the oldest post. */
  readonly position: StreamPosition | null;
  /** Posts after `position` that are not to be answered here. */
  readonly skip: Settled | null;
  readonly before: Settled | null;
  /** Which of the posts after the store's own position others settled, and who did last; null: none. */
  readonly elsewhere: { readonly after: number; readonly settled: Settled; readonly by: string } | null;
  /** It is known which posts of the stream are settled. If not, each of them may have an answer (SETTLED-7). */
  readonly isKnown: boolean;
}

interface StartQuery {
  readonly own: StreamPosition | null;
  readonly owner: Owner;
  /** As the server has it. */
  readonly record: SettledRecord | null;
  /** The stream lost its end since the record was written (SETTLED-2); the caller has compared `last`. */
  readonly hasLostEnd?: boolean;
  /** Nothing is skipped. */
  readonly isReplay: boolean;
  readonly stream: { readonly created: string; readonly last: number };
}

export function startOf({ own, owner, record, hasLostEnd = false, isReplay, stream }: StartQuery): Start {
  const ofStream = record?.stream === stream.created ? record : null;
  const isOwn = ofStream?.by.id === owner.id;
  const fits = !hasLostEnd && ofStream !== null && ofStream.settled.upTo <= stream.last;
  const isKnown =
    own?.stream === stream.created || (ofStream !== null && (isOwn || ofStream.settled.upTo <= stream.last));
  const nothing = { skip: null, before: null, elsewhere: null, isKnown };
  if (isReplay) return { position: null, ...nothing };
  // The store's own position may be in the lost part; ids suppress repeated posts.
  if (hasLostEnd) return { position: { stream: stream.created, sequence: 0 }, ...nothing };
  const known = isOwn ? upToRecord(own, ofStream, stream.last) : own;
  const before = fits ? (isOwn ? ofStream.before : ofStream.settled) : null;
  if (!fits || before === null) return { position: known, ...nothing };
  const ownFits = known?.stream === stream.created && known.sequence <= stream.last;
  const after = ownFits ? known.sequence : 0;
  const start = Math.max(after, markOf(before));
  return {
    position: { stream: stream.created, sequence: start },
    skip: before.upTo > start ? before : null,
    before,
    elsewhere: !isOwn && before.upTo > after ? { after, settled: before, by: ofStream.by.name } : null,
    isKnown,
  };
}

/** SETTLED-8. A position after the end of the stream is left to the reader. */
function upToRecord(own: StreamPosition | null, { stream, settled }: SettledRecord, last: number) {
  if (own?.stream !== stream || own.sequence <= settled.upTo || own.sequence > last) return own;
  return { ...own, sequence: settled.upTo };
}

/** Every post up to here is settled. */
export function markOf({ upTo, open }: Settled): number {
  const [oldest] = open;
  return oldest === undefined ? upTo : oldest - 1;
}

export function covers({ upTo, open }: Settled): (sequence: number) => boolean {
  const excluded = new Set(open);
  return (sequence) => sequence <= upTo && !excluded.has(sequence);
}

export function union(one: Settled, other: Settled | null): Settled {
  if (other === null) return one;
  const [less, more] = one.upTo <= other.upTo ? [one, other] : [other, one];
  const excluded = new Set(less.open);
  const open = more.open.filter((sequence) => sequence > less.upTo || excluded.has(sequence));
  return { upTo: more.upTo, open };
}

/** Whether `next` may replace `known`: a post that is settled stays settled while the stream exists. */
export function isAhead(next: SettledRecord, known: SettledRecord | null): boolean {
  if (known === null || known.stream !== next.stream) return true;
  const [one, other] = [next.settled, known.settled];
  const gained = markOf(one) - markOf(other) || one.upTo - other.upTo || other.open.length - one.open.length;
  return gained > 0;
}

/** Null: the text is no such record. */
export function parseSettledRecord(text: string): SettledRecord | null {
  try {
    const { stream, by, settled, before, last, reader } = JSON.parse(text);
    if (typeof stream !== 'string' || typeof by?.id !== 'string' || typeof by.name !== 'string') return null;
    if (!isSettled(settled) || !(before === null || isSettled(before))) return null;
    if (last !== null && !(isCount(last?.sequence) && /^\d+$/.test(last.time))) return null;
    return { stream, by, settled, before, last, reader: typeof reader === 'string' ? reader : null };
  } catch {
    return null;
  }
}

function isSettled(value: unknown): value is Settled {
  const { upTo, open } = (value ?? {}) as Partial<Settled>;
  return isCount(upTo) && Array.isArray(open) && open.every(isCount);
}

/** How far a stream was read when its messages are settled out of order. */
export class LowWaterMark {
  #value: number;
  /** Opened sequences in ascending order; those before `#head` are settled. */
  #opened: number[] = [];
  #head = 0;
  readonly #settled = new Set<number>();

  /** `start`: everything up to here was settled before. */
  constructor(start: number) {
    this.#value = start;
  }

  get value(): number {
    return this.#value;
  }

  get underWay(): number {
    return this.#opened.length - this.#head - this.#settled.size;
  }

  /** The oldest under way, or null. */
  get oldest(): number | null {
    return this.#opened[this.#head] ?? null;
  }

  /** A message is under way. Sequences come in ascending order; gaps are fine. */
  open(sequence: number): void {
    this.#opened.push(sequence);
  }

  /** The message is settled. True if that moved the mark. */
  settle(sequence: number): boolean {
    this.#settled.add(sequence);
    const before = this.#value;
    for (;;) {
      const oldest = this.#opened[this.#head];
      if (oldest === undefined || !this.#settled.delete(oldest)) break; // SETTLED-5
      this.#value = oldest; // SETTLED-6
      this.#head += 1;
    }
    this.#forgetSettled();
    return this.#value !== before;
  }

  /** Settled messages, as a range with at most `mostOpen` exceptions; the range ends before the next one. */
  settled(mostOpen: number): Settled {
    const open: number[] = [];
    let upTo = this.#value;
    let kept = 0;
    let left = this.#settled.size;
    for (let at = this.#head; left > 0; at += 1) {
      const sequence = this.#opened[at] as number;
      if (this.#settled.has(sequence)) {
        [upTo, kept] = [sequence, open.length];
        left -= 1;
      } else if (open.length === mostOpen) break;
      else open.push(sequence);
    }
    return { upTo, open: open.slice(0, kept) };
  }

  #forgetSettled(): void {
    if (this.#head < 1_024 && this.#head < this.#opened.length) return;
    this.#opened = this.#opened.slice(this.#head);
    this.#head = 0;
  }
}
