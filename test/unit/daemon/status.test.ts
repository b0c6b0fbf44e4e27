import { describe, expect, it } from 'vitest';
import type { AnswerOf } from '../../../src/bus/index.ts';
import { mergeStatus, statusFrom, statusGroups } from '../../../src/daemon/api/status.ts';
import type { ListedRow } from '../../../src/daemon/conversations/projections.ts';
import { refusedWith } from '../../support/error-with.ts';
import { perTest } from '../../support/lifetime.ts';
import { createDaemon } from './daemon.ts';
import { FACTS } from './hand-bus.ts';

const minute = (at: number) => new Date(Date.UTC(2026, 0, 1, 0, at)).toISOString();

function row(id: string, ...activity: ListedRow['activity']): ListedRow {
  return {
    ...{ id, title: `Title of ${id}`, phase: 'chat', mode: 'agent', activeAgent: null, length: 1 },
    ...{ newest: null, archived: false, tokens: 0, usd: 0, unpricedCalls: 0, agents: [], people: [] },
    ...{ activeAt: minute(0), activeLength: 1 },
    ...{ updatedAt: minute(0), running: [], waiting: [], limited: [], stopped: [], activity },
  };
}

describe('the status of a daemon', () => {
  it('groups what agents do: the longest waits first, the newest failures first', () => {
    const groups = statusGroups([
      row('a', { agent: 'pm', status: 'waiting', since: minute(2), for: 'question' }),
      row('b', { agent: 'pm', status: 'failed', since: minute(1), of: 'RATE_LIMITED' }),
      row('c', { agent: 'dev', status: 'waiting', since: minute(1), for: 'approval', of: 'shell' }),
      row('d', { agent: 'dev', status: 'failed', since: minute(3) }),
      row('e'),
    ]);
    expect(groups.conversations).toBe(5);
    expect(groups.waiting.first.map(({ conversation }) => conversation)).toEqual(['c', 'a']);
    expect(groups.failed.first.map(({ conversation }) => conversation)).toEqual(['d', 'b']);
    expect(groups.waiting.first[0]).toEqual({
      ...{ conversation: 'c', title: 'Title of c', agent: 'dev', status: 'waiting' },
      ...{ since: minute(1), for: 'approval', of: 'shell' },
    });
    expect([groups.running, groups.limited, groups.stopped]).toEqual(Array(3).fill({ count: 0, first: [] }));
  });

  it('has a bounded number of rows in each group and counts the others', () => {
    const rows = Array.from({ length: 500 }, (_, n) =>
      row(`c${n}`, { agent: 'pm', status: 'running', since: minute(n) }),
    );
    const lengthOf = (limit?: number) => statusFrom(known(rows), limit).running.first.length;
    expect([lengthOf(), lengthOf(5), lengthOf(1_000)]).toEqual([20, 5, 200]);
    expect(statusFrom(known(rows)).running.count).toBe(500);
  });

  it('names the error of an MCP server, the age of the queue, and what it does not know', () => {
    const servers = [{ server: 'files', state: 'failed' as const, tools: [], error: 'ENOENT' }];
    const lag = { messages: 3, oldestTakenAt: Date.parse(minute(1)) };
    const status = statusFrom({ ...known([]), servers, lag });
    expect(status.daemons[0]?.servers).toEqual([{ server: 'files', state: 'failed', error: 'ENOENT' }]);
    expect([status.queue, status.deadLetters]).toEqual([{ posts: 3, oldestAt: minute(1) }, null]);
    expect(statusFrom(known([])).queue).toBeNull();
  });

  it('of several daemons lists each one, and those that did not answer', () => {
    const own = statusFrom(known([]));
    const other = statusFrom({ ...known([]), facts: { ...FACTS, daemon: 'b' } });
    const rows = [row('a', { agent: 'pm', status: 'running', since: minute(1) })];
    const merged = mergeStatus([own, other], { rows, silent: ['c'], limit: 5 }) as AnswerOf<'status'>;
    expect(merged.daemons.map(({ daemon }) => daemon)).toEqual([null, 'b', 'c']);
    expect(merged.daemons[2]?.error).toBe('it did not answer in time');
    expect([merged.incomplete, merged.running.count]).toEqual([['c'], 1]);
  });
});

function known(rows: readonly ListedRow[]) {
  const nothing = { held: [], servers: [], agents: [], lag: null, deadLetters: null };
  const uncounted = { models: undefined, programs: undefined };
  return { now: Date.parse(minute(60)), rows, facts: FACTS, ...nothing, ...uncounted };
}

describe('the verb status', () => {
  const daemon = perTest(() => createDaemon());

  it('answers with the daemon and the conversations that it has in memory', async () => {
    await daemon.request('post', { conversation: 'c', id: 'p', content: 'Hi', publisher: 'ann' });
    expect(await daemon.request('status', {})).toMatchObject({
      ok: true,
      body: {
        conversations: 1,
        deadLetters: 0,
        queue: null,
        running: { count: 1, first: [{ conversation: 'c', agent: 'pm', status: 'running' }] },
        daemons: [{ ...FACTS, servers: [], owns: { count: 1, first: ['c'] } }],
        agents: [],
      },
    });
  });

  it('with days it has what model calls used, of all conversations, by day and agent', async () => {
    for (const conversation of ['c', 'd']) {
      await daemon.request('post', { conversation, content: 'Hi', publisher: 'ann' });
      daemon.calls.at(-1)?.answer('done');
    }
    const day = new Date().toISOString().slice(0, 10);
    const spent = async (days?: number) =>
      ((await daemon.request('status', { days })) as { body: AnswerOf<'status'> }).body.spent;
    await expect
      .poll(() => spent(1))
      .toEqual([{ day, agent: 'pm', calls: 2, tokens: 0, usd: 0, unpricedCalls: 2 }]);
    expect(await spent()).toBeUndefined();
    expect(JSON.stringify(await daemon.request('conversations', {}))).not.toContain('spent');
    expect(await daemon.request('status', { days: 32 })).toMatchObject({ ok: false });
  });

  it('says how each model answers and why it failed last', async () => {
    await daemon.request('post', { conversation: 'c', content: 'Hi', publisher: 'ann' });
    daemon.calls.at(-1)?.answer('done');
    const [model] = daemon.runtime.team.models.names;
    const models = async () =>
      ((await daemon.request('status', {})) as { body: AnswerOf<'status'> }).body.daemons[0]?.models;
    await expect
      .poll(models)
      .toMatchObject([{ model, calls: 1, failed: 0, seconds: { mean: expect.any(Number) } }]);
  });

  it.each([0, 201, 1.5, 'all'])('refuses the limit %s', async (limit) => {
    expect(await daemon.request('status', { limit })).toMatchObject(refusedWith('BAD_REQUEST'));
  });
});
