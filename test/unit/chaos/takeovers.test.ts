import { describe, expect, it } from 'vitest';
import type { Entry } from '../../../src/client/index.ts';
import type { Outage } from '../../chaos/actors/daemon.ts';
import { takeoversIn, waitsIn as waitsSeen } from '../../chaos/checks/takeovers.ts';

/** A log with a post at second 1 and its answer at second 60. `claims`: which daemon at which second. */
function logOf(claims: readonly (readonly [daemon: string, second: number])[], answeredAt = 60) {
  const at = (second: number) => new Date(Date.UTC(2026, 10, 22) + second * 1_000).toISOString();
  const asked = [
    { type: 'message', role: 'user', to: ['pm'], createdAt: at(1) },
    { type: 'turn-started', agent: 'pm', turnId: 't', trigger: [1], createdAt: at(1) },
  ];
  const end = {
    type: 'turn-ended',
    agent: 'pm',
    turnId: 't',
    outcome: 'completed',
    createdAt: at(answeredAt),
  };
  const all = [
    ...claims.map(([daemon, second]) => ({ type: 'claim', daemon, createdAt: at(second) })),
    ...asked,
    end,
  ];
  const order = ['claim', 'message', 'turn-started', 'turn-ended'];
  const sorted = all.sort(
    (a, b) => a.createdAt.localeCompare(b.createdAt) || order.indexOf(a.type) - order.indexOf(b.type),
  );
  return new Map([['oak', sorted.map((entry, index) => ({ ...entry, index })) as unknown as Entry[]]]);
}

const out = (
  daemon: string,
  how: Outage['how'],
  fromSecond: number,
  untilSecond: number | null = null,
): Outage => {
  const ms = (second: number) => Date.UTC(2026, 10, 22) + second * 1_000;
  return { daemon, how, from: ms(fromSecond), until: untilSecond === null ? null : ms(untilSecond) };
};

/** Another daemon that runs all the time. */
const somebody = { daemon: 'somebody', from: 0, until: null };
const waitsIn = (logs: ReturnType<typeof logOf>, outages: Outage[]) =>
  waitsSeen(logs, { outages, lives: [somebody] });

describe('the time until another daemon takes over', () => {
  it('a takeover time is measured from the kill to the next claim', () => {
    const logs = logOf([
      ['a', 1],
      ['b', 14],
    ]);
    expect(waitsIn(logs, [out('a', 'killed', 4)])).toEqual([10_000]);
  });

  it('a takeover time is measured from the freeze to the next claim, if that came before the daemon resumed', () => {
    const logs = logOf([
      ['a', 1],
      ['b', 14],
    ]);
    expect(waitsIn(logs, [out('a', 'frozen', 4, 30)])).toEqual([10_000]);
    expect(waitsIn(logs, [out('a', 'frozen', 4, 12)])).toEqual([]); // resumed, and taken over for another reason
  });

  it('a takeover time is the whole freeze if no daemon took over a long one, and none if it was short', () => {
    const logs = logOf([['a', 1]]);
    expect(waitsIn(logs, [out('a', 'frozen', 4, 30)])).toEqual([26_000]);
    expect(waitsIn(logs, [out('a', 'frozen', 4, 12)])).toEqual([]);
  });

  it('takeover times include only conversations of that daemon with outstanding work at that time', () => {
    const claims = [
      ['a', 1],
      ['b', 14],
    ] as const;
    expect(waitsIn(logOf(claims), [out('b', 'killed', 4), out('c', 'killed', 4)])).toEqual([]);
    expect(waitsIn(logOf(claims, 3), [out('a', 'killed', 4)])).toEqual([]);
    expect(waitsIn(logOf(claims), [out('a', 'killed', 20)])).toEqual([]);
  });

  it('a takeover time starts when another daemon runs, and is not counted for work that a start recovers', () => {
    const logs = logOf([
      ['a', 1],
      ['b', 14],
    ]);
    const outages = [out('a', 'killed', 4), out('b', 'frozen', 11, 12)];
    const life = (daemon: string, fromSecond: number, untilSecond: number | null = null) => {
      const { from, until } = out(daemon, 'frozen', fromSecond, untilSecond);
      return { daemon, from, until };
    };
    const waits = (...lives: ReturnType<typeof life>[]) => waitsSeen(logs, { outages, lives });
    expect(waits(life('a', 0), life('b', 2))).toEqual([2_000]); // b was frozen until second 12
    expect(waits(life('b', 2), life('c', 1, 13))).toEqual([10_000]);
    expect(waits(life('b', 9), life('c', 1, 8))).toEqual([2_000]);
    expect(waits(life('a', 0), life('b', 15))).toEqual([]);
  });

  it('takeover times include each change of the owner', () => {
    const logs = logOf([
      ['a', 1],
      ['b', 14],
      ['c', 25],
    ]);
    expect(waitsIn(logs, [out('a', 'killed', 4), out('b', 'killed', 16)])).toEqual([10_000, 9_000]);
  });

  it('takeover times are reported as median, 99th percentile and maximum, or null if there were none', () => {
    const logs = new Map(
      Array.from({ length: 200 }, (_, n) => {
        const [[, entries = []] = []] = logOf([
          ['a', 1],
          ['b', 5 + n / 10],
        ]);
        return [`oak-${n}`, entries] as const;
      }),
    );
    expect(takeoversIn(logs, { outages: [out('a', 'killed', 4)], lives: [somebody] })).toEqual({
      count: 200,
      medianMs: 11_000,
      p99Ms: 20_800,
      mostMs: 20_900,
    });
    expect(takeoversIn(logs, { outages: [], lives: [somebody] })).toBeNull();
  });
});
