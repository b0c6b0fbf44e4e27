import { describe, expect, it } from 'vitest';
import { hasOutstandingWork } from '../../../src/conversation/index.ts';
import { typed } from './life.ts';
import { kinds, PERSON } from './team.ts';
import { ToolTeam } from './tool-life.ts';

function expectRefused(decision: ReturnType<ToolTeam['do']>, code: string): void {
  expect(decision.entries).toEqual([]);
  expect(decision.effects).toEqual([]);
  expect(decision.reply).toMatchObject({ kind: 'refused', refusal: { code } });
}

describe('a call that needs an approval', () => {
  it('L11: is asked for in the append that holds the call, and nothing runs', () => {
    const team = new ToolTeam();
    team.post('go');
    const { entries, effects } = team.act('pm', 'working', ['gated', { path: 'a' }]);
    expect(kinds(entries)).toEqual(['assistant pm', 'approval-requested', 'turn-ended pm waiting']);
    expect(effects).toEqual([]);
    expect(team.last('approval-requested')).toMatchObject({
      agent: 'pm',
      tool: 'gated',
      arguments: '{"path":"a"}',
      argumentsHash: 'hash of {"path":"a"}',
      risk: 'risky',
      why: 'gated changes things',
      mayHaveRun: false,
      call: { index: entries[0]?.index, position: 0 },
    });
    expect(hasOutstandingWork(team.conversation.state)).toBe(true);
  });

  it('runs once when it is approved, in the turn that waited', () => {
    const team = ToolTeam.calling('gated');
    const turnId = team.turn('pm')?.turnId;
    expect(team.turn('pm')?.status).toBe('waiting');
    const { entries } = team.word('gated', 'approve');
    expect(kinds(entries)).toEqual(['approval-answered', 'turn-started pm', 'tool-started']);
    expect(team.last('turn-started')).toMatchObject({ turnId, resumed: true });
    expect(team.last('approval-answered')).toMatchObject({ answer: 'approve', author: PERSON });
    expect(team.running()).toEqual(['gated']);
    team.done('gated');
    team.act('pm', 'done');
    expect(team.starts('gated').length).toBe(1);
    expect(team.outcomes('pm')).toEqual(['waiting', 'completed']);
  });

  it('does not run when it is denied, and the model reads the reason', () => {
    const team = ToolTeam.calling('gated');
    team.word('gated', 'deny', { reason: 'not on a Friday' });
    expect(team.running()).toEqual([]);
    expect(JSON.parse(team.shown()[0] ?? '').error).toMatchObject({ code: 'DENIED' });
    expect(team.shown()[0]).toContain('not on a Friday');
    expect(team.calls.length).toBe(1);
  });

  it('leaves the other call pending when one of two is denied', () => {
    const team = ToolTeam.calling('gated1', 'gated2');
    team.word('gated1', 'deny');
    expect(team.pending()).toEqual(['gated2']);
    expect([team.turn('pm')?.status, team.calls, team.running()]).toEqual(['waiting', [], []]);
    team.word('gated2', 'approve');
    expect(team.running()).toEqual(['gated2']);
  });

  it('waits, once approved, for an earlier call that is still pending', () => {
    const team = ToolTeam.calling('safe1', 'gated1', 'gated2', 'safe2');
    team.word('gated2', 'approve');
    expect(team.running()).toEqual(['safe1']);
    team.done('safe1');
    expect([team.running(), team.turn('pm')?.status]).toEqual([[], 'waiting']);
    team.crash();
    team.word('gated1', 'approve');
    expect(team.running()).toEqual(['gated1']);
    team.done('gated1');
    expect(team.running()).toEqual(['gated2']);
    team.done('gated2');
    team.done('safe2');
    expect(team.shown()).toEqual(['did safe1', 'did gated1', 'did gated2', 'did safe2']);
  });

  it('accepts the first valid answer: a second one is refused and changes nothing', () => {
    const team = ToolTeam.calling('gated');
    const id = team.approvalOf('gated');
    team.answerTo(id, 'approve');
    expectRefused(team.answerTo(id, 'deny'), 'APPROVAL_ANSWERED');
    expectRefused(team.answerTo(id, 'approve'), 'APPROVAL_ANSWERED');
    team.done('gated');
    expectRefused(team.answerTo(id, 'approve'), 'APPROVAL_ANSWERED');
    expect(team.starts('gated').length).toBe(1);
  });

  it('refuses an answer to an approval that was never requested', () => {
    expectRefused(ToolTeam.calling('gated').answerTo('foreign', 'approve'), 'NOT_FOUND');
  });

  it.each(['rerun', 'result', 'failed'] as const)(
    'refuses the answer %s before the call has run',
    (answer) => {
      const team = ToolTeam.calling('gated');
      expectRefused(team.word('gated', answer), 'ANSWER_DOES_NOT_FIT');
      expect(team.pending()).toEqual(['gated']);
    },
  );

  it.each(['approve', 'deny'] as const)('refuses the answer %s after the call may have run', (answer) => {
    const team = ToolTeam.calling('risky');
    team.crash();
    expectRefused(team.word('risky', answer), 'ANSWER_DOES_NOT_FIT');
    expect(team.pending()).toEqual(['risky']);
  });

  it('L11: a policy that runs everything from now on releases nothing that is asked for', () => {
    const team = ToolTeam.calling('safe1', 'gated', 'safe2');
    team.judge.policy = 'run everything';
    team.done('safe1');
    team.post('and?');
    expect([team.running(), team.pending()]).toEqual([[], ['gated']]);
    team.crash();
    expect([team.running(), team.pending()]).toEqual([[], ['gated']]);
    team.word('gated', 'approve');
    expect(team.starts('gated')[0]?.risk).toBe('risky');
  });

  it('shows messages that arrive during the wait when the turn continues', () => {
    const team = ToolTeam.calling('gated');
    team.post('by the way');
    expect(team.calls).toEqual([]);
    team.word('gated', 'deny');
    expect(JSON.stringify(team.request('pm'))).toContain('by the way');
  });

  it('ends with its turn on a stop, and so does its approval', () => {
    const team = ToolTeam.calling('gated');
    const id = team.approvalOf('gated');
    team.do({ type: 'stop', agent: null, by: PERSON });
    expect([team.turn('pm'), team.pending()]).toEqual([null, []]);
    expect(team.result('gated')).toContain('not run');
    expectRefused(team.answerTo(id, 'approve'), 'APPROVAL_ANSWERED');
    expect(hasOutstandingWork(team.conversation.state)).toBe(false);
  });

  it('starts nothing when the approval arrives after a stop, while another tool still runs', () => {
    const team = ToolTeam.calling('safe', 'gated');
    team.do({ type: 'stop', agent: null, by: PERSON });
    team.word('gated', 'approve');
    team.done('safe');
    expect([team.running(), team.starts('gated'), team.outcomes('pm')]).toEqual([[], [], ['aborted']]);
  });

  it('keeps the approvals of two agents apart', () => {
    const team = ToolTeam.calling(['delegate', { to: 'dev', request: 'look' }], 'gated1');
    team.act('dev', null, ['gated2']);
    const [first, second] = [team.approvalOf('gated1'), team.approvalOf('gated2')];
    team.answerTo(second, 'approve');
    expect([team.running(), team.pending()]).toEqual([['gated2'], ['gated1']]);
    expectRefused(team.answerTo(second, 'approve'), 'APPROVAL_ANSWERED');
    team.answerTo(first, 'approve');
    expect(team.running()).toEqual(['gated2', 'gated1']);
  });
});

