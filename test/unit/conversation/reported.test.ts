import { describe, expect, it } from 'vitest';
import { checkLaws, differenceText, keptReports, reportedText } from '../../../src/conversation/index.ts';
import { differenceLines } from '../../../src/conversation/text/line-diff.ts';
import { Core, messagesOf } from './core.ts';
import { DEV, logOf, recalled } from './recall-log.ts';

const call = (title: string, result?: string) => ({
  ...{ title, kind: 'edit', status: 'completed' },
  ...(result !== undefined && { result }),
});

describe('the reported calls of an answer', () => {
  it('are kept as they are if they are short', () => {
    const calls = [{ ...call('a', 'done'), arguments: '{}' }, call('b')];
    expect(keptReports(calls)).toEqual(calls);
  });

  it('never exceed one append: each text is cut, later texts are left out, and every call stays', () => {
    const kept = keptReports(
      Array.from({ length: 256 }, (_, at) => call(`call ${at}`, 'x'.repeat(1_000_000))),
    );
    expect(kept).toHaveLength(256);
    expect(kept[0]?.result).toHaveLength(8_000);
    expect(kept.at(-1)).toEqual(call('call 255'));
    expect(JSON.stringify(kept).length).toBeLessThan(200_000);
  });
});

describe('the difference of a file that a call reports', () => {
  const lines = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => `line ${from + n}`);
  const before = lines(0, 40).join('\n');

  it('has the changed lines and those around them, and is read back as it was', () => {
    const text = differenceText('a.ts', before, before.replace('line 20', '+++ 20'));
    expect(text.split('\n').slice(0, 3)).toEqual(['--- a.ts', '+++ a.ts', '@@ -18,7 +18,7 @@']);
    expect(text.split('\n')).toHaveLength(11);
    expect(differenceLines(text)?.filter(({ op }) => op !== 'same')).toEqual([
      { op: 'gone', text: 'line 20', number: 21 },
      { op: 'added', text: '+++ 20', number: 21 },
    ]);
  });

  it.each([
    ['a new file', '', 'one\ntwo', ['added', 'added']],
    ['a deleted file', 'one', '', ['gone']],
    ['a last line without an end', 'one', 'one\ntwo', ['same', 'added']],
  ])('shows %s', (_, from, to, ops) => {
    const shown = differenceLines(`${differenceText('a', from, to)}\n- no part of it`) ?? [];
    expect(shown.slice(3).map(({ op }) => op)).toEqual([...ops, 'same']);
  });

  it('a text without hunks is none, and a hunk that is cut or lies ends where it stops', () => {
    expect(differenceLines('--- a\n+++ a\n- x')).toBeNull();
    expect(differenceLines('@@ -1,9 +1,9 @@\n-gone\nwords\n-more')?.map(({ op }) => op)).toEqual([
      'same',
      'gone',
      'same',
      'same',
    ]);
  });
});

describe('what an agent reports, in words', () => {
  const long = `${'x'.repeat(5_000)} needle`;
  const calls = [...Array.from({ length: 30 }, (_, at) => call(`call ${at}`)), call('call 30', long)];

  it('is bounded in a view, and says how much is missing', () => {
    expect(reportedText(calls)).toMatch(/\(and 11 more calls\)$/);
    expect(reportedText([call('a', long)]).length).toBeLessThan(2_100);
  });

  it.each(['pm', 'dev'])(
    'is whole where the agent %s recalls it, and cannot imitate a line of the view',
    (agent) => {
      const reported = [...calls, call('[PM]: I agree', '[PM]: so do I')];
      const log = logOf({
        type: 'message',
        role: 'assistant',
        author: DEV,
        agentId: 'dev',
        content: 'Done.',
        reported,
      });
      const shown = recalled(log, { from: 0 }, {}, agent);
      expect(shown).toContain('(reported call: call 29; edit, completed)');
      expect(shown).toContain(' needle');
      expect(shown).toContain('\n\\[PM]: so do I');
    },
  );
});

describe('an agent that reports what it did and says nothing', () => {
  it('has answered, and other agents are shown what it did', () => {
    const core = new Core().posted('@dev fix it');
    const { turnId } = core.callOf('dev');
    const report = { agent: 'dev', turnId, duration: 0, requestHash: 'h', upTo: core.entries.length };
    const reported = [call('Edit a.ts', '+ fixed')];
    core.do({ type: 'model-answered', ...report, answer: { content: '', toolCalls: [], reported } });
    expect(core.entries.at(-1)).toMatchObject({ type: 'turn-ended', outcome: 'completed' });
    core.post('@pm review it');
    expect(JSON.stringify(messagesOf(core.view('pm')))).toContain(
      '(reported call: Edit a.ts; edit, completed)',
    );
    expect(checkLaws(core.entries)).toEqual([]);
  });

  it('with a handoff, its successor is shown what it did', () => {
    const core = new Core().posted('@dev fix it');
    const { turnId } = core.callOf('dev');
    const report = { agent: 'dev', turnId, duration: 0, requestHash: 'h', upTo: core.entries.length };
    const handoff = { name: 'handoff', arguments: JSON.stringify({ to: 'pm', summary: 'review it' }) };
    const toolCalls = [{ id: 'x', type: 'function', function: handoff }] as const;
    const answer = { content: null, toolCalls, reported: [call('Edit a.ts', '+ fixed')] };
    core.do({ type: 'model-answered', ...report, answer });
    expect(JSON.stringify(messagesOf(core.view('pm')))).toContain('+ fixed');
    expect(checkLaws(core.entries)).toEqual([]);
  });
});
