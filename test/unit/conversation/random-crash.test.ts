import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { runs } from '../../support/runs.ts';
import { typed } from './life.ts';
import { OPERATOR, sizesArbitrary, stepsArbitrary, take } from './random-steps.ts';
import { expectCursors, rulesFor, SLUGS, World } from './world.ts';

// The number of runs bounds the work, so a slow machine may take long.
vi.setConfig({ testTimeout: 120_000 });

describe('a crash at any batch boundary', () => {
  it('L6 L12: recovery after a crash leaves no trigger unanswered, answers none twice, and repeats a call with the same bytes', () => {
    fc.assert(
      fc.property(sizesArbitrary, stepsArbitrary, fc.nat(), (sizes, steps, cut) => {
        const world = new World(rulesFor(SLUGS.slice(0, sizes.agents), { modelCallsPerTurn: sizes.limit }));
        for (const step of steps) take(world, step);
        world.crash(cut % world.boundaries.length);
        for (const agent of [null, ...world.rules.roster.agents.keys()])
          world.do({ type: 'resume', agent, by: OPERATOR });
        world.drain();
        expectCursors(world.entries);
        const routed = typed(world.entries, 'message').flatMap((entry) =>
          entry.role === 'user' ? (entry.to ?? []).map((agent) => ({ agent, index: entry.index })) : [],
        );
        for (const { agent, index } of routed) {
          const turns = typed(world.entries, 'turn-started').filter(
            (entry) => entry.agent === agent && entry.trigger.includes(index),
          );
          const delivered = typed(world.entries, 'message-delivered').filter(
            (entry) => entry.agent === agent && entry.entries.includes(index),
          );
          const turnIds = new Set([...turns, ...delivered].map((entry) => entry.turnId));
          expect([index, turnIds.size]).toEqual([index, 1]);
          const ends = typed(world.entries, 'turn-ended').filter((entry) => turnIds.has(entry.turnId));
          expect([index, ends.length]).toEqual([index, 1]);
        }
      }),
      { numRuns: runs(40) },
    );
  });
});
