import { createContext, Script } from 'node:vm';

/**
 * Work that is cut off when it takes too long: for what somebody else's pattern makes us compute. One like `^(a+)+$`
 * needs more time than there is, and while it is tried nothing else in this process runs.
 */

const SCRIPT = new Script('work()');
/** Made once, when it is first needed: that takes some milliseconds. */
let ground: { work: (() => unknown) | null } | null = null;

/** A run that was cut off while this process hardly ran is made again, so often at most in all. */
const MOST_RUNS = 5;

/**
 * Throws what the work throws, and `ERR_SCRIPT_EXECUTION_TIMEOUT` when it took longer. On a machine that has no time for
 * this process the work may be run more than once: it must change nothing.
 */
export function inTime<Result>(work: () => Result, timeoutMs: number): Result {
  for (let run = 1; ; run++) {
    const before = process.cpuUsage();
    try {
      return runOnce(work, timeoutMs);
    } catch (error) {
      const { user, system } = process.cpuUsage(before);
      const hadItsTime = (user + system) / 1000 >= timeoutMs / 2;
      if (!wasCutOff(error) || hadItsTime || run === MOST_RUNS) throw error;
    }
  }
}

function runOnce<Result>(work: () => Result, timeoutMs: number): Result {
  // Not a sandbox: the work is ours. Only the clock of such a run is of use, which ends a regular expression too.
  ground ??= createContext({ work: null }) as { work: (() => unknown) | null };
  const outer = ground.work;
  ground.work = work;
  try {
    return SCRIPT.runInContext(ground, { timeout: timeoutMs });
  } finally {
    ground.work = outer;
  }
}

/** The error is of the other context: no `Error` of this one. */
function wasCutOff(error: unknown): boolean {
  return (
    typeof error === 'object' &&
    error !== null &&
    'code' in error &&
    error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
  );
}
