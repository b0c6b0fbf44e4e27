import type { Entry } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import type { Arrival, Door } from '../port.ts';
import { ask } from './ask.ts';

/**
 * What a conversation publishes, from one index on, for one reader who takes it in his own time.
 *
 * A1 It listens from the beginning on: nothing slips between a post and the reading of what came of it.
 * A2 Entries come with dense, rising indexes. What the feed has not is read from the log; live text that came before
 *    what was read there is passed over.
 * A3 What waits is bounded: a reader that does not keep up is let go, and the log has what it lacks.
 */

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
    this.#isBehind = first?.kind !== 'entries' || (first.entries[0]?.index ?? 0) > index;
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
    const first = entries[0]?.index ?? next;
    if (first < next) throw deleted(this.#conversation);
    if (first > next) {
      this.#isBehind = true;
      this.#queue.unshift({ kind: 'entries', entries });
      this.#weight += weightOf({ kind: 'entries', entries });
      return [];
    }
    this.#next = next + entries.length;
    return entries;
  }

  async #catchUp(): Promise<Heard | null> {
    const from = this.#next ?? 0;
    const body = { conversation: this.#conversation, from };
    const page = await ask<Page>(this.#door, 'entries', body);
    if (this.#isOver) return null;
    if (page.length < from) throw deleted(this.#conversation);
    this.#next = from + page.entries.length;
    this.#isBehind = this.#next < page.length && page.entries.length > 0;
    if (!this.#isBehind) this.#passOver(this.#next);
    return { kind: 'entries', entries: page.entries, isCurrent: !this.#isBehind };
  }

  /** A2: everything up to the last entry below `next`. */
  #passOver(next: number): void {
    const isKnown = (arrival: Arrival) =>
      arrival.kind === 'entries' && arrival.entries.some(({ index }) => index < next);
    const place = this.#queue.findLastIndex(isKnown);
    const passed = this.#queue.splice(0, place + 1);
    const last = passed.at(-1);
    if (last?.kind === 'entries') {
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
