import { type Entry, FollowedLog, READ_AGAIN_MS } from '../../conversation/index.ts';
import { ParleyError, sleep } from '../../kernel/index.ts';
import type { Arrival, GatewayPort } from '../port.ts';
import { ask } from './ask.ts';

/**
 * Queues what a conversation publishes, from one index on, for one reader.
 *
 * ARRIVALS-1 It subscribes in the constructor: nothing is missed between a post and the reading of its effects.
 * ARRIVALS-2 Entries have dense, rising indexes. Entries missing in the feed are read from the log; live text that was
 *    queued before them is dropped.
 * ARRIVALS-3 The queue is bounded. A reader that is too slow is disconnected and can read the log again.
 */

/** Maximum of queued characters per reader. */
const MAX_QUEUED = 4_194_304;

export type Received =
  | {
      readonly kind: 'entries';
      readonly entries: readonly Entry[];
      /** These entries reach the end of the log: what they leave open is open. */
      readonly isCurrent: boolean;
    }
  | Extract<Arrival, { kind: 'live' }>;

export class Arrivals {
  readonly #daemon: GatewayPort;
  readonly #conversation: string;
  readonly #unsubscribe: () => void;
  #queue: Arrival[] = [];
  #weight = 0;
  /** The log from `begin` on; before that everything is queued. */
  #log = new FollowedLog(0);
  #mustReadLog = false;
  #isOver = false;
  #isTooSlow = false;
  #wake: () => void = () => undefined;

  constructor(daemon: GatewayPort, conversation: string) {
    this.#daemon = daemon;
    this.#conversation = conversation;
    this.#unsubscribe = daemon.subscribe(conversation, (arrival) => this.#receive(arrival)); // ARRIVALS-1
  }

  /** Starts at this index. */
  begin(index: number): void {
    this.#log = new FollowedLog(index);
    this.#mustReadLog = !hasAllFrom(index, this.#queue);
    if (!this.#mustReadLog) this.#dropOlder(index);
  }

  /** The next arrival; null: closed. Throws if the log cannot be read or the reader was too slow. */
  async take(): Promise<Received | null> {
    for (;;) {
      if (this.#isTooSlow) throw new ParleyError('TOO_SLOW', 'too much waited to be read', { hint: AGAIN });
      if (this.#isOver) return null;
      if (this.#mustReadLog) return await this.#catchUp();
      const arrival = this.#shift();
      if (arrival?.kind === 'live') return arrival;
      if (arrival) {
        const entries = this.#log.fromFeed(arrival.entries);
        this.#mustReadLog = entries === null; // ARRIVALS-2
        if (entries?.length) return { kind: 'entries', entries, isCurrent: true };
      } else {
        await new Promise<void>((wake) => {
          this.#wake = wake;
        });
      }
    }
  }

  /** Idempotent. */
  close(): void {
    this.#isOver = true;
    this.#queue = [];
    this.#unsubscribe();
    this.#wake();
  }

  #receive(arrival: Arrival): void {
    if (this.#isOver) return;
    this.#queue.push(arrival);
    this.#weight += weightOf(arrival);
    if (this.#weight > MAX_QUEUED) {
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
    const page = await ask(this.#daemon, 'entries', body).catch((error: unknown) => {
      const isGone = error instanceof ParleyError && error.code === 'NOT_FOUND' && this.#log.next > 0;
      throw isGone ? deleted(this.#conversation) : error;
    });
    const read = this.#log.fromLog(page);
    if (this.#isOver) return null;
    if (read === null) throw deleted(this.#conversation);
    if (read.again === 'later') await sleep(READ_AGAIN_MS);
    this.#mustReadLog = read.again !== 'no';
    if (!this.#mustReadLog) this.#dropOlder(this.#log.next);
    return { kind: 'entries', entries: read.entries, isCurrent: !this.#mustReadLog };
  }

  /** ARRIVALS-2: everything up to the last entry below `next`. */
  #dropOlder(next: number): void {
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

/** Whether the queued feed contains all entries up to this index. */
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
