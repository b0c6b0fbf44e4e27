import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';

const isFull = process.env.PARLEY_FULL === '1';

describe('parley chaos', () => {
  it('chaos breaks daemons that share the work, and finds no lost entry and no conversation with two owners', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'parley-chaos-test-'));
    try {
      const faults = isFull
        ? ['--seed', '11', '--seconds', '20', '--daemons', '3']
        : ['--seed', '35', '--seconds', '4', '--daemons', '2'];
      // A failure timeout short enough for takeovers within the run.
      const sharing = ['--store', 'jetstream', '--silence', '1500', ...faults];
      const args = ['chaos', '--json', '--keep', join(folder, 'found'), ...sharing];
      const ran = await runCli(args, { env: { TMPDIR: folder }, patienceMs: 110_000 });
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
      // Its directory and its disk are created here.
      const env = { TMPDIR: folder };
      const args = ['chaos', '--seconds', '20', '--seed', '3', '--json', '--keep', join(folder, 'found')];
      const ran = await runCli(args, { env, patienceMs: 110_000 });
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
