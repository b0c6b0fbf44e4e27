import { ParleyError, type Refusal, refusal, sleep } from '../../kernel/index.ts';

/**
 * A post that may have been the end of a daemon must not be the end of one after the other for ever.
 *
 * FATAL-POSTS-1 It is a suspect as long as attempts at it are known that came to no end. Who knows of them is behind `Suspect`: a
 *    daemon that is alone by a note around each decision (`attempts.ts`), several by marks that all of them see
 *    (`sharing/suspects.ts`).
 * FATAL-POSTS-2 A suspect is tried again, from the third time on later each time: others are served meanwhile. Its time is counted
 *    from when it came to this daemon, however many others there are; whoever's time has come is tried, one at a time.
 * FATAL-POSTS-3 After `MOST_ATTEMPTS` it is given up: it becomes a dead letter, unless the log has it after all.
 */

/** FATAL-POSTS-3: from this many on it is not tried again. */
export const MOST_ATTEMPTS = 5;
/** FATAL-POSTS-2: what each attempt that came to no end adds to the wait for the next, but the first, in milliseconds. */
const PATIENCE_MS = 1_000;

const STOPPING = 'STOPPING';

/** A post with attempts that came to no end (FATAL-POSTS-1). */
export interface Suspect {
  /** How many of them are known by now. */
  before(): number;
  /**
   * Tries it once more, when its time has come. What an end of the daemon in the middle of that needs, to be counted,
   * is kept before; what was survived is forgotten behind it. Rejects as the attempt does, or when nothing was tried:
   * when `stopping` is aborted first, or nothing can be kept.
   */
  again(attempt: () => Promise<void>, stopping: AbortSignal): Promise<void>;
  /** It is a dead letter now. */
  givenUp(): void;
}

/** FATAL-POSTS-2, F3. `giveUp` answers false for a post that the log has. */
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

/** FATAL-POSTS-2: when a post that came just now may be tried again, as `performance.now()` counts. */
export function dueAfter(before: number): number {
  return performance.now() + (before - 1) * PATIENCE_MS;
}

/** FATAL-POSTS-2, for those who fulfil `again`. Rejects when `stopping` is aborted first, or was before. */
export async function untilDue(due: number, stopping: AbortSignal): Promise<void> {
  const milliseconds = due - performance.now();
  if (milliseconds > 0) await sleep(milliseconds, stopping);
  if (stopping.aborted) throw new ParleyError(STOPPING, 'the daemon stops');
}

export function isStopping(error: unknown): boolean {
  return error instanceof ParleyError && error.code === STOPPING;
}

/** The daemon could not decide on it, and knows: it did not end. */
export function isUndecided(error: unknown): error is ParleyError {
  return error instanceof ParleyError && error.code === 'DECISION_FAILED';
}

/** FATAL-POSTS-3, of a post that could not be decided on so often. Null: it is tried again. */
export function undecidable(error: unknown, attempts: number): Refusal | null {
  if (!isUndecided(error) || attempts < MOST_ATTEMPTS) return null;
  return refusal(error.code, `${error.message} (tried ${attempts} times)`, error.hint);
}

/** FATAL-POSTS-3 */
function fatal(attempts: number): Refusal {
  return refusal(
    'DECISION_FAILED',
    `the daemon ended while it decided on it, ${attempts} times`,
    'this is a fault of Parley itself or of the machine: report it with what was posted and the daemon’s log',
  );
}
