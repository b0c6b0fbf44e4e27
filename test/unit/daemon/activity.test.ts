import { describe, expect, it } from 'vitest';
import { EMPTY_STATE, type Entry, evolve } from '../../../src/conversation/index.ts';
import { runningActivity, storedActivity } from '../../../src/daemon/conversations/activity.ts';
import { conversationDocument, listedRow, rowOf } from '../../../src/daemon/conversations/projections.ts';
import { membersOf } from '../../../src/persistence/jsonl/file-documents.ts';

const AUTHOR = { kind: 'agent', id: 'pm', name: 'PM' };
const at = (index: number) => `2026-01-01T00:00:${String(index).padStart(2, '0')}.000Z`;

/** Entries with an index, an id and a time each. */
function log(...parts: readonly object[]): Entry[] {
  return parts.map((part, index) => ({
    ...{ id: `e${index}`, index, createdAt: at(index), author: AUTHOR, ...part },
  })) as unknown as Entry[];
}
const person = {
  type: 'message',
  role: 'user',
  content: 'Go',
  to: ['pm'],
  author: { kind: 'person', id: 'ann', name: 'Ann' },
};
const started = { type: 'turn-started', turnId: 't', agent: 'pm', trigger: [0] };
const asks = (...calls: readonly (readonly [string, object])[]) => ({
  ...{ type: 'message', role: 'assistant', content: null },
  tool_calls: calls.map(([name, args], position) => ({
    ...{ id: `c${position}`, type: 'function', function: { name, arguments: JSON.stringify(args) } },
  })),
});
const ended = (outcome: string) => ({
  ...{ type: 'turn-ended', turnId: 't', agent: 'pm', outcome, lastProcessedMessageIndex: 3 },
});
const stateOf = (entries: readonly Entry[]) => entries.reduce(evolve, EMPTY_STATE);
const stored = (entries: readonly Entry[]) => storedActivity(stateOf(entries), entries);
const present = { remote: {}, retries: new Map(), toolProgress: new Map() };

