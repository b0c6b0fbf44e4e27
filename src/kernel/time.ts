import { createContext, Script } from 'node:vm';

const UNITS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

export const DURATION_PATTERN = /^([1-9]\d{0,5})([smhdw])$/;
export const DURATION_FORM = 'a whole number with s, m, h, d or w, such as 90d';

/** Milliseconds of `90d`; null: it is no duration. */
export function durationOf(text: string): number | null {
  const [, count, unit] = DURATION_PATTERN.exec(text) ?? [];
  return count && unit ? Number(count) * (UNITS[unit] ?? 0) : null;
}

/** Compares the numbers of a version such as `2.10.27-beta.1` with the least one that will do. */
export function isAtLeast(version: string, least: readonly number[]): boolean {
  const parts = version.split(/[.-]/).map((part) => Number.parseInt(part, 10) || 0);
  for (const [place, number] of least.entries()) {
    const part = parts[place] ?? 0;
    if (part !== number) return part > number;
  }
  return true;
}

/** A time in milliseconds. Injected, so that the core stays pure. */
export type Clock = () => number;

/** Milliseconds since the epoch. An operator may set this clock at any time: for dates only, never for durations. */
export const systemClock: Clock = () => Date.now();

/** Milliseconds since some moment of this process. Nothing sets this clock: for durations and deadlines. */
export const monotonicClock: Clock = () => performance.now();

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
