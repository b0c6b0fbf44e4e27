import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { checkLog } from '../../support/log.ts';
import { Log } from '../agents/support.ts';

/** The checker must be able to fail, or the tests that trust it prove nothing. */
const seal = (entry: object) => {
  const body = JSON.stringify(entry).slice(0, -1);
  return `${body},"sum":"${crc32(Buffer.from(body)).toString(16).padStart(8, '0')}"}`;
};
const text = (entries: readonly object[]) => `${entries.map(seal).join('\n')}\n`;

type Entries = Record<string, unknown>[];

/** Of the second turn. */
const attempt = (entries: Entries, model: string, next: string) => ({
  ...{ ...entries[5], type: 'attempt-failed', id: `attempt of ${model}` },
  ...{ model, next: { model: next }, code: 'TIMEOUT', message: 'x', duration: 1, upTo: 5 },
});

function withAttempts(entries: Entries, ...attempts: Entries): void {
  entries.splice(6, 0, ...attempts);
  for (const [index, entry] of entries.entries()) entry.index = index;
}

describe('the check of a log file', () => {
  function sound() {
    const log = new Log();
    log.answer('pm', log.start('pm', log.person('one')), 'two');
    log.answer('pm', log.start('pm', log.person('three')), 'four');
    return log.entries.map((entry) => ({ ...entry }) as Record<string, unknown>);
  }

  it('finds nothing in a sound one', () => {
    expect(checkLog(text(sound()))).toEqual([]);
  });

  const set = (at: number, fields: object) => (entries: Entries) =>
    void Object.assign(entries[at] ?? {}, fields);
  const again = (at: number) => (entries: Entries) =>
    void entries.push({ ...entries[at], index: 8, id: 'x' });
  const tried =
    (...pairs: readonly [string, string][]) =>
    (entries: Entries) =>
      withAttempts(entries, ...pairs.map(([model, next]) => attempt(entries, model, next)));
  const stray = (entries: Entries) => void entries.push({ ...attempt(entries, 'a', 'b'), index: 8 });
  const disordered = (entries: Entries) => {
    set(0, { ingressSequence: 9 })(entries);
    set(4, { ingressSequence: 3 })(entries);
  };
  /** A session of the first message, which has the right to set it or not. */
  const session = (entries: Entries) => ({
    ...entries[1],
    type: 'session-set',
    sessionId: 's1',
    from: 0,
    id: 'x',
  });
  const unauthorised = (entries: Entries) => {
    set(0, { sessionId: 's1' })(entries);
    entries.splice(1, 0, session(entries));
    for (const [index, entry] of entries.entries()) entry.index = index;
  };
  const ofNoTurn = (entries: Entries) => {
    set(0, { sessionId: 's1', setsSession: true })(entries);
    entries.push({ ...session(entries), index: 8 }, { ...entries[0], index: 9, id: 'y' });
  };

  it.each<[string, (entries: Entries) => void, RegExp]>([
    ['a gap', (entries) => void entries.splice(2, 1), /line 2 has index 3/],
    ['an id twice', set(4, { id: 'id-0' }), /is used twice/],
    ['posts out of order', disordered, /out of order/],
    ['a failed attempt of no running turn', stray, /entry 8: a failed attempt of no running turn/],
    [
      'an attempt of a candidate that was not asked',
      tried(['a', 'b'], ['c', 'd']),
      /an attempt of \["c",null\], but \["b",null\] is asked/,
    ],
    ['a candidate that is asked again', tried(['a', 'b'], ['b', 'a']), /\["a",null\] is asked again/],
    ['a second end', again(7), /a second end/],
    ['a second answer', again(6), /a second answer/],
    ['a cursor that moves back', set(7, { lastProcessedMessageIndex: 1 }), /moved back/],
    ['a cursor beyond', set(7, { lastProcessedMessageIndex: 99 }), /beyond/],
    ['a trigger answered twice', set(5, { trigger: [0] }), /triggered pm twice/],
    ['a session that its message may not set', unauthorised, /a session of pm that entry 0 does not set/],
    ['a session of no turn', ofNoTurn, /8: a session that belongs to no turn/],
    ['a trigger to come', set(5, { trigger: [7] }), /a later trigger/],
  ])('finds %s', (_, spoil, fault) => {
    const entries = sound();
    spoil(entries);
    expect(checkLog(text(entries)).join('\n')).toMatch(fault);
  });

  it('finds nothing in one with attempts of several candidates', () => {
    const entries = sound();
    withAttempts(entries, attempt(entries, 'a', 'b'), attempt(entries, 'b', 'c'));
    expect(checkLog(text(entries))).toEqual([]);
  });

  it('finds a changed byte and an unfinished line', () => {
    const whole = text(sound());
    expect(checkLog(whole.replace('"three"', '"thref"')).join()).toMatch(/line 4: checksum/);
    expect(checkLog(whole.slice(0, -1)).join()).toMatch(/not finished/);
  });
});

