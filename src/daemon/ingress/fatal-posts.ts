import { ParleyError, type Refusal, refusal, sleep } from '../../kernel/index.ts';

/**
 * Stops retrying a post that may have crashed a daemon, so that it does not crash one daemon after the other.
 *
 * FATAL-POSTS-1  A post is a suspect while it has attempts without a result. `Suspect` hides where they are counted: for one
 *                daemon in a note around each decision (`attempts.ts`), for several in shared marks (`cluster/suspects.ts`).
 * FATAL-POSTS-2  Each further attempt waits longer, from the third on; other posts are served meanwhile. The wait counts from the
 *                arrival at this daemon, independent of other suspects. Those that are due are tried one at a time.
 * FATAL-POSTS-3  After `MOST_ATTEMPTS` the post becomes a dead letter, unless the log contains it.
 */

export const MOST_ATTEMPTS = 5;
/** FATAL-POSTS-2: milliseconds that each attempt after the first adds to the wait. */
const PATIENCE_MS = 1_000;

const STOPPING = 'STOPPING';

/** A post with attempts without a result (FATAL-POSTS-1). */
export interface Suspect {
  /** Their current number. */
  before(): number;
  /**
   * Tries it once more, when it is due. The attempt is counted durably before, and the count is removed after success.
   * Rejects as the attempt does, when `stopping` is aborted first, or when the count cannot be stored.
   */
  again(attempt: () => Promise<void>, stopping: AbortSignal): Promise<void>;
  /** It has become a dead letter. */
  givenUp(): void;
}

/** FATAL-POSTS-2, FATAL-POSTS-3. `giveUp` resolves with false if the log contains the post. */
export async function tryAgain(
  suspect: Suspect,
  attempt: () => Promise<void>,
  giveUp: (why: Refusal) => Promise<boolean>,
  stopping: AbortSignal,
): Promise<void> {
  const before = suspect.before();
  if (before >= MOST_ATTEMPTS && (await giveUp(fatal(before)))) suspect.givenUp();
  else await suspect.again(attempt, stopping);
}

/** FATAL-POSTS-2: when a post that arrived now may be tried again (`performance.now()`). */
export function dueAfter(before: number): number {
  return performance.now() + (before - 1) * PATIENCE_MS;
}

/** FATAL-POSTS-2, for implementations of `again`. Rejects if `stopping` is aborted before it is due. */
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

/** FATAL-POSTS-3, for a decision that threw so often. Null: it is tried again. */
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
