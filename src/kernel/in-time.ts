import { createContext, Script } from 'node:vm';

/**
 * Work that is cut off when it takes too long: for what somebody else's pattern makes us compute. One like `^(a+)+$`
 * needs more time than there is, and while it is tried nothing else in this process runs.
 */

const SCRIPT = new Script('work()');
/** Made once, when it is first needed: that takes some milliseconds. */
let ground: { work: (() => unknown) | null } | null = null;

/** Throws what the work throws, and `ERR_SCRIPT_EXECUTION_TIMEOUT` when it took longer. */
export function inTime<Result>(work: () => Result, timeoutMs: number): Result {
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
