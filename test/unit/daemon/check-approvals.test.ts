import { describe, expect, it } from 'vitest';
import type { Entry } from '../../../src/conversation/index.ts';
import { checkApprovals, checkCalls } from '../../../src/conversation/laws/laws.ts';

/** The checker must be able to fail, or the tests that trust it prove nothing. */
describe('the check of calls that a person is asked about', () => {
  const at = (position: number) => ({ call: { index: 0, position }, turnId: 't' });
  const called = (name: string) => ({ id: 'x', type: 'function', function: { name, arguments: '{}' } });
  const asks = (approvalId: string, mayHaveRun: boolean) => ({
    type: 'approval-requested',
    approvalId,
    mayHaveRun,
    ...at(1),
  });
  const answers = (approvalId: string, answer: string) => ({
    type: 'approval-answered',
    approvalId,
    answer,
    ...at(1),
  });
  const starts = (position: number, risk: string, rerun?: boolean) => ({
    type: 'tool-started',
    risk,
    rerun,
    ...at(position),
  });
  const result = (position: number) => ({
    type: 'message',
    role: 'tool',
    author: { kind: 'system', id: 'system', name: 'system' },
    tool_call_id: `c0_${position}`,
    ...at(position),
  });

  /** A safe call that is run once more after a crash, and a risky one that is asked about, crashes, and is run again. */
  const sound = (): Record<string, unknown>[] => [
    { type: 'message', role: 'assistant', turnId: 't', tool_calls: ['look', 'act', 'look'].map(called) },
    asks('fresh', false),
    starts(0, 'safe'),
    starts(0, 'safe', true),
    result(0),
    { type: 'turn-ended', outcome: 'waiting', turnId: 't' },
    answers('fresh', 'approve'),
    starts(1, 'risky'),
    asks('unknown', true),
    { type: 'turn-ended', outcome: 'waiting', turnId: 't' },
    answers('unknown', 'rerun'),
    starts(1, 'risky'),
    result(1),
    starts(2, 'safe'),
    result(2),
    { type: 'turn-ended', outcome: 'completed', turnId: 't' },
  ];

  function faultsOf(entries: readonly object[]): string {
    const log = entries.map((entry, index) => ({ ...entry, index })) as unknown as Entry[];
    const faults: string[] = [];
    checkCalls(log, faults);
    checkApprovals(log, faults);
    return faults.join('\n');
  }

  it('finds nothing in a sound log', () => {
    expect(faultsOf(sound())).toBe('');
  });

  /** The same, without a question and its answers. */
  const nothing = { type: 'note' };
  const byMallory = { ...result(0), author: { kind: 'person', id: 'mallory', name: 'Mallory' } };
  const UNASKED = { 1: nothing, 6: nothing, 8: nothing, 10: nothing };

  it.each<[string, Record<number, object>, RegExp]>([
    ['a person who answers a call that no caller has', { 4: byMallory }, /4: mallory answers/],
    ['a second question while one is open', { 2: asks('other', false) }, /entry 2: a second question/],
    ['a question that hides that it may have run', { 8: asks('unknown', false) }, /8: .* wrong mayHaveRun/],
    ['a question that says so without a start', { 1: asks('fresh', true) }, /1: .* wrong mayHaveRun/],
    ['an answer to no question', { 10: answers('other', 'rerun') }, /10: an answer to no open question/],
    [
      'an approval of what may have run',
      { 10: answers('unknown', 'approve') },
      /10: approve does not answer/,
    ],
    ['a result given for what never ran', { 6: answers('fresh', 'result') }, /6: result does not answer/],
    ['a start while it is asked about', { 6: nothing }, /7: a call was started while a person is asked/],
    ['a start after a refusal', { 6: answers('fresh', 'deny') }, /7: a call was started without an approval/],
    ['two starts for one word', { 12: starts(1, 'risky') }, /12: a call was started without an approval/],
    ['a risky call, allowed without asking, again', UNASKED, /11: a risky call was started again/],
    ['a repetition without a mark', { 3: starts(0, 'safe') }, /3: a call was started again without a mark/],
    ['a third start', { 4: starts(0, 'safe', true) }, /4: a safe call was started a third time/],
    ['a wait without an awaited call', UNASKED, /5: a turn waits without an awaited call/],
    ['a wait for a call that is not pending', { 4: nothing }, /5: a turn waits for look/],
  ])('finds %s', (_, changes, fault) => {
    expect(faultsOf(sound().map((entry, index) => changes[index] ?? entry))).toMatch(fault);
  });
});