describe('the activity of a conversation', () => {
  it('names each question, delegation and approval of a waiting turn, and since when it waits', () => {
    const entries = log(
      person,
      started,
      asks(
        ['ask', { question: 'Which?' }],
        ['delegate', { to: 'dev', request: 'x' }],
        ['shell', { command: 'ls' }],
      ),
      {
        ...{ type: 'approval-requested', approvalId: 'a', call: { index: 2, position: 2 } },
        ...{ agent: 'pm', tool: 'shell', arguments: '{}', risk: 'risky', mayHaveRun: false },
      },
      ended('waiting'),
    );
    expect(stored(entries)).toEqual([
      { agent: 'pm', status: 'waiting', since: at(2), for: 'question', entry: 2, position: 0 },
      { agent: 'pm', status: 'waiting', since: at(2), for: 'agent', of: 'dev' },
      { agent: 'pm', status: 'waiting', since: at(3), for: 'approval', of: 'shell', entry: 3 },
    ]);
    expect(runningActivity(stateOf(entries), entries, present)).toEqual([]);
  });

  it('names the call that the author of a post answers, as no question and no approval', () => {
    const brought = { ...person, tools: [{ name: 'locate' }] };
    const entries = log(brought, started, { ...asks(['locate', {}]), callerCalls: [0] }, ended('waiting'));
    expect(stored(entries)).toEqual([
      { agent: 'pm', status: 'waiting', since: at(2), for: 'caller', of: 'locate', entry: 2 },
    ]);
  });

  it('names the limit that ended a turn, and its entry, until a post answers it', () => {
    const limit = { type: 'limit-reached', limit: 'turn.steps', agent: 'pm', turnId: 't', content: 'Stop' };
    const entries = log(person, started, limit, ended('limited'));
    expect(stored(entries)).toEqual([
      { agent: 'pm', status: 'limited', since: at(2), of: 'turn.steps', entry: 2 },
    ]);
    const roster = { agents: new Map() } as never;
    expect(conversationDocument('c', stateOf(entries), entries, roster, undefined).agents).toMatchObject({
      pm: { status: 'limited', limit: 'turn.steps' },
    });
    const others = ['e3', 'e2'].map((replyTo) => ({ ...person, to: ['dev'], replyTo }));
    const passed = log(person, started, limit, ended('limited'), ...others);
    expect(stored(passed.slice(0, -1)).map(({ status }) => status)).toEqual(['limited']);
    expect(stored(passed)).toEqual([]);
  });

  it('names a failed last turn with its code until the next turn of that agent begins, or a post answers the failure', () => {
    const failure = {
      ...{ id: 'failure', type: 'message', role: 'assistant', partType: 'error' },
      content: 'LLM_ERROR {"code":"FAKE"}\n\nLLM_ERROR {"code":"RATE_LIMITED","message":"slow down"}',
    };
    const failed = log(person, started, failure, ended('failed'));
    expect(stored(failed)).toEqual([
      { agent: 'pm', status: 'failed', since: at(3), of: 'RATE_LIMITED', entry: 2 },
    ]);
    const others = ['else', 'failure'].map((replyTo) => ({ ...person, to: ['dev'], replyTo }));
    const passed = log(person, started, failure, ended('failed'), ...others);
    expect(stored(passed.slice(0, -1)).map(({ status }) => status)).toEqual(['failed']);
    expect(stored(passed)).toEqual([]);
    const again = log(person, started, failure, ended('failed'), person, {
      ...started,
      turnId: 'u',
      trigger: [4],
    });
    expect(stored(again)).toEqual([]);
    const current = runningActivity(stateOf(again), again, present);
    expect(current).toEqual([{ agent: 'pm', status: 'running', since: at(5) }]);
  });

  it('names the limit of a turn that was given up after too many takeovers, and its entry', () => {
    const limit = { type: 'limit-reached', limit: 'attempts', agent: 'pm', turnId: 't', content: 'Five' };
    const result = { type: 'message', role: 'tool', content: 'unknown', author: AUTHOR };
    expect(stored(log(person, started, limit, result, ended('failed')))).toEqual([
      { agent: 'pm', status: 'failed', since: at(4), of: 'attempts', entry: 2 },
    ]);
  });

  it('names the agent at the node of a run whose turn was stopped: it waits for a message', () => {
    const run = { runId: 'r', workflowId: 'ship' };
    const entered = { type: 'node-entered', ...run, node: 'build', to: ['pm'] };
    const began = { ...started, trigger: [0, 2] };
    const stopped = log(person, { type: 'run-started', ...run }, entered, began, ended('aborted'));
    expect(stored(stopped.slice(0, -1))).toEqual([]);
    expect(stored(stopped)).toEqual([
      { agent: 'pm', status: 'waiting', since: at(2), for: 'input', of: 'ship', entry: 0 },
    ]);
    const question = { type: 'message', role: 'assistant', content: 'Which style?' };
    const later = { ...person, content: 'Something else.', to: ['qa'] };
    expect(stored(log(...stopped.slice(0, -1), question, ended('completed'), later))).toMatchObject([
      { for: 'input', entry: 4 },
    ]);
    expect(stored(log(...stopped, { type: 'run-ended', ...run, outcome: 'done' }))).toEqual([]);
  });

  it('says of a running turn that its model call is repeated, when, and why in at most 300 characters', () => {
    const entries = log(person, started);
    const message = `Ask less often. ${'x'.repeat(400)}`;
    const retry = { attempt: 2, attempts: 4, waitMs: 3_000, code: 'RATE_LIMITED', message };
    const retries = new Map([['t', { ...retry, since: Date.parse(at(5)) }]]);
    expect(runningActivity(stateOf(entries), entries, { ...present, retries })).toEqual([
      {
        ...{ agent: 'pm', status: 'running', since: at(1) },
        retry: { attempt: 2, attempts: 4, at: at(8), code: 'RATE_LIMITED', message: message.slice(0, 300) },
      },
    ]);
  });

  it('says what a tool of a running turn reports', () => {
    const entries = log(person, started);
    const report = { tool: 'mcp__web__copy', text: '3 of 10: reading' };
    const toolProgress = new Map([['t', report]]);
    expect(runningActivity(stateOf(entries), entries, { ...present, toolProgress })).toEqual([
      { agent: 'pm', status: 'running', since: at(1), progress: report },
    ]);
  });

  it('lists a running turn whose program is not connected as waiting for that program', () => {
    const entries = log(person, started);
    const state = stateOf(entries);
    const current = runningActivity(state, entries, {
      ...present,
      remote: { isAbsent: (turnId) => turnId === 't' },
    });
    const row = listedRow(rowOf('c', state, entries), current);
    expect([row.running, row.waiting]).toEqual([[], ['pm']]);
    expect(row.activity).toEqual([
      { agent: 'pm', status: 'waiting', since: at(1), for: 'program', of: 'pm' },
    ]);
  });

  it.each([
    [
      'an approval that is answered',
      { type: 'approval-answered', approvalId: 'a', answer: 'approve' },
      false,
    ],
    ['a call that begins', { type: 'tool-started', call: { index: 1, position: 0 } }, false],
    ['the result of a call', { type: 'message', role: 'tool', content: 'done' }, false],
    ['the end of a turn that completed', ended('completed'), false],
    ['a turn that waits', ended('waiting'), false],
    ['the end of a turn that failed', ended('failed'), true],
    ['a call that waits for a person', { type: 'approval-requested', approvalId: 'a' }, true],
    ['what an agent says', { type: 'message', role: 'assistant', content: 'Done.' }, true],
  ])('%s: whether a row has news', (_, entry, isNews) => {
    const row = rowOf('c', stateOf([]), log(person, started, entry));
    expect([row.activeAt, row.activeLength]).toEqual(isNews ? [at(2), 3] : [at(0), 1]);
  });

  it('titles and changes of the team are no news of a row, also in the stored row', () => {
    const titled = { type: 'title-set', title: 'T' };
    const changed = { type: 'team-changed', agents: [] };
    const entries = log(person, started, ended('completed'), titled, { ...titled, archived: true }, changed);
    const row = rowOf('c', stateOf(entries), entries);
    expect([row.updatedAt, row.activeAt, row.activeLength]).toEqual([at(5), at(0), 1]);
    expect(membersOf('row', JSON.parse(JSON.stringify({ rows: [row] }))).get('c')).toEqual(row);
  });

  it('a row has the beginning of the newest text of a message on one line, without Markdown, and null without one', () => {
    const said = (content: string, role = 'assistant') => ({ ...person, role, content });
    const newest = (...entries: readonly object[]) => {
      const all = log(...entries);
      return rowOf('c', stateOf(all), all).newest;
    };
    expect(newest(person, said('# Plan\n\n- **one** `two`\n> [three](https://x.example/)'))).toBe(
      'Plan one two three',
    );
    expect(
      newest(person, said('```js\nconst a = 1;\n```'), said('\u200b'), said('a result', 'tool'), {
        ...said('LLM_ERROR {}'),
        partType: 'error',
      }),
    ).toBe('const a = 1;');
    expect([...(newest(said('😀'.repeat(3_000))) ?? '')]).toHaveLength(120);
    expect(newest(started)).toBe(null);
  });

  it('the row names the agents that had a turn, also one whose first turn was aborted and had seen nothing', () => {
    const held = { ...person, to: ['dev'] };
    const entries = log(person, started, { ...ended('aborted'), lastProcessedMessageIndex: 0 }, held);
    expect(rowOf('c', stateOf(entries), entries).agents).toEqual(['pm']);
  });

  it('the row says that all agents are stopped, until one is resumed', () => {
    const allStopped = (...more: readonly object[]) => {
      const entries = log(person, started, ended('completed'), ...more);
      const row = rowOf('c', stateOf(entries), entries);
      expect(membersOf('row', JSON.parse(JSON.stringify({ rows: [row] }))).get('c')).toEqual(row);
      return row.allStopped;
    };
    const stop = (agent: string | null) => ({ type: 'agent-stopped', agent, by: 'ann' });
    const resume = (agent: string | null) => ({ type: 'agent-resumed', agent, by: 'ann' });
    expect(allStopped()).toBe(undefined);
    expect(allStopped(stop('pm'))).toBe(undefined);
    expect(allStopped(stop(null))).toBe(true);
    expect(allStopped(stop(null), resume('dev'))).toBe(undefined);
    expect(allStopped(stop(null), resume('dev'), stop('dev'))).toBe(true);
    expect(allStopped(stop(null), resume(null))).toBe(undefined);
  });

  it('an agent whose running call asks a person waits, until the answer', () => {
    const asked = {
      ...{ type: 'approval-requested', turnId: 't', approvalId: 'a', call: { index: 2, position: 0 } },
      ...{ agent: 'pm', tool: 'book', arguments: '{}', risk: 'risky', mayHaveRun: false },
      asks: { server: 'forms', message: 'Who comes?', schema: {} },
    };
    const steps = [
      person,
      started,
      asks(['book', {}]),
      { type: 'tool-started', turnId: 't', agent: 'pm', call: { index: 2, position: 0 } },
      asked,
    ];
    const listed = (entries: readonly Entry[]) => {
      const {
        running,
        waiting,
        activity = [],
      } = listedRow(
        rowOf('c', stateOf(entries), entries),
        runningActivity(stateOf(entries), entries, present),
      );
      return { running, waiting, activity: activity.map(({ status, asks: server }) => server ?? status) };
    };
    expect(listed(log(...steps.slice(0, -1)))).toEqual({
      running: ['pm'],
      waiting: [],
      activity: ['running'],
    });
    expect(listed(log(...steps))).toEqual({ running: [], waiting: ['pm'], activity: ['running', 'forms'] });
    const answer = { type: 'approval-answered', approvalId: 'a', call: asked.call, answer: 'approve' };
    expect(listed(log(...steps, answer))).toEqual({ running: ['pm'], waiting: [], activity: ['running'] });
  });

  it('is kept in the stored row, and a row without it is damaged', () => {
    const entries = log(person, started, asks(['ask', { question: 'Which?' }]), ended('waiting'));
    const row = rowOf('c', stateOf(entries), entries);
    expect(membersOf('row', JSON.parse(JSON.stringify({ rows: [row] }))).get('c')).toEqual(row);
    expect(row.activity).toHaveLength(1);
    const { activity: _, ...without } = row;
    expect(() => membersOf('row', JSON.parse(JSON.stringify({ rows: [without] })))).toThrow('activity');
  });
});
