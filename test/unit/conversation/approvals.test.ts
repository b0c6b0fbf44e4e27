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
  it('L11: the approval is requested in the append that contains the call, and nothing runs', () => {
    const team = new ToolTeam().posted('go');
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

  it('L11: what the approval shows is what is judged, hashed and run, however the model wrote it', () => {
    const team = new ToolTeam();
    const judged: string[] = [];
    const judge = team.judge.judge.bind(team.judge);
    team.judge.judge = (call) => {
      judged.push(call.arguments);
      return judge(call);
    };
    const written = String.raw`{ "sum":1, "to":"a\u202eb\ud800", "sum":12345678901234567890 }`;
    const canonical = String.raw`{"sum":12345678901234567000,"to":"a\u202eb\ud800"}`;
    team.post('go');
    team.act('pm', 'working', ['gated', written]);
    expect(team.last('approval-requested')).toMatchObject({
      arguments: canonical,
      argumentsHash: `hash of ${canonical}`,
    });
    team.answerApproval('gated', 'approve');
    expect(team.tool('gated').arguments).toBe(canonical);
    expect(new Set(judged)).toEqual(new Set([canonical]));
    const [{ function: asked } = { function: null }] = team.last('message')?.tool_calls ?? [];
    expect(asked?.arguments).toBe(written); // the provider gets its own text back
  });

  it('an approved call runs once, in the turn that waited', () => {
    const team = ToolTeam.calling('gated');
    const turnId = team.turn('pm')?.turnId;
    expect(team.turn('pm')?.status).toBe('waiting');
    const { entries } = team.answerApproval('gated', 'approve');
    expect(kinds(entries)).toEqual(['approval-answered', 'turn-started pm', 'tool-started']);
    expect(team.last('turn-started')).toMatchObject({ turnId, resumed: true });
    expect(team.last('approval-answered')).toMatchObject({ answer: 'approve', author: PERSON });
    expect(team.running()).toEqual(['gated']);
    team.done('gated');
    team.act('pm', 'done');
    expect(team.starts('gated').length).toBe(1);
    expect(team.outcomes('pm')).toEqual(['waiting', 'completed']);
  });

  it('a person changes the arguments of a call: it runs with those, and the agent reads who changed which', () => {
    const team = new ToolTeam().posted('go');
    team.act('pm', 'working', ['gated', { path: 'a', mode: 1, all: true }]);
    team.answerApproval('gated', 'approve', { arguments: '{ "path": "b\u202e", "mode": 1 }' });
    expect(team.last('approval-answered')).toMatchObject({ arguments: '{"path":"b\\u202e","mode":1}' });
    expect(team.tool('gated').arguments).toBe('{"path":"b\\u202e","mode":1}');
    team.crash();
    expect(team.last('approval-requested')).toMatchObject({
      mayHaveRun: true,
      arguments: '{"path":"b\\u202e","mode":1}',
    });
    team.answerApproval('gated', 'rerun');
    team.done('gated', 'it is written');
    expect(team.shown()).toEqual([
      `[${PERSON.name} changed the arguments of this call before it ran. path: "b\u202e"; all: left out]\nit is written`,
    ]);
    const asking = typed(team.entries, 'message').find(({ tool_calls: calls }) => calls);
    expect(asking?.tool_calls?.[0]?.function.arguments).toContain('"path":"a"'); // the provider gets its own text back
  });

  it('of a long changed argument the agent reads the beginning and the length', () => {
    const team = ToolTeam.calling('gated');
    team.answerApproval('gated', 'approve', { arguments: JSON.stringify({ text: 'x'.repeat(5_000) }) });
    team.done('gated', 'done');
    expect(team.shown()[0]).toMatch(
      /^\[\w+ changed the arguments.* text: "x{1999}… \(5002 characters\)\]\ndone$/,
    );
  });

  it('arguments that are the same change nothing', () => {
    const team = ToolTeam.calling('gated');
    team.answerApproval('gated', 'approve', { arguments: team.last('approval-requested').arguments ?? '' });
    expect(team.last('approval-answered')?.arguments).toBeUndefined();
    team.done('gated', 'done');
    expect(team.shown()).toEqual(['done']);
  });

  it('changed arguments are judged as those of any call: what is refused leaves the call pending', () => {
    const team = ToolTeam.calling('gated');
    const judge = team.judge.judge.bind(team.judge);
    team.judge.judge = (call) =>
      call.arguments.includes('bad')
        ? { kind: 'refuse', code: 'FORBIDDEN', message: 'not there' }
        : judge(call);
    const refused = team.answerApproval('gated', 'approve', { arguments: '{"path":"bad"}' });
    expectRefused(refused, 'FORBIDDEN');
    expect(refused.reply).toMatchObject({ refusal: { message: 'with these arguments: not there' } });
    expect(team.pending()).toEqual(['gated']);
  });

  it('a denial has no arguments, and neither has a call that another program makes', () => {
    const team = ToolTeam.calling('gated');
    expectRefused(team.answerApproval('gated', 'deny', { arguments: '{}' }), 'ANSWER_DOES_NOT_FIT');
    const other = new ToolTeam();
    other.judge.judge = () => ({ kind: 'ask', risk: 'risky', why: 'it edits' });
    other.post('go');
    other.act('pm', null, ['permit_edit', { path: 'a' }]);
    expectRefused(other.answerApproval('permit_edit', 'approve', { arguments: '{}' }), 'ANSWER_DOES_NOT_FIT');
  });

  it('a denied call does not run, and the model reads the reason', () => {
    const team = ToolTeam.calling('gated');
    team.answerApproval('gated', 'deny', { reason: 'not on a Friday' });
    expect(team.running()).toEqual([]);
    expect(JSON.parse(team.shown()[0] ?? '').error).toMatchObject({ code: 'DENIED' });
    expect(team.shown()[0]).toContain('not on a Friday');
    expect(team.calls.length).toBe(1);
  });

  it('the denial of one of two calls leaves the other pending', () => {
    const team = ToolTeam.calling('gated1', 'gated2');
    team.answerApproval('gated1', 'deny');
    expect(team.pending()).toEqual(['gated2']);
    expect([team.turn('pm')?.status, team.calls, team.running()]).toEqual(['waiting', [], []]);
    team.answerApproval('gated2', 'approve');
    expect(team.running()).toEqual(['gated2']);
  });

  it('an approved call waits for an earlier call that is still pending', () => {
    const team = ToolTeam.calling('safe1', 'gated1', 'gated2', 'safe2');
    team.answerApproval('gated2', 'approve');
    expect(team.running()).toEqual(['safe1']);
    team.done('safe1');
    expect([team.running(), team.turn('pm')?.status]).toEqual([[], 'waiting']);
    team.crash();
    team.answerApproval('gated1', 'approve');
    expect(team.running()).toEqual(['gated1']);
    team.done('gated1');
    expect(team.running()).toEqual(['gated2']);
    team.done('gated2');
    team.done('safe2');
    expect(team.shown()).toEqual(['did safe1', 'did gated1', 'did gated2', 'did safe2']);
  });

  it('the first valid answer is accepted, and a second one is refused and changes nothing', () => {
    const team = ToolTeam.calling('gated');
    const id = team.approvalOf('gated');
    team.answerApprovalId(id, 'approve');
    expectRefused(team.answerApprovalId(id, 'deny'), 'APPROVAL_ANSWERED');
    expectRefused(team.answerApprovalId(id, 'approve'), 'APPROVAL_ANSWERED');
    team.done('gated');
    expectRefused(team.answerApprovalId(id, 'approve'), 'APPROVAL_ANSWERED');
    expect(team.starts('gated').length).toBe(1);
  });

  it('an answer to an approval that was never requested is refused', () => {
    expectRefused(ToolTeam.calling('gated').answerApprovalId('foreign', 'approve'), 'NOT_FOUND');
  });

  it.each(['rerun', 'result', 'failed'] as const)(
    'the answer %s is refused before the call has run',
    (answer) => {
      const team = ToolTeam.calling('gated');
      expectRefused(team.answerApproval('gated', answer), 'ANSWER_DOES_NOT_FIT');
      expect(team.pending()).toEqual(['gated']);
    },
  );

  it.each(['approve', 'deny'] as const)('the answer %s is refused after the call may have run', (answer) => {
    const team = ToolTeam.calling('risky');
    team.crash();
    expectRefused(team.answerApproval('risky', answer), 'ANSWER_DOES_NOT_FIT');
    expect(team.pending()).toEqual(['risky']);
  });

  it('L11: a policy that now runs everything releases no call whose approval is pending', () => {
    const team = ToolTeam.calling('safe1', 'gated', 'safe2');
    team.judge.policy = 'run everything';
    team.done('safe1');
    team.post('and?');
    expect([team.running(), team.pending()]).toEqual([[], ['gated']]);
    team.crash();
    expect([team.running(), team.pending()]).toEqual([[], ['gated']]);
    team.answerApproval('gated', 'approve');
    expect(team.starts('gated')[0]?.risk).toBe('risky');
  });

  it('the continued turn shows the messages that arrived during the wait', () => {
    const team = ToolTeam.calling('gated');
    team.post('by the way');
    expect(team.calls).toEqual([]);
    team.answerApproval('gated', 'deny');
    expect(JSON.stringify(team.request('pm'))).toContain('by the way');
  });

  it('a stop ends the turn and its approval', () => {
    const team = ToolTeam.calling('gated');
    const id = team.approvalOf('gated');
    team.do({ type: 'stop', agent: null, by: PERSON });
    expect([team.turn('pm'), team.pending()]).toEqual([null, []]);
    expect(team.result('gated')).toContain('not run');
    expectRefused(team.answerApprovalId(id, 'approve'), 'APPROVAL_ANSWERED');
    expect(hasOutstandingWork(team.conversation.state)).toBe(false);
  });

  it('an approval after a stop starts nothing while another tool still runs', () => {
    const team = ToolTeam.calling('safe', 'gated');
    team.do({ type: 'stop', agent: null, by: PERSON });
    team.answerApproval('gated', 'approve');
    team.done('safe');
    expect([team.running(), team.starts('gated'), team.outcomes('pm')]).toEqual([[], [], ['aborted']]);
  });

  it('the approvals of two agents are independent', () => {
    const team = ToolTeam.calling(['delegate', { to: 'dev', request: 'look' }], 'gated1');
    team.act('dev', null, ['gated2']);
    const [first, second] = [team.approvalOf('gated1'), team.approvalOf('gated2')];
    team.answerApprovalId(second, 'approve');
    expect([team.running(), team.pending()]).toEqual([['gated2'], ['gated1']]);
    expectRefused(team.answerApprovalId(second, 'approve'), 'APPROVAL_ANSWERED');
    team.answerApprovalId(first, 'approve');
    expect(team.running()).toEqual(['gated2', 'gated1']);
  });
});

describe('an approval and a crash', () => {
  it('a crash before the answer leaves one pending approval with the same id', () => {
    const team = ToolTeam.calling('gated');
    const id = team.approvalOf('gated');
    expect(team.crash().entries).toEqual([]);
    expect(team.crash().entries).toEqual([]);
    expect(team.approvalOf('gated')).toBe(id);
    team.answerApprovalId(id, 'approve');
    expect(team.running()).toEqual(['gated']);
  });

  it('an approval whose answer a crash lost is pending and accepts another answer', () => {
    const team = ToolTeam.calling('gated');
    team.answerApproval('gated', 'approve');
    team.crash(1);
    expect([team.pending(), team.starts('gated')]).toEqual([['gated'], []]);
    team.answerApproval('gated', 'deny');
    expect(team.calls.length).toBe(1);
  });

  it('after a crash an answered call runs once and without another request when the earlier call is done', () => {
    const team = ToolTeam.calling('safe', 'gated');
    team.answerApproval('gated', 'approve');
    team.crash();
    expect([team.running(), team.pending()]).toEqual([['safe'], []]);
    team.done('safe');
    expect(team.running()).toEqual(['gated']);
    expect(team.starts('gated').length).toBe(1);
  });

  it('L12: after a crash of a started call its approval is requested again and says that the call may have run', () => {
    const team = ToolTeam.calling('gated');
    const id = team.approvalOf('gated');
    team.answerApproval('gated', 'approve');
    team.crash();
    expect(team.running()).toEqual([]);
    expect(typed(team.entries, 'approval-requested').map((entry) => entry.mayHaveRun)).toEqual([false, true]);
    expectRefused(team.answerApprovalId(id, 'approve'), 'APPROVAL_ANSWERED');
    team.answerApproval('gated', 'rerun');
    team.crash();
    expect([team.running(), team.pending()]).toEqual([[], ['gated']]);
    team.answerApproval('gated', 'result', { result: 'it was there' });
    expect(team.shown()).toEqual(['it was there']);
    expect(team.starts('gated').length).toBe(2);
  });
});

const errorOf = (text: string) => JSON.parse(text).error;

describe('an approval that expires', () => {
  it('an expired approval is an entry of its own, and its call gets an error that differs from a denial', () => {
    const team = ToolTeam.calling('gated');
    const id = team.approvalOf('gated');
    const { entries, reply } = team.expire(id);
    expect(kinds(entries)).toEqual(['approval-answered', 'tool pm', 'turn-started pm']);
    expect(reply.kind).toBe('done');
    expect(team.last('approval-answered')).toMatchObject({
      approvalId: id,
      answer: 'expired',
      author: { kind: 'system' },
    });
    expect(errorOf(team.result('gated'))).toMatchObject({ code: 'APPROVAL_EXPIRED' });
    expect([team.running(), team.pending(), team.calls.length]).toEqual([[], [], 1]);
  });

  it('L12: an expired approval of a call that may have run reports an unknown outcome, never a failure', () => {
    const team = ToolTeam.calling('risky');
    team.crash();
    team.expire(team.approvalOf('risky'));
    expect(errorOf(team.result('risky'))).toMatchObject({ code: 'UNKNOWN' });
    expect(team.result('risky')).not.toContain('not run');
    expect(team.running()).toEqual([]);
  });

  it('L11: an answer after the expiry is refused and starts nothing', () => {
    const team = ToolTeam.calling('gated');
    const id = team.approvalOf('gated');
    team.expire(id);
    const late = team.answerApprovalId(id, 'approve');
    expect(late.entries).toEqual([]);
    expect(late.reply).toMatchObject({ kind: 'refused', refusal: { code: 'APPROVAL_EXPIRED' } });
    expect(team.starts('gated')).toEqual([]);
  });

  it.each(['approve', 'deny'] as const)('L11: an expiry after the answer %s changes nothing', (answer) => {
    const team = ToolTeam.calling('gated');
    const id = team.approvalOf('gated');
    team.answerApprovalId(id, answer);
    expect(team.expire(id)).toMatchObject({ entries: [], effects: [], reply: { kind: 'stale' } });
  });

  it('a repeated expiry and the expiry of an unknown approval change nothing', () => {
    const team = ToolTeam.calling('gated1', 'gated2');
    const id = team.approvalOf('gated1');
    team.expire(id);
    expect(team.expire(id).entries).toEqual([]);
    expect(team.expire('foreign').entries).toEqual([]);
    expect(team.pending()).toEqual(['gated2']);
    expect(hasOutstandingWork(team.conversation.state)).toBe(true);
  });

  it('an expiry keeps the order of the later calls', () => {
    const team = ToolTeam.calling('gated', 'safe', 'risky');
    team.expire(team.approvalOf('gated'));
    expect(team.running()).toEqual(['safe']);
  });

  it('an expiry changes nothing after its turn was stopped', () => {
    const team = ToolTeam.calling('gated');
    const id = team.approvalOf('gated');
    team.do({ type: 'stop', agent: null, by: PERSON });
    expect(team.expire(id).entries).toEqual([]);
  });

  it('recovery requests the approval again under the same id when a crash loses the expiry', () => {
    const team = ToolTeam.calling('gated');
    const id = team.approvalOf('gated');
    team.expire(id);
    team.crash(1);
    expect(team.approvalOf('gated')).toBe(id);
    team.answerApproval('gated', 'approve');
    expect(team.running()).toEqual(['gated']);
  });
});
