import type { StreamPosition } from '../../bus/index.ts';
import { coalesce, ParleyError, type Refusal, refusal, sleep } from '../../kernel/index.ts';
import type { ConversationStore, IngressAttempts } from '../../persistence/index.ts';

/**
 * Stops retrying a post that may have ended the daemon: counts how often the daemon ended, or failed, while it decided on it.
 * Daemons that share the work count in the store (`cluster/shared-posts.ts`), by ATTEMPTS-5 and ATTEMPTS-6 too.
 *
 * ATTEMPTS-1  A note names the posts before each decision, and is removed after it; nothing else happens in between. The next
 *             daemon counts an attempt for the posts in the note it finds. A stop or kill at another moment counts nothing.
 * ATTEMPTS-2  A post with a count is a suspect. Suspects are tried one at a time, when they are due (ATTEMPTS-5), so that an
 *             end of the daemon counts for one post only. The waiting time does not grow with the number of suspects.
 * ATTEMPTS-3  The count is removed, durably, when the daemon survives an attempt, unless the decision failed. A full disk is
 *             not the post's fault.
 * ATTEMPTS-4  The count of a post that was settled otherwise, for example given up, is removed some seconds later. If the post is
 *             redelivered because the position was not saved, it is given up again.
 * ATTEMPTS-5  Each further attempt waits longer, from the third on; other posts are served meanwhile. The wait counts from the
 *             arrival at this daemon.
 * ATTEMPTS-6  After `MOST_ATTEMPTS` the post becomes a dead letter, unless the log contains it.
 */

export const MOST_ATTEMPTS = 5;
/** ATTEMPTS-5: milliseconds that each attempt after the first adds to the wait. */
const PATIENCE_MS = 1_000;
const STOPPING = 'STOPPING';

/** A post with attempts without a result (ATTEMPTS-2). */
export interface Suspect {
  /** Their current number. */
  before(): number;
  /** Tries it once more, when it is due. Rejects as the attempt does, or when `stopping` is aborted first. */
  again(attempt: () => Promise<void>, stopping: AbortSignal): Promise<void>;
}

/** ATTEMPTS-4: the position is saved within this time. */
const SETTLED_MS = 10_000;

type Store = Pick<
  ConversationStore,
  'ingressAttempts' | 'saveIngressAttempts' | 'lastDecision' | 'noteDecision'
>;

export class Attempts {
  readonly #store: Store;
  /** Id of the ingress stream that the sequences belong to. */
  #stream: string;
  /** By sequence: attempts without a result. */
  readonly #counts: Map<number, number>;
  #isNoted = false;
  #alone: Promise<unknown> = Promise.resolve();
  /** ATTEMPTS-4: everything up to here was settled at that time (`performance.now()`). */
  #settled = { sequence: 0, at: Number.NEGATIVE_INFINITY };
  readonly #save: () => Promise<void>;

  /** For tests. A daemon uses `open`. */
  constructor(store: Store, stored: IngressAttempts | null) {
    this.#store = store;
    this.#stream = stored?.stream ?? '';
    this.#counts = new Map(stored?.posts.map(({ sequence, begun }) => [sequence, begun]));
    this.#save = coalesce(() => this.#write());
  }

  static async open(store: Store): Promise<Attempts> {
    const attempts = new Attempts(store, await store.ingressAttempts());
    const last = await store.lastDecision();
    if (last === null) return attempts;
    attempts.readFrom(last.stream);
    for (const sequence of last.sequences) attempts.#count(sequence);
    await attempts.#save();
    store.noteDecision(null); // it is counted
    return attempts;
  }

