import type { Entry } from './entry.ts';

/**
 * One reader's place in a log that it follows by the feed: each entry once, in order.
 *
 * FOLLOWED-1 Where daemons share the work, the feed also has appends that the server refused: two daemons claim a
 *            conversation at once, or one that was frozen wakes. Only the log decides.
 * FOLLOWED-2 An append is taken from the feed if it is exactly what comes next and claims nothing. Any other one is in
 *            doubt: the log is read instead, until it has something at that index or has been read often enough.
 * FOLLOWED-3 The log has to have the entry that was passed on last; else it was deleted. A log that is shorter, though not
 *            empty, may get what the feed had: then it is read often enough first.
 */

/** Milliseconds between two readings of a log that lacks what the feed had, and the most readings. */
export const READ_AGAIN_MS = 50;
const MOST_READINGS = 100;

export interface LogPage {
  readonly length: number;
  readonly entries: readonly Entry[];
}

export interface LogRead {
  /** What is new. */
  readonly entries: readonly Entry[];
  /** Whether the log is to be read again: at once (`now`), or after `READ_AGAIN_MS`. */
  readonly again: 'no' | 'now' | 'later';
}

export class FollowedLog {
  #next: number;
  /** Passed on last. */
  #newest: Entry | null = null;
  /** The log was not seen to have that one. */
  #isFromFeed = false;
  /** The last page had that one and no room for another. */
  #isConfirmed = false;
  /** FOLLOWED-2: the log has something at this index, or will have. */
  #doubted = -1;
  #readings = 0;

  constructor(next: number) {
    this.#next = next;
  }

  get next(): number {
    return this.#next;
  }

  get newest(): Entry | null {
    return this.#newest;
  }

  /** Where the next page is to begin. */
  get from(): number {
    return this.#isConfirmed ? this.#next : (this.#newest?.index ?? this.#next);
  }

  /** One append of the feed, if it is to be taken; null: the log is to be read. */
  fromFeed(append: readonly Entry[]): readonly Entry[] | null {
    const isNext = append.every(({ index }, place) => index === this.#next + place);
    if (isNext && append[0]?.type !== 'claim') {
      this.#isFromFeed ||= append.length > 0;
      return this.#passed(append);
    }
    this.doubt(append);
    return null;
  }

  /** It came while the log was read. */
  doubt(append: readonly Entry[]): void {
    this.#doubted = Math.max(this.#doubted, append[0]?.index ?? -1);
  }

  /** A page that begins at `from`; null: it is of another log (FOLLOWED-3). */
  fromLog({ length, entries }: LogPage): LogRead | null {
    const known = this.from < this.#next ? this.#newest : null;
    if (known && this.#isFromFeed && length > 0 && length <= known.index) {
      this.#doubted = Math.max(this.#doubted, known.index);
      if (this.lacks(length)) return { entries: [], again: 'later' };
    }
    const isSame = known ? entries[0]?.id === known.id : length >= this.#next;
    if (!isSame) return null;
    this.#isFromFeed = false;
    const fresh = this.#passed(known ? entries.slice(1) : entries);
    this.#isConfirmed = known !== null && fresh.length === 0 && this.#next < length;
    const hasMore = this.#next < length && (fresh.length > 0 || this.#isConfirmed);
    return { entries: fresh, again: hasMore ? 'now' : this.lacks(length) ? 'later' : 'no' };
  }

  /** FOLLOWED-2 */
  lacks(length: number): boolean {
    this.#readings = this.#doubted < length ? 0 : this.#readings + 1;
    if (this.#readings > 0 && this.#readings <= MOST_READINGS) return true;
    this.#readings = 0;
    this.#doubted = -1;
    return false;
  }

  #passed(entries: readonly Entry[]): readonly Entry[] {
    this.#next += entries.length;
    this.#newest = entries.at(-1) ?? this.#newest;
    this.#isConfirmed = false;
    return entries;
  }
}
