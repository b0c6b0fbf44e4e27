import type { Entry, LiveArrival, Received } from '../conversation/index.ts';
import { ParleyError, sleep } from '../kernel/index.ts';

/**
 * Follows one conversation for one reader: each entry once, in order, and the live text. The live feed is best effort; the
 * log fills its gaps.
 *
 * FOLLOWER-1 Entries have consecutive indexes from the start index on, whatever the feed lost, repeated or reordered.
 *    Entries that the server may have refused are read from the log (FOLLOWED-2).
 * FOLLOWER-2 The subscription is made in the constructor and exists before the log is first read: no entry is missed.
 * FOLLOWER-3 A lost entry without a successor leaves no gap to see: the log is read again after each reconnection, and
 *    every `pollMs`.
 * FOLLOWER-4 Live text that was queued before an entry that was read from the log is dropped.
 * FOLLOWER-5 The queue is bounded. What arrives at the limit while the log is read is dropped and read from the log later.
 *    Otherwise `whenFull` decides.
 * FOLLOWER-6 A log that lacks an entry of the followed log is another log: the follower ends with `CONVERSATION_DELETED`.
 */

/** Maximum of queued characters, approximately. */
const MAX_QUEUED = 4_194_304;
/** The weight of an arrival beyond its texts, in characters. */
const WEIGHT = 200;

/** A message of the feed; its entries may be known already. */
export type Arrival =
  | { readonly kind: 'entries'; readonly entries: readonly Entry[] }
  | LiveArrival
  | { readonly kind: 'reconnected' };

/** The feed and the log of one conversation. */
export interface FollowSource {
  /** Calls back in order for everything published from now on; a promise resolves when the server knows the subscription. */
  subscribe(onArrival: (arrival: Arrival) => void): (() => void) | Promise<() => void>;
  /**
   * One page from an index on; empty, of length 0, if there is no such conversation. Null: the log cannot be read now.
   * An error ends the follower.
   */
  page(from: number, signal: AbortSignal): Promise<LogPage | null>;
}

interface FollowerOptions {
  /** The interval at which the log is read for entries that the feed lost; never by default. */
  readonly pollMs?: number | undefined;
  /** FOLLOWER-5: end with `TOO_SLOW`, or drop what arrives and read it from the log later. */
  readonly whenFull: 'end' | 'drop';
}

interface Queued {
  readonly arrival: Arrival;
  readonly weight: number;
}

export class Follower {
  readonly #source: FollowSource;
  readonly #options: FollowerOptions;
  readonly #closing = new AbortController();
  #unsubscribe: (() => void) | Promise<() => void>;
  #queue: Queued[] = [];
  #weight = 0;
  /** The log from `begin` on; before that everything is queued. */
  #log = new FollowedLog(0);
  #mustReadLog = true;
  /** Before the log is read again. */
  #mustPause = false;
  /** From the first page until the log has no more. */
  #isReading = false;
  /** FOLLOWER-5: the log has entries that were dropped. */
  #hasDropped = false;
  #isTooSlow = false;
  #wake: () => void = () => undefined;

