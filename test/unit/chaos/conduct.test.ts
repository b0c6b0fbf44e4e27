import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Environment } from '../../chaos/environment.ts';
import { ProgressTimeout } from '../../chaos/observe.ts';
import { runSchedule as runWith } from '../../chaos/runner.ts';
import { FAULT_KINDS, type Fault, type FaultKind, type Schedule } from '../../chaos/schedule.ts';

/** Records its calls in order. `breaks`: the act that fails. */
function fakeEnvironment(breaks = '', others: readonly string[] = []) {
  const acts: string[] = [];
  const actor = (name: string, kind?: string) =>
    new Proxy(
      {},
      {
        get: (_, act) =>
          act === 'kind' || act === 'why'
            ? kind
            : async (...given: unknown[]) => {
                acts.push([name, String(act), ...given].join(' '));
                if (`${name} ${String(act)}` === breaks) throw new Error(`${breaks} failed`);
              },
      },
    );
  const environment = (kind: string) => ({
    ...{ servers: [actor('server')], leader: async () => null, model: actor('model'), tools: actor('tools') },
    daemons: [actor('daemon'), ...others.map((other) => actor(`daemon ${other}`))],
    disk: actor('disk', kind),
    proxies: {
      daemons: [actor('way of daemon'), ...others.map((other) => actor(`way of daemon ${other}`))],
      publishers: actor('way of publishers'),
    },
  });
  return { acts, environment: (disk = 'small') => environment(disk) as unknown as Environment };
}

const conduct = (...given: [Schedule, Environment, AbortSignal]) => runWith(...given, () => undefined);
const HEALED = [
  ...['disk free', 'model heal', 'tools heal', 'daemon thaw', 'server thaw'],
  ...['way of daemon heal', 'way of publishers heal', 'server start'],
];
const signal = () => new AbortController().signal;
const fault = (kind: FaultKind, more: Partial<Fault> = {}): Fault => ({ kind, atMs: 0, lastsMs: 1, ...more });
const schedule = (...faults: Fault[]) => ({ seed: 1, seconds: 60, faults, posts: [] });