describe('the check of a team at work', () => {
  const by = (id: string) => ({ author: { kind: id === 'ann' ? 'person' : 'agent', id, name: id } });
  const call = (position: number) => ({ call: { index: 2, position }, tool_call_id: `c2_${position}` });
  const called = (name: string) => ({ id: 'x', type: 'function', function: { name, arguments: '{}' } });
  const lead = { turnId: 't', agent: 'lead', ...by('lead') };
  const dev = { turnId: 'u', agent: 'dev', ...by('dev') };
  const end = { type: 'turn-ended', outcome: 'completed', lastProcessedMessageIndex: 3 };
  const says = { type: 'message', role: 'assistant' };
  const result = { type: 'message', role: 'tool', turnId: 't', ...by('lead') };

  /** A lead asks another agent and a person at once, and continues when both have answered. */
  const sound = (): Record<string, unknown>[] =>
    [
      { type: 'message', role: 'user', to: ['lead'], ...by('ann') },
      { type: 'turn-started', trigger: [0], ...lead },
      { ...says, tool_calls: [called('delegate'), called('ask')], ...lead },
      { type: 'delegation-requested', from: 'lead', to: 'dev', ...call(0), ...lead },
      { type: 'turn-started', trigger: [3], ...dev },
      { ...end, ...lead, outcome: 'waiting' },
      { ...says, content: 'half', ...dev },
      { ...end, ...dev },
      { type: 'delegation-answered', from: 'dev', to: 'lead', late: false, answers: [6], ...call(0), ...dev },
      { ...result, ...call(0), answers: [6] },
      { type: 'message', role: 'user', to: ['lead'], ...by('ann') },
      { ...result, ...call(1), answers: [10] },
      { type: 'turn-started', trigger: [6, 10], resumed: true, ...lead },
      { ...says, content: 'done', ...lead },
      { ...end, ...lead },
    ].map((entry, index) => ({ ...entry, index, id: `id-${index}` }));

  it('the check of a log finds nothing in a sound one, or in one that continues after a crash', () => {
    expect(checkLog(text(sound()))).toEqual([]);
    const crashed = sound();
    crashed.splice(13, 0, { ...crashed[12], id: 'again' });
    expect(checkLog(text(numbered(crashed)))).toEqual([]);
  });

  const numbered = (entries: readonly object[]) => entries.map((entry, index) => ({ ...entry, index }));
  const delivery = { type: 'message-delivered', entries: [] };
  const starts = (position: number) => ({ type: 'tool-started', ...call(position) });
  const late = { ...says, tool_calls: [called('ask')], ...dev };

  it.each<[string, number, object, RegExp]>([
    ['a resumed turn without its mark', 12, { resumed: undefined }, /entry 12: a turn started twice/],
    ['a turn that never began', 4, { resumed: true }, /entry 4: a resumed turn was not open/],
    ['another turn while one waits', 12, { turnId: 'other', resumed: undefined }, /12: two turns at once/],
    ['a wait for a tool', 2, { tool_calls: [called('look'), called('ask')] }, /5: a turn waits for look/],
    ['a wait for nothing', 7, { outcome: 'waiting' }, /7: a turn waits without an awaited call/],
    [
      'a wait for a handoff alone',
      2,
      { tool_calls: [called('handoff')] },
      /5: a turn waits without an awaited call/,
    ],
    ['an end before a result', 5, { outcome: 'completed' }, /5: the turn ended without a result of c2_0/],
    ['two results', 11, { ...call(0) }, /11: a result of no open call \(c2_0\)/],
    ['words before a result', 11, { type: 'note' }, /13: a message before the result of c2_1/],
    ['a result under another id', 9, { tool_call_id: 'c2_1' }, /9: the result of c2_0 names c2_1/],
    ['a delivery before a result', 10, { ...delivery, ...lead }, /10: a delivery before/],
    ['an answer of another agent', 8, { from: 'qa' }, /8: an answer without a request/],
    ['an answer that was not late', 8, { late: true }, /8: an answer that was not late/],
    ['an answer twice', 11, { ...sound()[8], id: 'x' }, /11: c2_0 is answered twice/],
    ['a delegation twice', 4, { ...sound()[3], id: 'x' }, /4: c2_0 is delegated twice/],
    ['an answer that names the trigger', 9, { answers: [0] }, /entry 0 answered lead twice/],
    ['a tool that starts without an open call', 13, starts(0), /13: a start of no open call \(c2_0\)/],
    ['a tool that starts in another turn', 6, starts(1), /6: a start of no open call \(c2_1\)/],
    ['calls after the end of a turn', 10, late, /10: an answer with calls after the end of turn u/],
    [
      'a delivery after the end of its turn',
      10,
      { ...delivery, ...dev },
      /10: a delivery after the end of turn u/,
    ],
  ])('finds %s', (_, at, change, fault) => {
    const entries = sound();
    Object.assign(entries[at] ?? {}, change, { index: at });
    expect(checkLog(text(entries)).join('\n')).toMatch(fault);
  });

  /** A risky call waits for a person's decision, and the calls after it wait too. */
  const asking = (...tools: string[]): Record<string, unknown>[] => {
    const approval = { approvalId: 'a1', risk: 'risky', mayHaveRun: false, ...call(0), ...lead };
    const entries = sound().slice(0, 6);
    Object.assign(entries[2] ?? {}, { tool_calls: tools.map(called) });
    entries.splice(3, 2, { type: 'approval-requested', id: 'id-a', ...approval });
    return numbered(entries);
  };

  it('the check of a log accepts a turn that waits for an approval, and the calls after that one', () => {
    expect(checkLog(text(asking('write', 'look')))).toEqual([]);
    const answered = asking('write', 'look');
    answered.splice(4, 0, {
      type: 'approval-answered',
      id: 'id-b',
      approvalId: 'a1',
      answer: 'approve',
      ...lead,
    });
    const faults = checkLog(text(numbered(answered))).join('\n');
    expect(faults).toMatch(/5: a turn waits without an awaited call/);
    expect(faults).toMatch(/5: a turn waits for look/);
    const before = asking('look', 'write').map((entry) =>
      entry.type === 'approval-requested' ? { ...entry, ...call(1) } : entry,
    );
    expect(checkLog(text(before)).join()).toBe('entry 4: a turn waits for look');
  });

  it('the check of a log finds an answer that no agent received', () => {
    const entries = sound().filter((entry) => entry.index !== 9);
    expect(checkLog(text(numbered(entries))).join('\n')).toMatch(/8: an answer that never became a result/);
  });
});
