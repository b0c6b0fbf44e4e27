import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { checkKnowledge } from '../../../src/conversation/index.ts';
import { runs } from '../../support/runs.ts';
import { stepsArbitrary, take } from '../conversation/random-steps.ts';
import { TightCore } from './tight-core.ts';

// The number of runs bounds the work, so a slow machine may take long.
vi.setConfig({ testTimeout: 120_000 });

/** Any interleaving of posts, turns and crashes, with messages of any length, in a window of any size. */

const windows = fc.oneof(fc.integer({ min: 500, max: 4_000 }), fc.integer({ min: 4_000, max: 1_000_000 }));
const limits = fc.record({
  maxMessages: fc.option(fc.integer({ min: 1, max: 40 }), { freq: 3 }),
  maxChars: fc.option(fc.integer({ min: 50, max: 20_000 }), { freq: 3 }),
});

function checkRandomRuns(numRuns: number, check: (core: TightCore) => void): void {
  fc.assert(
    fc.property(
      windows,
      limits,
      fc.integer({ min: 1, max: 3_000 }),
      stepsArbitrary,
      (window, hard, length, steps) => {
        const core = new TightCore(window, hard, length);
        for (const step of steps) take(core, step);
        core.drain();
        check(core);
      },
    ),
    { numRuns: runs(numRuns) },
  );
}

it('L13 V17: every request fits its window and is valid, or it is not sent and the log records the reason', () => {
  let reduced = 0;
  checkRandomRuns(120, (core) => {
    reduced += core.reductions.length;
    core.expectAllSentFit();
    core.expectRefusalsSaid();
  });
  expect(reduced).toBeGreaterThan(0); // Otherwise the test would check nothing.
});

it('V17: a summary covers whole groups that were shown, and nothing that is open', () => {
  checkRandomRuns(80, (core) => {
    core.expectLawfulSummaries();
    expect(checkKnowledge(core.entries)).toEqual([]);
  });
});

it('every entry that the agent knows is shown, summarised or named as left out', () => {
  checkRandomRuns(80, (core) => core.expectAllAccountedFor());
});

it('L6: an explanation has the bytes of the request, and names each entry that the agent knows once', () => {
  checkRandomRuns(80, (core) => core.expectExplained());
});

it('a reduction ends, and planning again after it changes nothing', () => {
  checkRandomRuns(60, (core) => core.expectSettled());
});
