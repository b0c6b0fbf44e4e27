import { nextTick } from 'node:process';
import type { ParleyError } from '../kernel/index.ts';
import type { AppendOutcome, WorkStatus } from './port.ts';
import { logClosed } from './rules.ts';

/**
 * The only writer of one log in this process.
 *
 * GROUP-COMMIT-1 One group at a time is written. Appends made meanwhile form the next group, up to the size limit.
 * GROUP-COMMIT-2 The expected length is compared with the length after all queued appends, so callers need not wait for each
 *                other.
 * GROUP-COMMIT-3 When a group fails or conflicts, the appends queued after it fail too: their lengths no longer fit. Then appends
 *                work again from the durable length.
 * GROUP-COMMIT-4 When it is unknown what the log contains, the writer refuses everything until the log is opened, and so read,
 *                again.
 */
export interface QueuedAppend {
  /** The encoded entries. */
  readonly lines: readonly string[];
  readonly status: WorkStatus | undefined;
  readonly size: number;
  /** The log's length after this append. */
  readonly length: number;
  readonly resolve: (outcome: AppendOutcome) => void;
  readonly reject: (error: unknown) => void;
}

export type Commit =
  /** The group, and possibly appends of other writers after it. */
  | { readonly kind: 'stored' }
  | { readonly kind: 'conflict'; readonly length: number }
  | { readonly kind: 'failed'; readonly error: ParleyError };

interface GroupCommitOptions {
  readonly conversation: string;
  /** The limit of one group. */
  readonly maxSize: () => number;
  readonly durableLength: () => number;
  /** A rejection means that the outcome is unknown (GROUP-COMMIT-4). */
  readonly commit: (group: readonly QueuedAppend[]) => Promise<Commit>;
  readonly unavailable: (cause: unknown) => ParleyError;
}

type WriterState =
  | { readonly kind: 'writable' }
  | { readonly kind: 'unavailable'; readonly cause: unknown }
  | { readonly kind: 'closed' };

const EMPTY: Promise<Commit> = Promise.resolve({ kind: 'stored' });

export class GroupCommit {
  readonly #options: GroupCommitOptions;
  #state: WriterState = { kind: 'writable' };
  #queue: QueuedAppend[] = [];
  #length: number;
  #draining: Promise<void> | null = null;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
    this.#length = options.durableLength();
  }

  /** Entries durable and queued (GROUP-COMMIT-2). */
  get length(): number {
    return this.#length;
  }

  append(
    expectedLength: number,
    lines: readonly string[],
    size: number,
    status?: WorkStatus,
  ): Promise<AppendOutcome> {
    const refused = this.refusal();
    if (refused !== null) return Promise.reject(refused);
    if (expectedLength !== this.#length) return Promise.resolve({ kind: 'conflict', length: this.#length });
    this.#length += lines.length;
    return new Promise((resolve, reject) => {
      this.#queue.push({ lines, status, size, length: this.#length, resolve, reject });
      this.#draining ??= this.#drain();
    });
  }

  /** Why appends and reads are refused; null: they are not. */
  refusal(): ParleyError | null {
    if (this.#state.kind === 'closed') return logClosed(this.#options.conversation);
    return this.#state.kind === 'unavailable' ? this.#options.unavailable(this.#state.cause) : null;
  }

  /** GROUP-COMMIT-4 */
  becomeUnavailable(cause: unknown): void {
    if (this.#state.kind === 'writable') this.#state = { kind: 'unavailable', cause };
  }

  /** Refuses new appends and waits for those under way. */
  async close(): Promise<void> {
    this.#state = { kind: 'closed' };
    await this.#draining;
  }

  async #drain(): Promise<void> {
    const { commit, durableLength, unavailable } = this.#options;
    while (this.#queue.length > 0) {
      // Callers that the last group or the same event resumed append before this, and share a group.
      await new Promise<void>((resolve) => nextTick(resolve));
      const group = this.#takeGroup();
      const isEmpty = group.every(({ lines }) => lines.length === 0);
      const outcome = await (isEmpty ? EMPTY : commit(group)).catch((cause: unknown): Commit => {
        this.becomeUnavailable(cause);
        return { kind: 'failed', error: unavailable(cause) };
      });
      if (outcome.kind === 'stored') {
        for (const append of group) append.resolve({ kind: 'appended', length: append.length });
        // Another writer appended after this group before it was confirmed: the lengths of queued appends are taken.
        if (group.at(-1)?.length === durableLength()) continue;
        const conflict: AppendOutcome = { kind: 'conflict', length: durableLength() };
        for (const append of this.#takeQueue()) append.resolve(conflict);
        continue;
      }
      for (const append of [...group, ...this.#takeQueue()]) {
        if (outcome.kind === 'failed') append.reject(outcome.error);
        else append.resolve(outcome);
      }
    }
    this.#draining = null;
  }

  /** At least one. */
  #takeGroup(): QueuedAppend[] {
    const maxSize = this.#options.maxSize();
    let size = 0;
    let count = 0;
    for (const append of this.#queue) {
      size += append.size;
      if (count > 0 && size > maxSize) break;
      count += 1;
    }
    return this.#queue.splice(0, count);
  }

  /** Empties the queue; the length falls back to the durable one (GROUP-COMMIT-3). */
  #takeQueue(): QueuedAppend[] {
    const taken = this.#queue;
    this.#queue = [];
    this.#length = this.#options.durableLength();
    return taken;
  }
}
