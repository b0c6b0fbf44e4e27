import { describe, expect, it } from 'vitest';
import { checkAudit, checkKnowledge, checkLaws, type Entry } from '../../../src/conversation/index.ts';
import { Log } from '../agents/support.ts';

/** Each check fails on a log that breaks its rule. */
function talk(): Log {
  const log = new Log();
  log.answer('pm', log.start('pm', log.person('one')), 'two');
  log.answer('pm', log.start('pm', log.person('three')), 'four');
  return log;
}

function changed(log: Log, index: number, fields: object): Entry[] {
  return log.entries.map((entry) => (entry.index === index ? ({ ...entry, ...fields } as Entry) : entry));
}

describe('the check of what agents were shown', () => {
  it('finds nothing in a sound log', () => {
    expect(checkKnowledge(talk().entries)).toEqual([]);
  });

  it('the check of views finds a cursor that passed an entry that was never shown, and one that is too low (L8, V14)', () => {
    const log = talk();
    expect(checkKnowledge(changed(log, 3, { lastProcessedMessageIndex: 2 }))).toEqual([
      'entry 3: the cursor of pm is 2, and should be 4',
    ]);
    const aborted = changed(log, 2, { author: { kind: 'agent', id: 'dev', name: 'Dev' } });
    expect(checkKnowledge(aborted)).toContain('entry 3: the cursor of pm is 4, and should be 0');
  });

  const SUMMARY = {
    type: 'summary',
    agent: 'pm',
    content: 'before: words',
    author: { kind: 'system', id: 'parley', name: 'Parley' },
  };
  it.each<[string, object, string[]]>([
    ['of all from the oldest on', { entries: [[0, 2]], fromIndex: 0, toIndex: 2 }, []],
    [
      'that passes older entries over',
      { entries: [[4, 4]], fromIndex: 4, toIndex: 4 },
      ['entry 8: the summary does not begin with the oldest: entry 0 comes before it'],
    ],
    [
      'of more than it says',
      { entries: [[0, 2]], fromIndex: 0, toIndex: 1 },
      ['entry 8: the summary says 0 to 1, and covers more'],
    ],
  ])('holds a summary %s against V17', (_, fields, faults) => {
    const log = talk();
    log.add({ ...SUMMARY, ...fields } as Parameters<Log['add']>[0]);
    expect(checkKnowledge(log.entries)).toEqual(faults);
  });

  it.each<[string, object]>([
    ['of what is not before it', { entries: [[0, 8]] }],
    ['of more than there can be', { entries: [[0, 2 ** 52]] }],
    ['that leaves out more than there can be', { entries: [[0, 2]], leftOut: [[3, 2 ** 52]] }],
    [
      'whose ranges overlap',
      {
        entries: [
          [0, 3],
          [2, 4],
        ],
      },
    ],
    ['whose range ends before it begins', { entries: [[2, 0]] }],
  ])('finds a summary %s (V17), and lists nothing of it', (_, fields) => {
    const log = talk();
    log.add({ ...SUMMARY, fromIndex: 0, toIndex: 8, ...fields } as Parameters<Log['add']>[0]);
    expect(checkLaws(log.entries)).toEqual([
      'entry 8: the summary names ranges that are not ascending and before it',
    ]);
    expect(checkKnowledge(log.entries)).toEqual([]);
  });

  it('finds a summary of what was never shown (V17)', () => {
    const log = talk();
    const unseen = log.person('five');
    const range = { entries: [[0, unseen]], fromIndex: 0, toIndex: unseen };
    log.add({ ...SUMMARY, ...range } as Parameters<Log['add']>[0]);
    expect(checkKnowledge(log.entries)).toEqual([
      `entry ${unseen + 1}: the summary covers entry ${unseen}, which was never shown`,
    ]);
  });

  it('the check of views finds a summary that separates a call from its result, or covers an open call (V17)', () => {
    const calls = [{ id: 'a', type: 'function', function: { name: 'recall', arguments: '{}' } }];
    const log = talk();
    const author = log.entries[2]?.author;
    log.add({ type: 'message', role: 'assistant', author, content: null, tool_calls: calls } as never);
    const range = { entries: [[0, 8]], fromIndex: 0, toIndex: 8 };
    log.add({ ...SUMMARY, ...range } as Parameters<Log['add']>[0]);
    expect(checkKnowledge(log.entries)).toEqual(['entry 9: the summary covers the open call c8_0']);
    expect(checkLaws(log.entries)).toEqual([
      'entry 8: the call c8_0 has no result, and no turn that could bring it',
    ]);
    const call = { index: 8, position: 0 };
    const result = { type: 'message', role: 'tool', author, content: 'x', call, tool_call_id: 'c8_0' };
    log.entries.length = 9;
    log.add(result as never);
    log.add({ ...SUMMARY, ...range } as Parameters<Log['add']>[0]);
    expect(checkKnowledge(log.entries)).toEqual([
      'entry 10: the summary covers the call c8_0 without its result',
    ]);
    expect(checkLaws(log.entries)).toEqual([]);
  });
});

