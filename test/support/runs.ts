/** Also the tests that take long (`*.long.test.ts`). */
export const hasLongTests = process.env.PARLEY_LONG === '1' || process.env.PARLEY_FULL === '1';

/**
 * How often a property is tested. The numbers in the tests are those of the long tests: the fast ones take a third, and
 * `npm run test:full` (PARLEY_FULL=1) ten times as many.
 */
export function runs(sample: number): number {
  return hasLongTests ? size(sample) : Math.ceil(sample / 3);
}

/** How large an input is: ten times the sample in `npm run test:full`. */
export function size(sample: number): number {
  return process.env.PARLEY_FULL === '1' ? sample * 10 : sample;
}

/** How many kills a loop makes: PARLEY_KILLS, else 100 in `npm run test:full`, else the sample. */
export function kills(sample: number): number {
  return Number(process.env.PARLEY_KILLS ?? (process.env.PARLEY_FULL === '1' ? 100 : sample));
}
