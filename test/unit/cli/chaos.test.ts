import { describe, expect, it } from 'vitest';
import { type ChaosOptions, type ChaosReport, createSchedule, faultsFrom } from '../../../src/chaos/index.ts';
import { start } from './support.ts';

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

function played(report: ChaosReport, wait?: (options: ChaosOptions) => Promise<void>) {
  const asked: ChaosOptions[] = [];
  const runChaos = async (options: ChaosOptions) => {
    asked.push(options);
    options.say('faults');
    await wait?.(options);
    return report;
  };
  return { asked, options: { rooms: { chaos: async () => ({ createSchedule, runChaos, faultsFrom }) } } };
}

describe('chaos', () => {
  it('chaos reports what it did, what it could not do, and the result', async () => {
    const { asked, options } = played(REPORT);
    const ran = await start(['chaos', '--seconds', '30', '--seed', '5', '--keep', 'found'], options).done;
    expect(ran.code).toBe(0);
    expect(ran.out.split('\n')).toEqual([
      'seed 5, 31.5 s',
      'faults: daemon-kill 4, disk-full 1',
      'crash points hit: before-tool 2',
      'skipped: disk-full: no small disk can be mounted here',
      'seen: posts 120, descriptors unknown',
      'nothing lost, nothing twice: 0 violations',
      '',
    ]);
    expect(asked[0]?.schedule).toMatchObject({ seed: 5, seconds: 30 });
    expect(asked[0]?.keep).toMatch(/\/found$/);
  });

  it('chaos exits with 1 if it found a fault, and reports where, and how to repeat the run', async () => {
    const { options } = played({ ...REPORT, crashes: {}, violations: [LOST, LEFT] });
    const ran = await start(['chaos'], options).done;
    expect(ran.code).toBe(1);
    expect(ran.out).toContain('crash points hit: none\n');
    expect(ran.out).toContain('VIOLATION posts (oak-1 7): ann-oak-1-3 is in the log twice\n');
    expect(ran.out).toContain('VIOLATION leftovers: a process is left: 17\n');
    expect(ran.out).toContain('2 violations; the same faults again: parley chaos --seconds 30 --seed 5');
  });

  it('chaos with several daemons reports the takeover times, and how to repeat the run', async () => {
    const takeovers = { count: 40, medianMs: 8_049, p99Ms: 12_000, mostMs: 14_000 };
    const { asked, options } = played({ ...REPORT, takeovers, violations: [LOST] });
    const sharing = ['--store', 'jetstream', '--daemons', '3', '--conversations', '50', '--silence', '900'];
    const ran = await start(['chaos', ...sharing], options).done;
    expect(asked[0]).toMatchObject({ store: 'jetstream', silenceMs: 900, schedule: { daemons: 3 } });
    expect(new Set(asked[0]?.schedule.posts.map(({ conversation }) => conversation)).size).toBeGreaterThan(
      40,
    );
    expect(ran.out).toContain(
      'takeovers: 40, median 8.0 s, p99 12.0 s, at most 14.0 s (wanted: 15 s at p99)\n',
    );
    expect(ran.out).toContain(`parley chaos --seconds 30 --seed 5 ${sharing.join(' ')}\n`);
    const none = await start(['chaos', ...sharing], played({ ...REPORT, takeovers: null }).options).done;
    expect(none.out).toContain('takeovers: none\n');
  });

  it('chaos refuses several daemons on files, and an unknown store', async () => {
    const { asked, options } = played(REPORT);
    const ran = await start(['chaos', '--daemons', '3'], options).done;
    expect(ran.code).toBe(2);
    expect(ran.err).toContain('daemons cannot share files');
    expect((await start(['chaos', '--store', 'paper'], options).done).code).toBe(2);
    expect(asked).toEqual([]);
  });

  it('chaos prints the report as JSON, and chooses a seed if none is given', async () => {
    const { asked, options } = played(REPORT);
    const ran = await start(['chaos', '--json'], options).done;
    expect(ran.json()).toEqual([REPORT]);
    expect(asked[0]?.schedule.seed).toBeGreaterThanOrEqual(0);
    expect(asked[0]).toMatchObject({ keep: null, schedule: { seconds: 60 } });
  });

  it('chaos stops its faults at the first signal and checks the result, and ends at the second', async () => {
    const { asked, options } = played(
      REPORT,
      ({ signal }) =>
        new Promise((resolve) => signal.addEventListener('abort', () => setTimeout(resolve, 50))),
    );
    const running = start(['chaos'], options);
    await expect.poll(running.listeners).toBe(1);
    await expect.poll(() => asked.length).toBe(1);
    running.signal('SIGINT');
    running.signal('SIGINT');
    const ran = await running.done;
    expect(ran.code).toBe(0);
    expect(running.exits).toEqual([1]);
    expect(running.listeners()).toBe(0);
  });

  it.each(['0', 'x', '-1', '1.5'])('chaos refuses a duration of %s seconds', async (seconds) => {
    const ran = await start(['chaos', '--seconds', seconds], played(REPORT).options).done;
    expect(ran.code).toBe(2);
  });
});
