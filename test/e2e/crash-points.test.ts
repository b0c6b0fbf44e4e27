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
const PATIENCE_MS = 60_000;
/** Enough posts for a machine on which a crash takes so long; what is left of them at the end is not posted. */
const SLOWEST_SECONDS = 20;
/** So much faster than usual do people post: a daemon that waits for posts comes to no point. */
const HASTE = 3;
/** Seldom passed: once a start, and once each time that a conversation owes something again. */
const SELDOM = ['before-recovery', 'marked'];

describe('a daemon that is killed at each step of its work', () => {
  it(`${ROUNDS} times each, keeps every promise`, { timeout: isFull ? 3_600_000 : 180_000 }, async () => {
    const faults = Array.from({ length: ROUNDS }, (_, round) =>
      POINTS.map((name): Fault => {
        const nth = SELDOM.includes(name) ? 1 : 1 + (round % 4); // not the first arrival only
        return { kind: 'daemon-crash', atMs: 0, lastsMs: PATIENCE_MS, point: { name, nth } };
      }),
    ).flat();
    const seconds = faults.length * SLOWEST_SECONDS;
    const planned = createSchedule({ seed: 20, seconds, crashPoints: CRASH_POINTS }).posts;
    const posts = planned.map((post) => ({ ...post, atMs: post.atMs / HASTE }));
    const report = await runChaos({
      schedule: { seed: 20, seconds: seconds * 10, faults, posts, posting: 'while-faults' },
      env: process.env,
      launcher,
      say: () => undefined,
      keep: null,
      signal: new AbortController().signal,
    });
    expect(report.violations).toEqual([]);
    expect(report.crashes).toEqual(Object.fromEntries(POINTS.map((name) => [name, ROUNDS])));
    expect(report.counts.posts).toBeGreaterThan(faults.length);
  });
});
