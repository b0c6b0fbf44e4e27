import { type Entry, FollowedLog, READ_AGAIN_MS } from '../../conversation/index.ts';
import { ParleyError, sleep } from '../../kernel/index.ts';
import type { Arrival, GatewayPort } from '../port.ts';
import { ask } from './ask.ts';

/**
 * What a conversation publishes, from one index on, for one reader who takes it in his own time.
 *
 * ARRIVALS-1 It listens from the beginning on: nothing slips between a post and the reading of what came of it.
 * ARRIVALS-2 Entries come with dense, rising indexes. What the feed has not is read from the log; live text that came before
 *    what was read there is passed over.
 * ARRIVALS-3 What waits is bounded: a reader that does not keep up is let go, and the log has what it lacks.
 */

/** Characters that wait for one reader, at most. */
const MOST_WAITING = 4_194_304;

export type Received =
  | {
      readonly kind: 'entries';
      readonly entries: readonly Entry[];
      /** Nothing more was in the log then: what these entries leave open is open. */
      readonly isCurrent: boolean;
    }
  | Extract<Arrival, { kind: 'live' }>;

export class Arrivals {
  readonly #door: GatewayPort;
  readonly #conversation: string;
  readonly #unsubscribe: () => void;
  #queue: Arrival[] = [];
  #weight = 0;
  /** From when it begins on; until then everything is kept. */
  #log = new FollowedLog(0);
  #isBehind = false;
  #isOver = false;
  #isTooSlow = false;
  #wake: () => void = () => undefined;

  constructor(door: GatewayPort, conversation: string) {
    this.#door = door;
    this.#conversation = conversation;
    this.#unsubscribe = door.subscribe(conversation, (arrival) => this.#hear(arrival)); // ARRIVALS-1
  }

  /** From this index on. */
  begin(index: number): void {
    this.#log = new FollowedLog(index);
    this.#isBehind = !hasAllFrom(index, this.#queue);
    if (!this.#isBehind) this.#passOver(index);
  }

  /** What came next; null: it was closed. Throws when the log cannot be read any more, or when the reader is let go. */
  async take(): Promise<Received | null> {
    for (;;) {
      if (this.#isTooSlow) throw new ParleyError('TOO_SLOW', 'too much waited to be read', { hint: AGAIN });
      if (this.#isOver) return null;
      if (this.#isBehind) return await this.#catchUp();
      const arrival = this.#shift();
      if (arrival?.kind === 'live') return arrival;
      if (arrival) {
        const entries = this.#log.fromFeed(arrival.entries);
        this.#isBehind = entries === null; // ARRIVALS-2
        if (entries?.length) return { kind: 'entries', entries, isCurrent: true };
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
      this.close(); // ARRIVALS-3
    }
    this.#wake();
  }

  #shift(): Arrival | undefined {
    const arrival = this.#queue.shift();
    if (arrival) this.#weight -= weightOf(arrival);
    return arrival;
  }

  async #catchUp(): Promise<Received | null> {
    const body = { conversation: this.#conversation, from: this.#log.from };
    const page = await ask(this.#door, 'entries', body).catch((error: unknown) => {
      const isGone = error instanceof ParleyError && error.code === 'NOT_FOUND' && this.#log.next > 0;
      throw isGone ? deleted(this.#conversation) : error;
    });
    const read = this.#log.fromLog(page);
    if (this.#isOver) return null;
    if (read === null) throw deleted(this.#conversation);
    if (read.again === 'later') await sleep(READ_AGAIN_MS);
    this.#isBehind = read.again !== 'no';
    if (!this.#isBehind) this.#passOver(this.#log.next);
    return { kind: 'entries', entries: read.entries, isCurrent: !this.#isBehind };
  }

  /** ARRIVALS-2: everything up to the last entry below `next`. */
  #passOver(next: number): void {
    const isOld = (arrival: Arrival) =>
      arrival.kind === 'entries' && arrival.entries.some(({ index }) => index < next);
    const isKnown = (arrival: Arrival) =>
      arrival.kind === 'entries' && arrival.entries.every(({ index }) => index < next);
    const last = this.#queue.findLastIndex(isOld);
    this.#queue = this.#queue.filter((arrival, place) =>
      arrival.kind === 'live' ? place > last : !isKnown(arrival),
    );
    this.#weight = this.#queue.reduce((sum, arrival) => sum + weightOf(arrival), 0);
  }
}

/** Whether the feed, as far as it came, has the log up to this index and lacks nothing. */
function hasAllFrom(index: number, queue: readonly Arrival[]): boolean {
  const appends = queue.flatMap((arrival) => (arrival.kind === 'entries' ? [arrival.entries] : []));
  const log = new FollowedLog(appends[0]?.[0]?.index ?? index + 1);
  const isWhole = log.next <= index && appends.every((append) => log.fromFeed(append) !== null);
  return isWhole && log.next >= index;
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
