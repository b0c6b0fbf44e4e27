import { describe, expect, it } from 'vitest';
import { createCrashSchedule, runChaos } from '../../src/chaos/index.ts';
import { CRASH_POINTS, type CrashPoint } from '../../src/config/index.ts';
import { launcher } from '../support/cli.ts';

/** L5, L9, L12: at whatever step of its work a daemon is killed, nothing is lost, and nothing happens twice in silence. */

/** One of each stretch of the work: a post comes, is kept, is asked about, taken up again, acted on, settled. */
const SAMPLE: readonly CrashPoint[] = [
  'post-received',
  'after-append',
  'before-model-call',
  'before-recovery',
  'after-tool',
  'post-settled',
];
/**
 * In the order of the work: what is owed when a daemon ends before its model call, the next one finds at `before-recovery`.
 * Side by side, each with a daemon of its own.
 */
const THIRDS = [0, 5, 10].map((first) => CRASH_POINTS.slice(first, first + 5));
const [ROUNDS, GROUPS] = process.env.PARLEY_FULL === '1' ? [20, THIRDS] : [1, [SAMPLE]];
/** For one crash: a start, and the way to the point. More than it ever takes; a crash ends the wait. */
const PATIENCE_MS = 120_000;
/** Seldom passed: once a start, and once each time that a conversation owes something again. */
const SELDOM: readonly CrashPoint[] = ['before-recovery', 'marked'];

describe('a daemon that is killed at each step of its work', () => {
  it.concurrent.each(GROUPS.map((points) => [points]))(
    `${ROUNDS} times at each of %s, keeps every promise`,
    { timeout: 3_600_000 },
    async (points) => {
      const crashes = Array.from({ length: ROUNDS }, (_, round) =>
        // Not the first arrival only.
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