describe('the check of the audit log', () => {
  const record = (more: object = {}) => ({
    type: 'ToolCallStarted',
    call: { entry: 0, position: 0 },
    tool: 'shell',
    ...more,
  });
  const calling = {
    index: 0,
    type: 'message',
    role: 'assistant',
    tool_calls: [{ function: { name: 'shell' } }],
  };
  const started = { index: 1, type: 'tool-started', call: { index: 0, position: 0 } };
  const log = [calling, started] as unknown as Entry[];

  it('finds nothing where the log called for what ran', () => {
    expect(checkAudit(log, [record()])).toEqual([]);
  });

  it.each<[string, Entry[], object]>([
    ['that the log does not have', log, { call: { entry: 7, position: 0 } }],
    ['of another tool', log, { tool: 'fs_write' }],
    ['that was never started', log.slice(0, 1), {}],
  ])('finds nothing in a request %s: it is recorded before an append that may fail', (_, entries, more) => {
    expect(checkAudit(entries, [record({ type: 'ToolCallRequested', ...more })])).toEqual([]);
  });

  it.each<[string, Entry[], object, RegExp]>([
    ['that the log does not have', log, { call: { entry: 7, position: 0 } }, /has no such call/],
    ['of another tool', log, { tool: 'fs_write' }, /names fs_write; the log has shell/],
    ['that was never started', log.slice(0, 1), {}, /no start of that call/],
  ])('finds a call %s', (_, entries, more, fault) => {
    expect(checkAudit(entries, [record(more)]).join()).toMatch(fault);
  });

  describe('finds a result', () => {
    const done = record({ type: 'ToolCallCompleted', result: 'three files\ud800' });
    const of = (content: string) =>
      ({ index: 2, type: 'message', role: 'tool', content, call: { index: 0, position: 0 } }) as Entry;
    const word = (answer: string) =>
      ({ index: 2, type: 'approval-answered', answer, call: { index: 0, position: 0 } }) as Entry;
    const check = (...entries: Entry[]) => checkAudit([...log, ...entries], [record(), done]);

    it('that is another than its runner saw, by its entry', () => {
      expect(check(of('two files'))).toEqual([
        'entry 2: the result of c0_0 is not the one that audit record 1 has',
      ]);
      expect(check(word('approve'), of('two files'))).toHaveLength(1);
      const file = { type: 'file', sha256: 'a'.repeat(64), mediaType: 'image/png', size: 1 } as const;
      const withFile = { ...of('three files\ufffd'), parts: [file] } as Entry;
      expect(check(withFile)).toHaveLength(1);
      const kept = record({ type: 'ToolCallCompleted', result: 'three files', files: [file] });
      expect(
        checkAudit([...log, { ...withFile, content: 'three files' } as Entry], [record(), kept]),
      ).toEqual([]);
    });

    it('but none that its runner saw, at either of two times, and none before it came', () => {
      expect(check(of('three files\ufffd'))).toEqual([]); // as the log stores any text
      expect(check()).toEqual([]);
      const notice =
        '\n\n[The same calls had the same results three times in a row. Try something else, or say what you need. After five times the turn ends.]';
      expect(check(of(`three files\ufffd${notice}`))).toEqual([]);
      const again = record({ type: 'ToolCallCompleted', result: 'two files' });
      expect(checkAudit([...log, of('two files')], [done, again])).toEqual([]);
    });

    it.each([
      '[Ann changed the arguments of this call before it ran. command: "ls a"]\n',
      '[Ann approved this call: "but quick]"]\n',
      '[Ann changed the arguments of this call before it ran. command: left out]\n[Ann approved this call: "x"]\n',
    ])('but none that begins with a note of the person who approved the call: %j', (note) => {
      expect(check(word('approve'), of(`${note}three files\ufffd`))).toEqual([]);
      expect(check(word('rerun'), of(`${note}three files\ufffd`))).toEqual([]);
      expect(check(word('approve'), of(`${note}two files`))).toHaveLength(1);
      expect(check(of(`${note}three files\ufffd`))).toHaveLength(1); // nobody approved it
      expect(check(word('approve'), of(`${note}more\nthree files\ufffd`))).toHaveLength(1);
    });

    it.each(['result', 'failed', 'expired'])('but none that a person was asked for (%s)', (answer) => {
      expect(check(word(answer), of('two files'))).toEqual([]);
    });

    it('the check of the audit log accepts a result that says unknown (L12)', () => {
      expect(check(of('[the turn was aborted while shell ran: whether it took effect is unknown]'))).toEqual(
        [],
      );
    });
  });
});
