import { describe, expect, it } from 'vitest';
import { type Entry, turnRows, turnsCsv } from '../../../src/conversation/index.ts';

const pm = { kind: 'agent', id: 'pm', name: 'Pm' };
const at = (second: number) => `2026-03-01T10:00:0${second}.000Z`;
const log = (...entries: object[]) =>
  entries.map((entry, index) => ({
    index,
    id: `e${index}`,
    author: pm,
    turnId: 't',
    agent: 'pm',
    ...entry,
  })) as unknown as Entry[];
const call = { id: 'c', type: 'function', function: { name: '=shell', arguments: '{}' } };
const usage = { inputTokens: 10, outputTokens: 5, usd: 0.5 };
const answer = { type: 'message', role: 'assistant', model: 'm1', usage };

describe('the table of turns', () => {
  const started = { type: 'turn-started', trigger: [0], createdAt: at(1) };
  const steps = [
    started,
    { ...answer, tool_calls: [call], content: null, createdAt: at(2) },
    { ...answer, content: 'a, "b"', createdAt: at(3) },
  ];
  const ended = { type: 'turn-ended', outcome: 'completed', createdAt: at(4) };

  it('a turn has its models, tools, cost, outcome and time, and its newest answer', () => {
    expect(turnRows(log(...steps, ended))).toEqual([
      {
        ...{
          turnId: 't',
          agent: 'pm',
          index: 0,
          answer: 2,
          startedAt: at(1),
          ms: 3_000,
          outcome: 'completed',
        },
        ...{ models: ['m1'], tools: ['=shell'], calls: 2, tokens: 30, usd: 1, unpricedCalls: 0 },
        ...{ definition: null, asked: [], rated: [] },
      },
    ]);
  });

  it('a turn that waits and continues has not ended, and a copied turn has no row', () => {
    const waits = { ...ended, outcome: 'waiting' };
    expect(turnRows(log(started, waits))).toMatchObject([{ outcome: 'waiting', ms: null }]);
    expect(turnRows(log(started, waits, started))).toMatchObject([{ index: 0, outcome: 'running' }]);
    expect(turnRows(log({ ...started, copiedFrom: 'other' }))).toEqual([]);
  });

  it('a turn whose running call asks a person waits, until the answer', () => {
    const asked = { type: 'approval-requested', approvalId: 'a', asks: { server: 'forms' } };
    const answer = { type: 'approval-answered', approvalId: 'a', answer: 'approve', turnId: undefined };
    expect(turnRows(log(started, asked))).toMatchObject([{ outcome: 'waiting', ms: null }]);
    expect(turnRows(log(started, asked, answer))).toMatchObject([{ outcome: 'running' }]);
    expect(turnRows(log(started, asked, answer, ended))).toMatchObject([{ outcome: 'completed' }]);
    const other = { ...asked, approvalId: 'b' };
    expect(turnRows(log(started, asked, other, answer))).toMatchObject([{ outcome: 'waiting' }]);
  });

  it('a turn has the models that it asked in turn, without one that was passed over', () => {
    const failed = (model: string, next: string, sent: object = { requestHash: 'h' }) => ({
      ...{ type: 'attempt-failed', model, code: 'TIMEOUT', next: { model: next }, createdAt: at(2) },
      ...sent,
    });
    const turn = [{ ...started, definition: 'd' }, failed('a', 'b'), failed('b', 'c', {}), failed('c', 'c')];
    expect(turnRows(log(...turn))).toMatchObject([{ definition: 'd', asked: ['a', 'c'], models: [] }]);
  });

  it('a turn says how people rated its answers, without what they took back', () => {
    const rate = (id: string, value: string) => ({
      type: 'feedback',
      on: 2,
      value,
      author: { kind: 'user', id, name: id },
      turnId: undefined,
    });
    const rated = (...ratings: object[]) => turnRows(log(...steps, ended, ...ratings))[0]?.rated;
    expect(rated(rate('a', 'up'), rate('b', 'down'))).toEqual(['down', 'up']);
    expect(rated(rate('a', 'up'), rate('a', 'none'), rate('b', 'down'))).toEqual(['down']);
  });

  it('CSV quotes texts, and no text is a formula', () => {
    const [row] = turnRows(log(...steps, ended));
    if (!row) throw new Error('no row');
    const [head, line, end] = turnsCsv([{ ...row, conversation: 'a"b', title: 'One, two' }]).split('\r\n');
    expect(head).toContain('conversation,title,agent,models,outcome');
    expect(line).toBe(`"a""b","One, two",pm,m1,completed,${at(1)},3000,2,30,1,0,'=shell,0,2,t,`);
    expect(end).toBe('');
  });
});