describe('running a schedule', () => {
  it.each<[Fault, string[]]>([
    [fault('daemon-kill'), ['daemon kill 1']],
    [fault('daemon-stop'), ['daemon stop 1']],
    [fault('daemon-freeze'), ['daemon freeze', 'daemon thaw']],
    [
      fault('daemon-crash', { point: { name: 'before-tool', nth: 2 } }),
      ['daemon crashAt before-tool 2 1 () => undefined'],
    ],
    [fault('server-kill'), ['server end SIGKILL', 'server start']],
    [fault('server-stop'), ['server end SIGTERM', 'server start']],
    [fault('server-freeze'), ['server freeze', 'server thaw']],
    [fault('network-cut', { between: 'publishers' }), ['way of publishers cut', 'way of publishers heal']],
    [fault('network-stall', { between: 'daemon' }), ['way of daemon stall', 'way of daemon heal']],
    [
      fault('network-slow', { between: 'daemon', delayMs: 9 }),
      ['way of daemon slow 9', 'way of daemon heal'],
    ],
    [fault('disk-full'), ['disk fill', 'disk free']],
    [fault('model-hang'), ['model misbehave hang', 'model heal']],
    [fault('model-error'), ['model misbehave error', 'model heal']],
    [fault('model-busy'), ['model misbehave busy', 'model heal']],
    [fault('model-drop'), ['model misbehave drop', 'model heal']],
    [fault('tools-slow'), ['tools misbehave slow', 'tools heal']],
    [fault('tools-drop'), ['tools misbehave drop', 'tools heal']],
  ])('the runner applies and reverts $kind, and restores everything', async (one, expected) => {
    const { acts, environment } = fakeEnvironment();
    const done = await conduct(schedule(one), environment(), signal());
    expect(acts).toEqual([...expected, ...HEALED]);
    expect(done).toEqual({ counts: { [one.kind]: 1 }, skipped: [] });
  });

  it('the runner waits for the start of a daemon that it should break when it is ready', async () => {
    const { acts, environment } = fakeEnvironment();
    await conduct(schedule(fault('daemon-kill', { onceReady: true })), environment(), signal());
    expect(acts.slice(0, 2)).toEqual([
      expect.stringMatching(/^daemon waitUntilReady 15000/),
      'daemon kill 1',
    ]);
  });

  it('the runner lets a crash request work', async () => {
    let asked = 0;
    const crashAt = async (...[, , , keepBusy]: [string, number, number, () => void]) => keepBusy();
    const environment = { ...fakeEnvironment().environment(), daemons: [{ crashAt, thaw: () => undefined }] };
    const crash = fault('daemon-crash', { point: { name: 'before-tool', nth: 2 } });
    await runWith(schedule(crash), environment as unknown as Environment, signal(), () => void asked++);
    expect(asked).toBe(1);
  });

  it('the runner applies the faults of a lane one after the other (RUNNER-1)', async () => {
    const { acts, environment } = fakeEnvironment();
    await conduct(schedule(fault('model-hang'), fault('model-busy')), environment(), signal());
    expect(acts.slice(0, 4)).toEqual([
      'model misbehave hang',
      'model heal',
      'model misbehave busy',
      'model heal',
    ]);
  });

  it('the runner applies the faults of each daemon independent of the others', async () => {
    const { acts, environment } = fakeEnvironment('', ['two', 'three']);
    const faults = [
      fault('daemon-freeze', { daemon: 1, lastsMs: 80 }),
      fault('daemon-kill', { daemon: 2, onceReady: true }),
      fault('daemon-crash', { daemon: 2, point: { name: 'before-tool', nth: 1 } }),
      fault('network-stall', { daemon: 1, between: 'daemon', lastsMs: 10 }),
    ];
    await conduct(schedule(...faults), environment(), signal());
    const [healed] = [acts.indexOf('disk free')];
    const done = acts.slice(0, healed).filter((act) => !act.includes('waitUntilReady'));
    expect(done.slice(0, -1).sort()).toEqual([
      'daemon three crashAt before-tool 1 1 () => undefined',
      'daemon three kill 1',
      'daemon two freeze',
      'way of daemon two heal',
      'way of daemon two stall',
    ]);
    expect(done.indexOf('daemon three kill 1')).toBeLessThan(
      done.indexOf('daemon three crashAt before-tool 1 1 () => undefined'),
    );
    expect(done.at(-1)).toBe('daemon two thaw');
    expect(acts.slice(healed)).toEqual(
      HEALED.flatMap((act) =>
        /daemon/.test(act)
          ? [act, act.replace('daemon', 'daemon two'), act.replace('daemon', 'daemon three')]
          : [act],
      ),
    );
  });

  it('the runner delays a fault until another daemon can continue the work that it interrupts', async () => {
    const { acts, environment } = fakeEnvironment('', ['two']);
    await conduct(schedule(fault('daemon-kill', { daemon: 1 })), environment(), signal());
    expect(acts.slice(0, 2)).toEqual([
      expect.stringMatching(/^daemon waitUntilReady 15000/),
      'daemon two kill 1',
    ]);
  });

  it('the runner applies a fault of a cluster to the given server, or to the current leader', async () => {
    const { acts, environment } = fakeEnvironment();
    const fake = environment() as unknown as { servers: unknown[]; leader: () => Promise<unknown> };
    const [one] = fake.servers;
    const act = (name: string) => ({
      end: async () => void acts.push(`${name} end`),
      start: async () => void acts.push(`${name} start`),
      thaw: () => undefined,
    });
    const [two, three] = [act('two'), act('three')];
    fake.servers = [one, two, three];
    const kill = (more: Partial<Fault>) => schedule(fault('server-kill', { server: 1, ...more }));
    await conduct(kill({}), fake as unknown as Environment, signal());
    expect(acts.slice(0, 2)).toEqual(['two end', 'two start']);
    for (const [leader, expected] of [
      [three, 'three end'],
      [null, 'two end'],
    ] as const) {
      acts.length = 0;
      fake.leader = async () => leader;
      await conduct(kill({ leader: true }), fake as unknown as Environment, signal());
      expect(acts[0]).toBe(expected);
    }
  });

  it('the runner refuses a fault of a daemon that does not exist', async () => {
    const { acts, environment } = fakeEnvironment();
    await expect(
      conduct(schedule(fault('daemon-kill', { daemon: 1 })), environment(), signal()),
    ).rejects.toThrow('there is no daemon 1');
    expect(acts).toEqual(HEALED);
  });

  it('the runner restores everything if an act fails or the run ends early (RUNNER-2)', async () => {
    const failing = fakeEnvironment('disk fill');
    await expect(conduct(schedule(fault('disk-full')), failing.environment(), signal())).rejects.toThrow(
      'disk fill failed',
    );
    expect(failing.acts).toEqual(['disk fill', ...HEALED]);
    const ended = fakeEnvironment();
    await conduct(schedule(fault('daemon-kill', { atMs: 60_000 })), ended.environment(), AbortSignal.abort());
    expect(ended.acts).toEqual(HEALED);
  });

  it('the runner reports what it could not do', async () => {
    const { acts, environment } = fakeEnvironment();
    const late = { ...schedule(fault('disk-full'), fault('model-hang')), seconds: 0 };
    const done = await conduct(late, environment('simulated'), signal());
    expect(done.counts).toEqual({});
    expect(done.skipped).toEqual([
      'disk-full on a real disk: simulated; the store simulated one',
      'the last ones: earlier ones took longer than planned',
    ]);
    expect(acts).not.toContain('model misbehave hang');
    const fake = await conduct(schedule(fault('disk-full')), environment('simulated'), signal());
    expect(fake.counts).toEqual({ 'disk-full': 1 });
    expect(acts).toContain('disk fill');
  });

  it('the examples of this test contain every kind of fault', () => {
    expect(Object.keys(FAULT_KINDS)).toHaveLength(17);
  });
});

describe('the time limit for outstanding work', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
  afterEach(() => void vi.useRealTimers());
  const pass = (ms: number) => void vi.advanceTimersByTime(ms);

  it('the wait ends after a time without new entries, and not while there are some', () => {
    const patience = new ProgressTimeout(1_000);
    for (let entries = 0; entries < 10; entries++) {
      pass(900);
      expect(patience.isOver(entries)).toBe(false);
    }
    pass(900);
    expect(patience.isOver(9)).toBe(false);
    pass(200);
    expect(patience.isOver(9)).toBe(true);
  });

  it('the wait has a total limit, as a team may continue for ever', () => {
    const patience = new ProgressTimeout(1_000);
    let entries = 0;
    while (!patience.isOver(entries++) && entries < 10_000) pass(900);
    expect(entries).toBeLessThan(10_000);
  });
});
