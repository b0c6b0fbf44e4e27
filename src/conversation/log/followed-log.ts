import type { Entry } from './entry.ts';

/**
 * The position of one reader that follows a log through the live feed: it emits each entry once, in order.
 *
 * FOLLOWED-1 Where daemons share logs, the feed also contains appends that the server refused: two daemons may claim a
 *            conversation at once, or a frozen one may resume. Only the log is authoritative.
 * FOLLOWED-2 An append of the feed is accepted if it has the next index and contains no claim. Otherwise the log is read
 *            until it has an entry at that index, at most `MOST_READINGS` times.
 * FOLLOWED-3 If the log does not have the entry that was emitted last, the log was deleted and made again. A log that is
 *            shorter but not empty may still receive the appends of the feed: it is read `MOST_READINGS` times first.
 */

/** Pause in milliseconds between two readings of a log that lacks an append of the feed, and the most readings. */
export const READ_AGAIN_MS = 50;
const MOST_READINGS = 100;

export interface LogPage {
  readonly length: number;
  readonly entries: readonly Entry[];
}

export interface LogRead {
  /** New entries. */
  readonly entries: readonly Entry[];
  /** Whether to read the log again: at once (`now`), or after `READ_AGAIN_MS`. */
  readonly again: 'no' | 'now' | 'later';
}

export class FollowedLog {
  #next: number;
  /** Emitted last. */
  #newest: Entry | null = null;
  /** `#newest` came from the feed and was not seen in the log. */
  #isFromFeed = false;
  /** The last page contained `#newest` and had no space for another entry. */
  #isConfirmed = false;
  /** FOLLOWED-2: the highest index that the feed announced and the log may lack. */
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

  /** Index at which the next page must begin. */
  get from(): number {
    return this.#isConfirmed ? this.#next : (this.#newest?.index ?? this.#next);
  }

  /** The entries of one append of the feed; null: read the log instead. */
  fromFeed(append: readonly Entry[]): readonly Entry[] | null {
    const isNext = append.every(({ index }, place) => index === this.#next + place);
    if (isNext && append[0]?.type !== 'claim') {
      this.#isFromFeed ||= append.length > 0;
      return this.#passed(append);
    }
    this.doubt(append);
    return null;
  }

  /** For an append that arrived while the log was read. */
  doubt(append: readonly Entry[]): void {
    this.#doubted = Math.max(this.#doubted, append[0]?.index ?? -1);
  }

  /** A page that begins at `from`; null: it belongs to another log (FOLLOWED-3). */
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
