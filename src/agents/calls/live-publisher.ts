import type { NewId, Timers } from '../../kernel/index.ts';
import type { ModelDelta } from '../model-port.ts';

/**
 * Publishes the deltas of running model calls as numbered chunks.
 *
 * LIVE-TEXT-1 The first delta of an attempt is published at once, and so is each one after a pause. What follows within
 *    `LONGEST_MS` is merged. With few running attempts, the interval is shorter.
 * LIVE-TEXT-2 The chunks of an attempt, concatenated per kind and tool call, are its deltas in order, numbered from 0. A
 *    chunk has one kind, and the text of one tool call.
 * LIVE-TEXT-3 An attempt that ends publishes what is left: no entry precedes its text.
 * LIVE-TEXT-4 All attempts publish at the same time, so that the bus writes their chunks together.
 */
export interface LiveDelta {
  readonly turnId: string;
  /** One attempt of a model call. */
  readonly call: string;
  /** Numbers the chunks of that attempt, from 0. */
  readonly n: number;
  readonly type: ModelDelta['type'];
  readonly delta: string;
  readonly toolCallId?: string;
  readonly toolName?: string;
}

export interface LiveAttempt {
  add(delta: ModelDelta): void;
  /** LIVE-TEXT-3. Call it once. */
  end(): void;
}

/** LIVE-TEXT-1. The interval grows by a millisecond with each running attempt. */
const SHORTEST_MS = 10;
const LONGEST_MS = 50;
/** Characters: a longer chunk might exceed what a server of the bus accepts. */
const LONGEST_CHUNK = 16_384;
/** Characters of an id that name an attempt: random ones, enough within a conversation. */
const CALL_LENGTH = 10;

export class LivePublisher {
  readonly #timers: Timers;
  readonly #newId: NewId;
  /** Attempts that published since the last tick, or have something to publish. */
  readonly #flowing = new Set<NumberedChunks>();
  /** Attempts that have not ended. */
  #running = 0;
  #isTicking = false;

  constructor(timers: Timers, newId: NewId) {
    this.#timers = timers;
    this.#newId = newId;
  }

  /** `publish` does not throw. */
  begin(turnId: string, publish: (chunk: LiveDelta) => void): LiveAttempt {
    const chunks = new NumberedChunks(turnId, this.#newId().slice(-CALL_LENGTH), publish);
    this.#running += 1;
    return {
      add: (delta) => {
        chunks.add(delta);
        if (this.#flowing.has(chunks)) return;
        chunks.flush();
        this.#flowing.add(chunks);
        this.#plan();
      },
      end: () => {
        this.#running -= 1;
        chunks.flush();
        this.#flowing.delete(chunks);
      },
    };
  }

  #plan(): void {
    if (this.#isTicking || this.#flowing.size === 0) return;
    this.#isTicking = true;
    const interval = Math.min(LONGEST_MS, SHORTEST_MS + this.#running);
    this.#timers.after(interval, () => this.#tick(), { unref: true });
  }

  #tick(): void {
    this.#isTicking = false;
    for (const chunks of this.#flowing) if (!chunks.flush()) this.#flowing.delete(chunks);
    this.#plan();
  }
}

class NumberedChunks {
  readonly #turnId: string;
  readonly #call: string;
  readonly #publish: (chunk: LiveDelta) => void;
  #next = 0;
  /** The beginning of the next chunk, and its whole text; null: nothing is pending. */
  #first: ModelDelta | null = null;
  #text = '';

  constructor(turnId: string, call: string, publish: (chunk: LiveDelta) => void) {
    this.#turnId = turnId;
    this.#call = call;
    this.#publish = publish;
  }

  add(delta: ModelDelta): void {
    if (this.#first && !continues(this.#first, delta)) this.flush();
    this.#first ??= delta;
    this.#text += delta.delta;
    if (this.#text.length > LONGEST_CHUNK) this.flush();
  }

  /** Whether there was anything to publish. */
  flush(): boolean {
    const first = this.#first;
    if (first === null) return false;
    const { type } = first;
    const chunk = { turnId: this.#turnId, call: this.#call, n: this.#next, type, delta: this.#text };
    this.#next += 1;
    this.#first = null;
    this.#text = '';
    if (first.type !== 'tool_call_delta') this.#publish(chunk);
    else this.#publish({ ...chunk, toolCallId: `${this.#call}_${first.position}`, toolName: first.name });
    return true;
  }
}

/** LIVE-TEXT-2: whether both may be in one chunk. */
function continues(first: ModelDelta, second: ModelDelta): boolean {
  if (second.type !== 'tool_call_delta') return first.type === second.type;
  return first.type === second.type && first.position === second.position && second.name === undefined;
}