  constructor(source: FollowSource, options: FollowerOptions) {
    this.#source = source;
    this.#options = options;
    this.#unsubscribe = source.subscribe((arrival) => this.#receive(arrival));
    if (typeof this.#unsubscribe !== 'function') this.#unsubscribe.catch(() => undefined); // `take` throws it
  }

  get #isOver(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Starts at this index, before the first `take`. `known`: the log has at least so many entries (FOLLOWER-6). */
  begin(index: number, known = 0): void {
    this.#log = new FollowedLog(index, known);
    this.#mustReadLog = !hasAllFrom(index, this.#queue);
    if (!this.#mustReadLog) this.#dropOlder(index);
  }

  /** The next arrival; null: closed. Throws if the log cannot be read or the reader was too slow. */
  async take(): Promise<Received | null> {
    if (typeof this.#unsubscribe !== 'function') this.#unsubscribe = await this.#unsubscribe;
    for (;;) {
      if (this.#isTooSlow)
        throw new ParleyError('TOO_SLOW', 'the reader is too slow: too much is queued for it', {
          hint: 'the log has all of it; request it again',
        });
      if (this.#isOver) return null;
      const received = this.#mustReadLog ? await this.#read() : this.takeQueued();
      if (received) return received;
      const isIdle = !this.#mustReadLog && this.#queue.length === 0;
      if (isIdle && !this.#isOver) await this.#arrived();
    }
  }

  /** The next arrival, if it is here and needs no reading of the log. */
  takeQueued(): Received | null {
    while (!this.#mustReadLog && !this.#isOver) {
      const arrival = this.#shift();
      if (arrival?.kind === 'live') return arrival;
      if (arrival?.kind === 'entries') {
        const entries = this.#log.fromFeed(arrival.entries);
        this.#mustReadLog = entries === null;
        if (entries?.length) return { kind: 'entries', entries, isCurrent: true };
      } else {
        this.#mustReadLog = arrival !== undefined || this.#hasDropped;
        if (arrival === undefined) break;
      }
    }
    return null;
  }

  /** Idempotent. */
  close(): void {
    if (this.#isOver) return;
    this.#closing.abort();
    this.#queue = [];
    const unsubscribe = this.#unsubscribe;
    if (typeof unsubscribe === 'function') unsubscribe();
    else void unsubscribe.then((leave) => leave()).catch(() => undefined); // never subscribed
    this.#wake();
  }

  #receive(arrival: Arrival): void {
    if (this.#isOver) return;
    const mayDrop = this.#options.whenFull === 'drop' || this.#isReading;
    if (this.#weight <= MAX_QUEUED || !mayDrop) {
      const weight = weightOf(arrival);
      this.#queue.push({ arrival, weight });
      this.#weight += weight;
    } else if (arrival.kind !== 'live') {
      this.#hasDropped = true;
      if (arrival.kind === 'entries') this.#log.doubt(arrival.entries);
    }
    if (this.#weight > MAX_QUEUED && this.#queue.length > 1 && !mayDrop) {
      this.#isTooSlow = true;
      this.close();
    }
    this.#wake();
  }

  #shift(): Arrival | undefined {
    const queued = this.#queue.shift();
    this.#weight -= queued?.weight ?? 0;
    return queued?.arrival;
  }

  /** Resolves at the next arrival, or when the log must be read. */
  #arrived(): Promise<void> {
    const { pollMs } = this.#options;
    return new Promise((resolve) => {
      const timer = pollMs === undefined ? undefined : setTimeout(() => this.#wake(), pollMs);
      this.#wake = () => {
        clearTimeout(timer);
        this.#mustReadLog ||= this.#queue.length === 0;
        this.#wake = () => undefined;
        resolve();
      };
    });
  }

  /** One page of the log; null: nothing can be read now. */
  async #read(): Promise<Received | null> {
    const { signal } = this.#closing;
    if (this.#mustPause) await sleep(READ_AGAIN_MS, signal);
    this.#mustPause = false;
    this.#isReading = true;
    this.#hasDropped = false;
    const page = await this.#source.page(this.#log.from, signal);
    if (this.#isOver) return null;
    const read = page && this.#log.fromLog(page);
    if (page && read === null)
      throw new ParleyError('CONVERSATION_DELETED', 'this conversation was deleted while it was followed', {
        hint: 'request it again to see what was written since',
      });
    this.#isReading = read !== null && read.again !== 'no';
    this.#mustReadLog = this.#isReading;
    this.#mustPause = read?.again === 'later';
    this.#dropOlder(this.#log.next);
    return read && { kind: 'entries', entries: read.entries, isCurrent: !this.#mustReadLog };
  }

  /** FOLLOWER-4: drops everything up to the last entry below `next`. */
  #dropOlder(next: number): void {
    const isOld = ({ arrival }: Queued) =>
      arrival.kind === 'entries' && arrival.entries.some(({ index }) => index < next);
    const isKnown = ({ arrival }: Queued) =>
      arrival.kind === 'entries' && arrival.entries.every(({ index }) => index < next);
    const last = this.#queue.findLastIndex(isOld);
    this.#queue = this.#queue.filter((queued, place) =>
      queued.arrival.kind === 'live' ? place > last : !isKnown(queued),
    );
    this.#weight = this.#queue.reduce((sum, { weight }) => sum + weight, 0);
  }
}

/** Whether the queued feed contains all entries up to this index. */
function hasAllFrom(index: number, queue: readonly Queued[]): boolean {
  const appends = queue.flatMap(({ arrival }) => (arrival.kind === 'entries' ? [arrival.entries] : []));
  const log = new FollowedLog(appends[0]?.[0]?.index ?? index + 1);
  const isWhole = log.next <= index && appends.every((append) => log.fromFeed(append) !== null);
  return isWhole && log.next >= index;
}

function weightOf(arrival: Arrival): number {
  if (arrival.kind === 'live') return WEIGHT + arrival.chunk.delta.length;
  return arrival.kind === 'entries' ? WEIGHT + charactersIn(arrival.entries) : WEIGHT;
}

/** The length of all texts in a JSON value, with some for each other value. */
function charactersIn(value: unknown): number {
  if (typeof value === 'string') return value.length + 20;
  if (typeof value !== 'object' || value === null) return 20;
  let sum = 20;
  for (const part of Object.values(value)) sum += charactersIn(part);
  return sum;
}

/** Pause in milliseconds between two readings of a log that lacks an append of the feed, and the most readings. */
const READ_AGAIN_MS = 50;
const MOST_READINGS = 100;

interface LogPage {
  readonly length: number;
  readonly entries: readonly Entry[];
}

interface LogRead {
  /** New entries. */
  readonly entries: readonly Entry[];
  /** Whether to read the log again: at once (`now`), or after `READ_AGAIN_MS`. */
  readonly again: 'no' | 'now' | 'later';
}

/**
 * The position of one reader that follows a log through the live feed: it emits each entry once, in order.
 *
 * FOLLOWED-1 Where daemons share logs, the feed also contains appends that the server refused: two daemons may claim a
 *            conversation at once, or a frozen one may resume. Only the log is authoritative.
 * FOLLOWED-2 An append of the feed is accepted if it has the next index and contains no claim. Otherwise the log is read
 *            until it has an entry at that index, at most `MOST_READINGS` times.
 * FOLLOWED-3 If the log does not have the entry that was emitted last, the log was deleted and made again. A log that is
 *            shorter but not empty may still receive the appends of the feed: it is read `MOST_READINGS` times first,
 *            unless it was longer before, or begins with another entry than the one that was emitted first.
 */
export class FollowedLog {
  #next: number;
  /** Emitted last. */
  #newest: Entry | null = null;
  #oldest: Entry | null = null;
  /** The next page begins at `#oldest`: the log is shorter than the feed (FOLLOWED-3). */
  #isShort = false;
  /** Of the log, when it was read last. */
  #length: number;
  /** The last page contained `#newest` and had no space for another entry. */
  #isConfirmed = false;
  /** FOLLOWED-2: the highest index that the feed announced and the log may lack. */
  #doubted = -1;
  #readings = 0;

  constructor(next: number, length = 0) {
    this.#next = next;
    this.#length = length;
  }

  get next(): number {
    return this.#next;
  }

  /** Index at which the next page must begin. */
  get from(): number {
    if (this.#isShort && this.#oldest) return this.#oldest.index;
    return this.#isConfirmed ? this.#next : (this.#newest?.index ?? this.#next);
  }

  /** The entries of one append of the feed; null: read the log instead. */
  fromFeed(append: readonly Entry[]): readonly Entry[] | null {
    const isNext = append.every(({ index }, place) => index === this.#next + place);
    if (isNext && append[0]?.type !== 'claim') {
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
    const oldest = this.#isShort && entries[0]?.index === this.#oldest?.index ? this.#oldest : null;
    this.#isShort = false;
    if (length < this.#length || (oldest && entries[0]?.id !== oldest.id)) return null;
    this.#length = length;
    if (known && length > 0 && length <= known.index) {
      this.#doubted = Math.max(this.#doubted, known.index);
      if (this.lacks(length)) {
        this.#isShort = this.#oldest !== null && this.#oldest.index < length;
        return { entries: [], again: 'later' };
      }
    } else if (oldest) return { entries: [], again: 'now' };
    if (known && entries[0]?.id !== known.id) return null;
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
    this.#oldest ??= entries[0] ?? null;
    this.#newest = entries.at(-1) ?? this.#newest;
    this.#isConfirmed = false;
    return entries;
  }
}