describe('an approval and a crash', () => {
  it('before the answer: it is pending once, under the same id', () => {
    const team = ToolTeam.calling('gated');
    const id = team.approvalOf('gated');
    expect(team.crash().entries).toEqual([]);
    expect(team.crash().entries).toEqual([]);
    expect(team.approvalOf('gated')).toBe(id);
    team.answerTo(id, 'approve');
    expect(team.running()).toEqual(['gated']);
  });

  it('after an answer that the crash lost: it is pending, and may be answered again', () => {
    const team = ToolTeam.calling('gated');
    team.word('gated', 'approve');
    team.crash(1);
    expect([team.pending(), team.starts('gated')]).toEqual([['gated'], []]);
    team.word('gated', 'deny');
    expect(team.calls.length).toBe(1);
  });

  it('after the answer, before an earlier call is done: the call runs once, without another request', () => {
    const team = ToolTeam.calling('safe', 'gated');
    team.word('gated', 'approve');
    team.crash();
    expect([team.running(), team.pending()]).toEqual([['safe'], []]);
    team.done('safe');
    expect(team.running()).toEqual(['gated']);
    expect(team.starts('gated').length).toBe(1);
  });

  it('L12: after the start: it is requested again and says that the call may have run', () => {
    const team = ToolTeam.calling('gated');
    const id = team.approvalOf('gated');
    team.word('gated', 'approve');
    team.crash();
    expect(team.running()).toEqual([]);
    expect(typed(team.entries, 'approval-requested').map((entry) => entry.mayHaveRun)).toEqual([false, true]);
    expectRefused(team.answerTo(id, 'approve'), 'APPROVAL_ANSWERED');
    team.word('gated', 'rerun');
    team.crash();
    expect([team.running(), team.pending()]).toEqual([[], ['gated']]);
    team.word('gated', 'result', { result: 'it was there' });
    expect(team.shown()).toEqual(['it was there']);
    expect(team.starts('gated').length).toBe(2);
  });
});
