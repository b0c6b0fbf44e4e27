import { describe, expect, it } from 'vitest';
import { forkPoint, previousAnswer, segmentsOf, turnsAround } from '../../../src/console/model/answer.ts';
import { markedLines } from '../../../src/console/model/format.ts';
import type { DiffLine, ExplainedRequest } from '../../../src/conversation/index.ts';
import { answer, begin, calling, end, logOf, result, say } from './support.ts';

describe('the turns of an agent in the console', () => {
  const turn = (turnId: string, definition?: string) => ({ turnId, ...(definition && { definition }) });
  const log = logOf(
    say('one'),
    begin('pm', turn('t1', 'd1')),
    answer('pm', 'first', turn('t1')),
    end('pm', 'completed', 0, turn('t1')),
    say('two'),
    begin('dev', turn('t2', 'other')),
    begin('pm', turn('t3', 'd1')),
    begin('pm', { ...turn('t3', 'd2'), resumed: true }),
    answer('pm', 'second', turn('t3')),
    end('pm', 'completed', 4, turn('t3')),
    begin('pm', turn('t4')),
  );

  it('the definition of an answer is that of the newest start of its turn, compared with the start before', () => {
    expect(turnsAround(log, 8, 'pm')).toMatchObject({
      own: { index: 7, definition: 'd2', resumed: true },
      previous: { index: 6, definition: 'd1' },
      others: [{ index: 10 }, { index: 6 }, { index: 1 }],
    });
  });

  it('the first answer of an agent has no previous turn, and an imported answer has no turn', () => {
    expect(turnsAround(log, 2, 'pm')).toMatchObject({ own: { index: 1 }, previous: null });
    const imported = logOf(answer('pm', 'old', { turnId: undefined }), begin('pm'));
    expect(turnsAround(imported, 0, 'pm')).toMatchObject({
      own: null,
      previous: null,
      others: [{ index: 1 }],
    });
  });

  it('a fork from an answer that ends its turn includes the end of the turn', () => {
    expect(forkPoint(log, 2)).toEqual({ at: 3, outcome: 'waits' });
    expect(forkPoint(log, 4)).toEqual({ at: 4, outcome: 'answers' });
  });

  it('a fork from an answer whose turn continues, or is followed by a message, aborts the turn', () => {
    const busy = logOf(
      say('a'),
      begin('pm'),
      calling('pm', 'ls'),
      result(2, 'x'),
      answer('pm', 'b'),
      say('c'),
    );
    expect(forkPoint([...busy, ...logOf(end('pm', 'completed', 0))], 4)).toEqual({
      at: 4,
      outcome: 'aborts',
    });
    expect(forkPoint(busy, 2)).toEqual({ at: 2, outcome: 'aborts' });
  });
});

describe('the marks in changed lines', () => {
  const lineOf = (text: string): DiffLine => ({
    op: text[0] === '-' ? 'gone' : text[0] === '+' ? 'added' : 'same',
    text: text.slice(1),
  });
  const shown = (...lines: string[]) =>
    markedLines(lines.map(lineOf)).map(({ op, text, mark }) =>
      mark
        ? `${op} ${text.slice(0, mark[0])}[${text.slice(...mark)}]${text.slice(mark[1])}`
        : `${op} ${text}`,
    );

  it('a line in whose place an empty one comes has no mark', () => {
    expect(shown('-Second line', '-third', '+', '+third!')).toEqual([
      ...['gone Second line', 'gone third[]', 'added ', 'added third[!]'],
    ]);
  });

  it('a changed line marks what differs from the line that it replaces', () => {
    expect(shown(' a', '-You plan well, today.', '-gone', '+You plan briefly, today.', ' b', '+new')).toEqual(
      [
        'same a',
        'gone You plan [well], today.',
        'gone gone',
        'added You plan [briefly], today.',
        'same b',
        'added new',
      ],
    );
  });

  it('characters of two code units are not cut, and lines with little in common have no mark', () => {
    expect(shown('-ab 😀 c', '+ab 😁 c')).toEqual(['gone ab [😀] c', 'added ab [😁] c']);
    expect(shown('-completely other', '+something new')).toEqual([
      'gone completely other',
      'added something new',
    ]);
    expect(shown('-', '+x')).toHaveLength(2);
  });
});

const requestOf = (report: object) => ({ messages: [], report }) as unknown as ExplainedRequest;

describe('the account of a request in the console', () => {
  it('the bar of a request shows its content, the reserve for the answer, and the free part of the window', () => {
    const segments = segmentsOf(
      requestOf({
        tokens: 300,
        window: 1_000,
        reserved: 100,
        tokens_by_group: { prefix: 200, trigger: 100, turn: 0 },
      }),
    );
    expect(segments.map(({ group, tokens }) => [group, tokens])).toEqual([
      ['prefix', 200],
      ['trigger', 100],
      ['for the answer', 100],
      ['free', 600],
    ]);
    expect(segments.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
  });

  it('the bar of a request is never overfull if the window is too small', () => {
    const segments = segmentsOf(
      requestOf({ tokens: 3_000, window: 1_000, reserved: 100, tokens_by_group: { history: 3_000 } }),
    );
    expect(segments.map(({ group }) => group)).toEqual(['history', 'for the answer']);
    expect(segments.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
  });

  it("a request is compared with the one of the same agent's previous answer", () => {
    const log = logOf(answer('pm', 'one'), say('x'), answer('dev', 'two'), answer('pm', 'three'));
    expect(previousAnswer(log, 3, 'pm')).toBe(0);
    expect(previousAnswer(log, 0, 'pm')).toBe(null);
    expect(previousAnswer(log, 2, 'dev')).toBe(null);
  });
});
