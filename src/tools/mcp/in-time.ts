import { createContext, Script } from 'node:vm';

/**
 * Work that is cut off when it takes too long: for what a stranger's schema makes us compute. A pattern like `^(a+)+$`
 * needs more time than there is, and while it is tried nothing else in this process runs.
 */

const SCRIPT = new Script('work()');

/** Throws what the work throws, and `ERR_SCRIPT_EXECUTION_TIMEOUT` when it took longer. */
export function inTime<Result>(work: () => Result, timeoutMs: number): Result {
  // Not a sandbox: the work is ours. Only the clock of such a run is of use, which ends a regular expression too.
  return SCRIPT.runInContext(createContext({ work }), { timeout: timeoutMs });
}
