import { describe, expect, it } from 'vitest';
import { awayProblem, chartOf, problemsOf, sumsOf } from '../../../src/console/model/system.ts';
import type { Spent } from '../../../src/conversation/index.ts';

type Checked = Parameters<typeof problemsOf>[0];
const WELL: Checked = {
  at: '2026-01-10T12:00:00.000Z',
  deadLetters: 0,
  queue: { posts: 1, oldestAt: '2026-01-10T11:59:55.000Z' },
  daemons: [{ daemon: null, servers: [{ server: 'files', state: 'ready' }] }],
  agents: [{ agent: 'critic', connected: true, absent: 'fail' }],
};
const textsOf = (change: Partial<Checked>) =>
  problemsOf({ ...WELL, ...change }).map(({ text, detail }) => (detail ? `${text}: ${detail}` : text));

describe('the health of a system', () => {
  it('has no problem while all is connected and posts are recent', () => {
    expect(textsOf({})).toEqual([]);
    expect(textsOf({ deadLetters: null, daemons: [{ daemon: null }] })).toEqual([]);
  });

  it('of a daemon that does not answer, the page says from when its state is', () => {
    const at = '2026-01-10T12:00:00.000Z';
    const detailAt = (now: string) => awayProblem(at, Date.parse(now)).detail;
    expect(detailAt('2026-01-10T12:00:30.000Z')).toMatch(/^this page shows the state of \d\d:\d\d:\d\d$/);
    expect(detailAt('2026-01-13T12:00:00.000Z')).toMatch(/2026/);
    expect(awayProblem(null, 0).detail).toBe('this page is filled when it does');
  });

  const old = { posts: 3, oldestAt: '2026-01-10T11:58:00.000Z' };
  const absent = { agent: 'critic', connected: false, absent: 'wait' } as const;
  const web = { server: 'web', state: 'failed', error: 'ENOENT' } as const;
  const key = { model: 'big', key: 2, code: 'UNAUTHORIZED', failures: 3, until: '2026-01-10T12:05:00' };
  it.each<[string, Partial<Checked>, string]>([
    ['a silent daemon', { daemons: [{ daemon: 'b', error: 'late' }] }, 'Daemon b does not answer: late'],
    ['a silent server', { queue: null }, 'The nats-server did not answer'],
    ['an old post', { queue: old }, '3 posts wait for a daemon: the oldest for 2 min'],
    ['refused posts', { deadLetters: 2 }, '2 posts were refused'],
    [
      'an absent agent',
      { agents: [absent] },
      'Agent critic is not connected: its turns wait for its program; start the program that connects as this agent (docs/guides/remote-agents.md)',
    ],
    [
      'an MCP server',
      { daemons: [{ daemon: null, servers: [web] }] },
      'MCP server web is not connected: ENOENT',
    ],
    [
      'a key that is left out',
      { daemons: [{ daemon: null, backOff: [key] }] },
      'Key 2 of model big is left out until 12:05:00: UNAUTHORIZED, 3 times in a row; another model or key answers where one is configured',
    ],
  ])('names %s', (_, change, text) => {
    expect(textsOf(change)).toEqual([text]);
  });

  it('names a model whose newest call failed, and not one that has answered since', () => {
    const failure = { at: '2026-01-10T11:00:00.000Z', code: 'TIMEOUT' };
    const model = (answeredAt?: string): Partial<Checked> => {
      const big = { model: 'big', calls: 2, failed: 1, failure, ...(answeredAt && { answeredAt }) };
      return { daemons: [{ daemon: null, models: [big] }] };
    };
    expect(textsOf(model())).toEqual(['The newest call of model big failed: TIMEOUT']);
    expect(textsOf(model('2026-01-10T10:00:00.000Z'))).toHaveLength(1);
    expect(textsOf(model('2026-01-10T11:30:00.000Z'))).toEqual([]);
  });

  it('names an agent in another process whose newest call failed, once, and no model', () => {
    const failure = { at: '2026-01-10T11:00:00.000Z', code: 'AGENT_SILENT' };
    const daemons = [{ daemon: null, programs: [{ agent: 'critic', calls: 1, failed: 1, failure }] }];
    expect(textsOf({ daemons })).toEqual(['The newest call of agent critic failed: AGENT_SILENT']);
    const agents = [{ agent: 'critic', connected: false, absent: 'fail' as const }];
    expect(textsOf({ daemons, agents })).toEqual([
      'Agent critic is not connected: its turns fail; start the program that connects as this agent (docs/guides/remote-agents.md)',
    ]);
  });
});

describe('what was used', () => {
  const spent = (day: string, agent: string, usd: number): Spent => ({
    ...{ day, agent, usd, tokens: 10, calls: 1, unpricedCalls: 0 },
  });
  const ALL = [spent('2026-01-08', 'pm', 1), spent('2026-01-10', 'pm', 1), spent('2026-01-10', 'dev', 3)];

  it('is summed by agent, the highest cost first', () => {
    expect(sumsOf(ALL).map(({ agent, calls, usd }) => [agent, calls, usd])).toEqual([
      ['dev', 1, 3],
      ['pm', 2, 2],
    ]);
  });

  it('has a bar for each day up to today, also those without calls', () => {
    const { days, most } = chartOf(ALL, 'usd', WELL.at, 3);
    expect(days.map(({ day, total }) => [day, total])).toEqual([
      ['2026-01-08', 1],
      ['2026-01-09', 0],
      ['2026-01-10', 4],
    ]);
    expect(most).toBe(4);
    expect(days[2]?.parts.map(({ agent }) => agent)).toEqual(['dev', 'pm']);
    expect(chartOf([], 'tokens', WELL.at, 2).most).toBeGreaterThan(0);
  });
});
