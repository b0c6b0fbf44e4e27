import type { Entry } from '../../conversation/index.ts';
import { ParleyError, sleep } from '../../kernel/index.ts';
import type { Arrival, Door } from '../port.ts';
import { ask } from './ask.ts';

/**
 * What a conversation publishes, from one index on, for one reader who takes it in his own time.
 *
 * A1 It listens from the beginning on: nothing slips between a post and the reading of what came of it.
 * A2 Entries come with dense, rising indexes. What the feed has not is read from the log; live text that came before
 *    what was read there is passed over.
 * A3 What waits is bounded: a reader that does not keep up is let go, and the log has what it lacks.
 * A4 Where daemons share the work, the feed also has what the server refused: two may claim a conversation at once. An
 *    append that begins with a claim is read from the log instead.
 */

/** Milliseconds between two looks for what the feed had before the log, and how many there are. */
const LOOK_MS = 50;
const MOST_LOOKS = 100;
/** Characters that wait for one reader, at most. */
const MOST_WAITING = 4_194_304;

export type Heard =
  | {
      readonly kind: 'entries';
      readonly entries: readonly Entry[];
      /** Nothing more was in the log then: what these entries leave open is open. */
      readonly isCurrent: boolean;
    }
  | Extract<Arrival, { kind: 'live' }>;

interface Page {
  readonly length: number;
  readonly entries: readonly Entry[];
}

export class Arrivals {
  readonly #door: Door;
  readonly #conversation: string;
  readonly #unsubscribe: () => void;
  #queue: Arrival[] = [];
  #weight = 0;
  /** The next index that is wanted; null: not known yet, everything is kept. */
  #next: number | null = null;
  /** Passed on last. */
  #newest: Entry | null = null;
  /** A4: at this index the log has something, or is about to. */
  #doubted = -1;
  #isBehind = false;
  #isOver = false;
  #isTooSlow = false;
  #wake: () => void = () => undefined;

  constructor(door: Door, conversation: string) {
    this.#door = door;
    this.#conversation = conversation;
    this.#unsubscribe = door.subscribe(conversation, (arrival) => this.#hear(arrival)); // A1
  }

  /** From this index on. */
  begin(index: number): void {
    this.#next = index;
    const first = this.#queue.find((arrival) => arrival.kind === 'entries');
    const [start] = first?.kind === 'entries' ? first.entries : [];
    this.#isBehind = start === undefined || start.index > index || start.type === 'claim'; // A4
    if (!this.#isBehind) this.#passOver(index);
  }

  /** What came next; null: it was closed. Throws when the log cannot be read any more, or when the reader is let go. */
  async take(): Promise<Heard | null> {
    for (;;) {
      if (this.#isTooSlow) throw new ParleyError('TOO_SLOW', 'too much waited to be read', { hint: AGAIN });
      if (this.#isOver) return null;
      if (this.#isBehind) return await this.#catchUp();
      const arrival = this.#shift();
      if (arrival?.kind === 'live') return arrival;
      if (arrival) {
        const entries = this.#inOrder(arrival.entries);
        if (entries.length > 0) return { kind: 'entries', entries, isCurrent: true };
      } else {
        await new Promise<void>((wake) => {
          this.#wake = wake;
        });
      }
    }
  }

  /** Again is fine. */
  close(): void {
    this.#isOver = true;
    this.#queue = [];
    this.#unsubscribe();
    this.#wake();
  }

  #hear(arrival: Arrival): void {
    if (this.#isOver) return;
    this.#queue.push(arrival);
    this.#weight += weightOf(arrival);
    if (this.#weight > MOST_WAITING) {
      this.#isTooSlow = true;
      this.close(); // A3
    }
    this.#wake();
  }

  #shift(): Arrival | undefined {
    const arrival = this.#queue.shift();
    if (arrival) this.#weight -= weightOf(arrival);
    return arrival;
  }

  /** A2: those that were not read yet; none where some are missing. */
  #inOrder(entries: readonly Entry[]): readonly Entry[] {
    const next = this.#next ?? 0;
    const [first] = entries;
    if (!first) return [];
    if (first.index === next && first.type !== 'claim') {
      this.#passed(entries);
      return entries;
    }
    if (first.index < next && first.type !== 'claim') throw deleted(this.#conversation);
    this.#isBehind = true;
    if (first.index > next) {
      this.#queue.unshift({ kind: 'entries', entries });
      this.#weight += weightOf({ kind: 'entries', entries });
    } else this.#doubted = first.index; // A4
    return [];
  }

  async #catchUp(): Promise<Heard | null> {
    const known = this.#newest;
    const from = known?.index ?? this.#next ?? 0;
    const page = await this.#page(from);
    if (this.#isOver) return null;
    const isSame = known ? page.entries[0]?.id === known.id : page.length >= from;
    if (!isSame) throw deleted(this.#conversation);
    const entries = known ? page.entries.slice(1) : page.entries;
    this.#passed(entries);
    const next = this.#next ?? 0;
    this.#isBehind = next < page.length && entries.length > 0;
    if (!this.#isBehind) this.#passOver(next);
    return { kind: 'entries', entries, isCurrent: !this.#isBehind };
  }

  async #page(from: number): Promise<Page> {
    for (let looks = 1; ; looks++) {
      const page = await ask<Page>(this.#door, 'entries', { conversation: this.#conversation, from });
      if (page.length > this.#doubted || looks >= MOST_LOOKS || this.#isOver) return page;
      await sleep(LOOK_MS);
    }
  }

  #passed(entries: readonly Entry[]): void {
    this.#next = (this.#next ?? 0) + entries.length;
    this.#newest = entries.at(-1) ?? this.#newest;
  }

  /** A2: everything up to the last entry below `next`. */
  #passOver(next: number): void {
    const isKnown = (arrival: Arrival) =>
      arrival.kind === 'entries' && arrival.entries.some(({ index }) => index < next);
    const place = this.#queue.findLastIndex(isKnown);
    const passed = this.#queue.splice(0, place + 1);
    const last = passed.at(-1);
    if (last?.kind === 'entries' && last.entries[0]?.type !== 'claim') {
      const entries = last.entries.filter(({ index }) => index >= next);
      if (entries.length > 0) this.#queue.unshift({ kind: 'entries', entries });
    }
    this.#weight = this.#queue.reduce((sum, arrival) => sum + weightOf(arrival), 0);
  }
}

const AGAIN = 'the log has all of it; ask again';

function deleted(conversation: string): ParleyError {
  return new ParleyError('CONVERSATION_DELETED', `${conversation} was deleted meanwhile`, {
    hint: 'post again to begin a new one',
  });
}

/** Characters, about. */
function weightOf(arrival: Arrival): number {
  if (arrival.kind === 'live') return arrival.chunk.delta.length + 200;
  return arrival.entries.reduce((sum, entry) => sum + lengthOf(entry) + 500, 0);
}

function lengthOf(entry: Entry): number {
  const content = 'content' in entry ? (entry.content ?? '').length : 0;
  const isMessage = entry.type === 'message';
  return content + (isMessage ? (entry.reasoning ?? '').length : 0);
}
