import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { LAUNCHER_VARIABLE, launcher, runCli } from '../support/cli.ts';

const MAIN = fileURLToPath(new URL('../chaos/main.ts', import.meta.url));

/** `npm run chaos`, on the package of this test run. */
function chaos(args: readonly string[], directory: string) {
  const env = { TMPDIR: directory, TSX_DISABLE_CACHE: '1', [LAUNCHER_VARIABLE]: launcher };
  return runCli(['tsx', MAIN, ...args], { env, program: '--import', patienceMs: 110_000 });
}

const isFull = process.env.PARLEY_FULL === '1';

describe('npm run chaos', () => {
  it('chaos breaks daemons that share the work, and finds no lost entry and no conversation with two owners', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'parley-chaos-test-'));
    try {
      const faults = isFull
        ? ['--seed', '11', '--seconds', '20', '--daemons', '3']
        : ['--seed', '35', '--seconds', '4', '--daemons', '2'];
      // A failure timeout short enough for takeovers within the run.
      const sharing = ['--store', 'jetstream', '--failure-timeout', '1500', ...faults];
      const args = ['--json', '--keep', join(folder, 'found'), ...sharing];
      const ran = await chaos(args, folder);
      const [report] = ran.json();
      expect(report.violations).toEqual([]);
      expect(ran.code).toBe(0);
      expect(report.counts.posts).toBeGreaterThan(isFull ? 30 : 5);
      expect(report.faults['daemon-kill']).toBeGreaterThan(0);
      if (isFull) expect(report.takeovers.count).toBeGreaterThan(0);
      expect(await readdir(folder)).toEqual([]);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it('chaos breaks everything for a while, finds nothing lost, and leaves nothing behind', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'parley-chaos-test-'));
    try {
      const args = ['--seconds', '20', '--seed', '3', '--json', '--keep', join(folder, 'found')];
      const ran = await chaos(args, folder);
      const [report] = ran.json();
      expect(report.violations).toEqual([]);
      expect(ran.code).toBe(0);
      expect(report.seed).toBe(3);
      expect(Object.keys(report.faults).length).toBeGreaterThan(5);
      expect(report.counts.posts).toBeGreaterThan(30);
      expect(report.counts.effects).toBeGreaterThan(0);
      expect(report.counts.views).toBeGreaterThan(20);
      expect(await readdir(folder)).toEqual([]); // No logs were kept either, as nothing was found.
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
