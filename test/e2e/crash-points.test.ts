import { describe, expect, it } from 'vitest';
import { createSchedule, type Fault, runChaos } from '../../src/chaos/index.ts';
import { CRASH_POINTS } from '../../src/config/index.ts';
import { launcher } from '../support/cli.ts';

/** L5, L9, L12: at whatever step of its work a daemon is killed, nothing is lost, and nothing happens twice in silence. */

const isFull = process.env.PARLEY_FULL === '1';
/** One of each stretch of the work: a post comes, is kept, is asked about, taken up again, acted on, settled. */
const SAMPLE = [
  'post-received',
  'after-append',
  'before-model-call',
  'before-recovery',
  'after-tool',
  'post-settled',
];
const POINTS = CRASH_POINTS.filter((name) => isFull || SAMPLE.includes(name));
const ROUNDS = isFull ? 20 : 1;
/** For one crash: a start, and the way to the point. More than it ever takes; a crash ends the wait. */
const PATIENCE_MS = 30_000;
const USUAL_SECONDS = 3;

describe('a daemon that is killed at each step of its work', () => {
  it(`${ROUNDS} times each, keeps every promise`, { timeout: isFull ? 3_600_000 : 180_000 }, async () => {
    const faults = Array.from({ length: ROUNDS }, (_, round) =>
      POINTS.map((name): Fault => {
        // Not the first arrival only. A recovery happens at a start, once for each conversation that owes something.
        const nth = name === 'before-recovery' ? 1 : 1 + (round % 4);
        return { kind: 'daemon-crash', atMs: 0, lastsMs: PATIENCE_MS, point: { name, nth } };
      }),
    ).flat();
    const seconds = Math.ceil(faults.length * USUAL_SECONDS);
    const { posts } = createSchedule({ seed: 20, seconds, crashPoints: CRASH_POINTS });
    const report = await runChaos({
      schedule: { seed: 20, seconds: seconds * 10, faults, posts },
      env: process.env,
      launcher,
      say: () => undefined,
      keep: null,
      signal: new AbortController().signal,
    });
    expect(report.violations).toEqual([]);
    expect(report.crashes).toEqual(Object.fromEntries(POINTS.map((name) => [name, ROUNDS])));
    expect(report.counts.posts).toBe(posts.length);
  });
});
