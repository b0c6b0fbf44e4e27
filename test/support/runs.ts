/** Also the tests that take long (`*.long.test.ts`). */
export const hasLongTests = process.env.PARLEY_LONG === '1' || process.env.PARLEY_FULL === '1';

/**
 * How often a property is tested: a sample in the fast tests, many more in `npm run test:full` (PARLEY_FULL=1). The
 * numbers in the tests are those of the sample.
 */
export function runs(sample: number): number {
  return process.env.PARLEY_FULL === '1' ? sample * 10 : sample;
}

/** How many kills a loop makes: PARLEY_KILLS, else 100 in `npm run test:full`, else the sample. */
export function kills(sample: number): number {
  return Number(process.env.PARLEY_KILLS ?? (process.env.PARLEY_FULL === '1' ? 100 : sample));
}