  /** A new stream has other posts. */
  readFrom(stream: string): void {
    if (this.#stream === stream) return;
    this.#stream = stream;
    this.#counts.clear();
    this.#settled = { sequence: 0, at: Number.NEGATIVE_INFINITY };
  }

  /** Attempts without a result. */
  before({ stream, sequence }: StreamPosition): number {
    return (stream === this.#stream && this.#counts.get(sequence)) || 0;
  }

  /** ATTEMPTS-1. Synchronous until `decided`. */
  deciding(sequences: readonly number[]): void {
    this.#isNoted = sequences.length > 0;
    if (this.#isNoted) this.#store.noteDecision({ stream: this.#stream, sequences });
  }

  decided(): void {
    if (this.#isNoted) this.#store.noteDecision(null);
    this.#isNoted = false;
  }

  /** The decision on it threw. */
  async failed({ stream, sequence }: StreamPosition): Promise<void> {
    if (stream !== this.#stream) return;
    this.#count(sequence);
    await this.#save();
  }

  /** Null: no count. Call it on arrival: the wait is counted from then. */
  suspect(position: StreamPosition): Suspect | null {
    const before = () => this.before(position);
    if (before() === 0) return null;
    const due = dueAfter(before());
    return {
      before,
      again: async (attempt, stopping) => {
        await untilDue(due, stopping);
        await this.#inTurn(async () => {
          await untilDue(due, stopping); // the daemon may have been stopped meanwhile
          await attempt(); // the decision writes the note (ATTEMPTS-1)
        });
      },
    };
  }

  survived({ stream, sequence }: StreamPosition): void {
    if (stream === this.#stream && this.#counts.delete(sequence)) void this.#save();
  }

  settledUpTo({ stream, sequence }: StreamPosition): void {
    const at = performance.now();
    if (stream !== this.#stream || at < this.#settled.at + SETTLED_MS) return;
    const old = [...this.#counts.keys()].filter((one) => one <= this.#settled.sequence);
    for (const one of old) this.#counts.delete(one);
    if (old.length > 0) void this.#save();
    this.#settled = { sequence, at };
  }

  /** ATTEMPTS-2: after the suspects that were due earlier. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    const mine = this.#alone.then(work);
    this.#alone = mine.catch(() => undefined);
    return mine;
  }

  #count(sequence: number): void {
    this.#counts.set(sequence, (this.#counts.get(sequence) ?? 0) + 1);
  }

  async #write(): Promise<void> {
    const posts = [...this.#counts].map(([sequence, begun]) => ({ sequence, begun }));
    // On a full disk only this process knows the counts; no post waits for it.
    await this.#store.saveIngressAttempts({ stream: this.#stream, posts }).catch(() => undefined);
  }
}

/** ATTEMPTS-5: when a post that arrived now may be tried again (`performance.now()`). */
export function dueAfter(before: number): number {
  return performance.now() + (before - 1) * PATIENCE_MS;
}

/** ATTEMPTS-5. Rejects if `stopping` is aborted before it is due. */
export async function untilDue(due: number, stopping: AbortSignal): Promise<void> {
  const milliseconds = due - performance.now();
  if (milliseconds > 0) await sleep(milliseconds, stopping);
  if (stopping.aborted) throw new ParleyError(STOPPING, 'the daemon stops');
}

export function isStopping(error: unknown): boolean {
  return error instanceof ParleyError && error.code === STOPPING;
}

/** The decision threw, and the daemon did not end. */
export function isUndecided(error: unknown): error is ParleyError {
  return error instanceof ParleyError && error.code === 'DECISION_FAILED';
}

/** ATTEMPTS-6, for a decision that threw so often. Null: it is tried again. */
export function undecidable(error: unknown, attempts: number): Refusal | null {
  if (!isUndecided(error) || attempts < MOST_ATTEMPTS) return null;
  return refusal(error.code, `${error.message} (tried ${attempts} times)`, error.hint);
}

export function fatal(attempts: number): Refusal {
  return refusal(
    'DECISION_FAILED',
    `the daemon ended while it decided on it, ${attempts} times`,
    'this is a bug in Parley or a fault of the machine: report it with the post and the log of the daemon',
  );
}
