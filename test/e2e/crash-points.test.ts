import { describe, expect, it } from 'vitest';
import type { CrashPoint } from '../../src/daemon/index.ts';
import { CRASH_POINTS } from '../../src/daemon/observe/crash-points.ts';
import { runChaos } from '../chaos/run.ts';
import { createCrashSchedule } from '../chaos/schedule.ts';
import { launcher } from '../support/cli.ts';
import { hasLongTests } from '../support/runs.ts';

/** L5, L9, L12: wherever a daemon is killed, nothing is lost, and no effect is repeated silently. */

/** One in a decision, a start and a tool; fast tests have that of a tool. `crash.test.ts` has those of a post and of a model call. */
const SAMPLE: readonly CrashPoint[] = ['after-append', 'before-recovery', 'after-tool'];
/**
 * In the order of the work. What is outstanding when a daemon ends before its model call, the next one finds at
 * `before-recovery`. These run concurrently, each with its own daemon.
 */
const THIRDS = [0, 5, 10].map((first) => CRASH_POINTS.slice(first, first + 5));
const [ROUNDS, GROUPS] =
  process.env.PARLEY_FULL === '1' ? [20, THIRDS] : [1, [hasLongTests ? SAMPLE : SAMPLE.slice(-1)]];
/** For one crash: a start and the work until the point. Generous, as a crash ends the wait. */
const PATIENCE_MS = 120_000;
/** Rarely reached: once per start, and once each time a conversation has outstanding work again. */
const SELDOM: readonly CrashPoint[] = ['before-recovery', 'marked'];

describe('a daemon that is killed at each step of its work', () => {
  it.concurrent.each(GROUPS.map((points) => [points]))(
    `a daemon that is killed ${ROUNDS} times at each of %s keeps every promise`,
    { timeout: 3_600_000 },
    async (points) => {
      const crashes = Array.from({ length: ROUNDS }, (_, round) =>
        // Not only the first time that the point is reached.
        points.map((name) => ({ name, nth: SELDOM.includes(name) ? 1 : 1 + (round % 3) })),
      ).flat();
      const report = await runChaos({
        schedule: createCrashSchedule(20, crashes, PATIENCE_MS),
        env: process.env,
        launcher,
        say: () => undefined,
        keep: null,
        signal: new AbortController().signal,
      });
      expect(report.violations).toEqual([]);
      expect(report.crashes).toEqual(Object.fromEntries(points.map((name) => [name, ROUNDS])));
      expect(report.counts.posts).toBeGreaterThan(crashes.length);
    },
  );
});
