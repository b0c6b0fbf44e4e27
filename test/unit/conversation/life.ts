import fc from 'fast-check';
import { runs } from '../../support/runs.ts';
import { Core, rulesFor, SLUGS } from './core.ts';
import { sizesArbitrary, stepsArbitrary, take } from './random-steps.ts';

/** Runs random steps. With `oracle` the core compares every request with the rules. */
export function life(
  numRuns: number,
  check: (core: Core) => void,
  everyStep: (core: Core) => void = () => undefined,
  oracle = false,
  windows: fc.Arbitrary<number | null> = fc.constant(null),
): void {
  fc.assert(
    fc.property(sizesArbitrary, stepsArbitrary, windows, (sizes, steps, window) => {
      const rules = rulesFor(SLUGS.slice(0, sizes.agents), { modelCallsPerTurn: sizes.limit });
      const core = new Core(rules, oracle);
      core.window = window;
      for (const step of steps) {
        take(core, step);
        everyStep(core);
      }
      check(core);
    }),
    { numRuns: runs(Math.ceil(numRuns / 2)) },
  );
}

export { ofType as typed } from '../../support/log.ts';

/** Freezes the value and all it contains, so that a function that changes its input throws. */
export function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const key of Reflect.ownKeys(value)) frozen(Reflect.get(value, key));
  }
  return value;
}
