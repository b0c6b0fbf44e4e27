import { describe, expect, it, vi } from 'vitest';
import { chaosOptions, createProgram, renderChaos, sharingOptions } from '../../chaos/main.ts';
import type { ChaosReport } from '../../chaos/report.ts';

const REPORT: ChaosReport = {
  seed: 5,
  faultSeconds: 30,
  seconds: 31.5,
  faults: { 'daemon-kill': 4, 'disk-full': 1 },
  crashes: { 'before-tool': 2 },
  skipped: ['disk-full: no small disk can be mounted here'],
  counts: { posts: 120, descriptors: null },
  violations: [],
};
const LOST = { law: 'posts', conversation: 'oak-1', index: 7, text: 'ann-oak-1-3 is in the log twice' };
const LEFT = { law: 'leftovers', conversation: null, index: null, text: 'a process is left: 17' };

const never = new AbortController().signal;

/** What the command does with these words; null: it refuses them. */
async function parsed(...words: string[]) {
  const act = vi.fn(async () => {});
  const program = createProgram(act)
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  await program.parseAsync(words, { from: 'user' }).catch(() => {});
  const [call] = act.mock.calls as unknown as [Parameters<typeof chaosOptions>[0]][];
  return call?.[0] ?? null;
}

describe('npm run chaos', () => {
  it('a chaos run reports what it did, what it could not do, and the result', () => {
    expect(renderChaos(REPORT, '').split('\n')).toEqual([
      'seed 5, 31.5 s',
      'faults: daemon-kill 4, disk-full 1',
      'crash points hit: before-tool 2',
      'skipped: disk-full: no small disk can be mounted here',
      'seen: posts 120, descriptors unknown',
      'nothing lost, nothing twice: 0 violations',
    ]);
  });

  it('a chaos run with violations reports where, and how to repeat it', async () => {
    const sharing = [
      '--store',
      'jetstream',
      '--daemons',
      '3',
      '--conversations',
      '50',
      '--failure-timeout',
      '900',
    ];
    const args = await parsed(...sharing);
    if (!args) throw new Error('the arguments were refused');
    const text = renderChaos({ ...REPORT, crashes: {}, violations: [LOST, LEFT] }, sharingOptions(args));
    expect(text).toContain('crash points hit: none\n');
    expect(text).toContain('VIOLATION posts (oak-1 7): ann-oak-1-3 is in the log twice\n');
    expect(text).toContain('VIOLATION leftovers: a process is left: 17\n');
    expect(text).toContain(`npm run chaos -- --seconds 30 --seed 5 ${sharing.join(' ')}`);
    expect(chaosOptions(args, never)).toMatchObject({
      store: 'jetstream',
      failureTimeoutMs: 900,
      schedule: { daemons: 3 },
    });
  });

  it('a chaos run with several daemons reports the takeover times', () => {
    const takeovers = { count: 40, medianMs: 8_049, p99Ms: 12_000, mostMs: 14_000 };
    expect(renderChaos({ ...REPORT, takeovers }, '')).toContain(
      'takeovers: 40, median 8.0 s, p99 12.0 s, at most 14.0 s (wanted: 10 s at p99)\n',
    );
    expect(renderChaos({ ...REPORT, takeovers: null }, '')).toContain('takeovers: none\n');
  });

  it('a chaos run takes a minute and chooses a seed if none is given', async () => {
    const args = await parsed();
    if (!args) throw new Error('the arguments were refused');
    const { keep, schedule } = chaosOptions(args, never);
    expect(keep).toBeNull();
    expect(schedule.seconds).toBe(60);
    expect(schedule.seed).toBeGreaterThanOrEqual(0);
  });

  it.each([
    ['--seconds', '0'],
    ['--seconds', 'x'],
    ['--seconds', '-1'],
    ['--seconds', '1.5'],
    ['--servers', '2'],
    ['--store', 'paper'],
  ])('a chaos run refuses %s %s', async (...words) => {
    expect(await parsed(...words)).toBeNull();
  });
});
