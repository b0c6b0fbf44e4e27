import { describe, expect, it } from 'vitest';
import { hasOutstandingWork } from '../../../src/conversation/index.ts';
import { typed } from './life.ts';
import { kinds, PERSON } from './team-core.ts';
import { ToolCore } from './tool-core.ts';

function expectRefused(decision: ReturnType<ToolCore['do']>, code: string): void {
  expect(decision.entries).toEqual([]);
  expect(decision.effects).toEqual([]);
  expect(decision.reply).toMatchObject({ kind: 'refused', refusal: { code } });
}

describe('a call that needs an approval', () => {
  it('L11: the approval is requested in the append that contains the call, and nothing runs', () => {
    const core = new ToolCore().posted('go');
    const { entries, effects } = core.act('pm', 'working', ['gated', { path: 'a' }]);
    expect(kinds(entries)).toEqual(['assistant pm', 'approval-requested', 'turn-ended pm waiting']);
    expect(effects).toEqual([]);
    expect(core.last('approval-requested')).toMatchObject({
      agent: 'pm',
      tool: 'gated',
      arguments: '{"path":"a"}',
      argumentsHash: 'hash of {"path":"a"}',
      risk: 'risky',
      why: 'gated changes things',
      mayHaveRun: false,
      call: { index: entries[0]?.index, position: 0 },
    });
    expect(hasOutstandingWork(core.conversation.state)).toBe(true);
  });

  it('L11: what the approval shows is what is judged, hashed and run, however the model wrote it', () => {
    const core = new ToolCore();
    const judged: string[] = [];
    const judge = core.judge.judge.bind(core.judge);
    core.judge.judge = (call) => {
      judged.push(call.arguments);
      return judge(call);
    };
    const written = String.raw`{ "sum":1, "to":"a\u202eb\ud800", "sum":12345678901234567890 }`;
    const canonical = String.raw`{"sum":12345678901234567000,"to":"a\u202eb\ud800"}`;
    core.post('go');
    core.act('pm', 'working', ['gated', written]);
    expect(core.last('approval-requested')).toMatchObject({
      arguments: canonical,
      argumentsHash: `hash of ${canonical}`,
    });
    core.answerApproval('gated', 'approve');
    expect(core.tool('gated').arguments).toBe(canonical);
    expect(new Set(judged)).toEqual(new Set([canonical]));
    const [{ function: asked } = { function: null }] = core.last('message')?.tool_calls ?? [];
    expect(asked?.arguments).toBe(written); // the provider gets its own text back
  });

  it('an approved call runs once, in the turn that waited', () => {
    const core = ToolCore.calling('gated');
    const turnId = core.turn('pm')?.turnId;
    expect(core.turn('pm')?.status).toBe('waiting');
    const { entries } = core.answerApproval('gated', 'approve');
    expect(kinds(entries)).toEqual(['approval-answered', 'turn-started pm', 'tool-started']);
    expect(core.last('turn-started')).toMatchObject({ turnId, resumed: true });
    expect(core.last('approval-answered')).toMatchObject({ answer: 'approve', author: PERSON });
    expect(core.running()).toEqual(['gated']);
    core.done('gated');
    core.act('pm', 'done');
    expect(core.starts('gated').length).toBe(1);
    expect(core.outcomes('pm')).toEqual(['waiting', 'completed']);
  });

  it('a person changes the arguments of a call: it runs with those, and the agent reads who changed which', () => {
    const core = new ToolCore().posted('go');
    core.act('pm', 'working', ['gated', { path: 'a', mode: 1, all: true }]);
    core.answerApproval('gated', 'approve', { arguments: '{ "path": "b\u202e", "mode": 1 }' });
    expect(core.last('approval-answered')).toMatchObject({ arguments: '{"path":"b\\u202e","mode":1}' });
    expect(core.tool('gated').arguments).toBe('{"path":"b\\u202e","mode":1}');
    core.crash();
    expect(core.last('approval-requested')).toMatchObject({
      mayHaveRun: true,
      arguments: '{"path":"b\\u202e","mode":1}',
    });
    core.answerApproval('gated', 'rerun');
    core.done('gated', 'it is written');
    expect(core.shown()).toEqual([
      `[${PERSON.name} changed the arguments of this call before it ran. path: "b\u202e"; all: left out]\nit is written`,
    ]);
    const asking = typed(core.entries, 'message').find(({ tool_calls: calls }) => calls);
    expect(asking?.tool_calls?.[0]?.function.arguments).toContain('"path":"a"'); // the provider gets its own text back
  });

  it('what a person says with an approval is before the result of the call; of a denial the agent reads it once', () => {
    const core = new ToolCore().posted('go');
    core.act('pm', 'working', ['gated', { path: 'a' }]);
    core.answerApproval('gated', 'approve', { reason: 'use staging\n[next time]' });
    core.done('gated', 'it is written');
    expect(core.shown()).toEqual([
      `[${PERSON.name} approved this call: "use staging\\n[next time]"]\nit is written`,
    ]);
    core.act('pm', 'again', ['gated', { path: 'b' }]);
    core.answerApproval('gated', 'deny', { reason: 'no' });
    expect(core.shown().at(-1)).toContain('a person denied this: no');
    expect(core.shown().at(-1)).not.toContain('approved');
  });

  it('of a long changed argument the agent reads the beginning and the length', () => {
    const core = ToolCore.calling('gated');
    core.answerApproval('gated', 'approve', { arguments: JSON.stringify({ text: 'x'.repeat(5_000) }) });
    core.done('gated', 'done');
    expect(core.shown()[0]).toMatch(
      /^\[\w+ changed the arguments.* text: "x{1999}… \(5002 characters\)\]\ndone$/,
    );
  });

  it('arguments that are the same change nothing', () => {
    const core = ToolCore.calling('gated');
    core.answerApproval('gated', 'approve', { arguments: core.last('approval-requested').arguments ?? '' });
    expect(core.last('approval-answered')?.arguments).toBeUndefined();
    core.done('gated', 'done');
    expect(core.shown()).toEqual(['done']);
  });

  it('changed arguments are judged as those of any call: what is refused leaves the call pending', () => {
    const core = ToolCore.calling('gated');
    const judge = core.judge.judge.bind(core.judge);
    core.judge.judge = (call) =>
      call.arguments.includes('bad')
        ? { kind: 'refuse', code: 'FORBIDDEN', message: 'not there' }
        : judge(call);
    const refused = core.answerApproval('gated', 'approve', { arguments: '{"path":"bad"}' });
    expectRefused(refused, 'FORBIDDEN');
    expect(refused.reply).toMatchObject({ refusal: { message: 'with these arguments: not there' } });
    expect(core.pending()).toEqual(['gated']);
  });

  it('a denial has no arguments, and neither has a call that another program makes', () => {
    const core = ToolCore.calling('gated');
    expectRefused(core.answerApproval('gated', 'deny', { arguments: '{}' }), 'ANSWER_DOES_NOT_FIT');
    const other = new ToolCore();
    other.judge.judge = () => ({ kind: 'ask', risk: 'risky', why: 'it edits' });
    other.post('go');
    other.act('pm', null, ['permit_edit', { path: 'a' }]);
    expectRefused(other.answerApproval('permit_edit', 'approve', { arguments: '{}' }), 'ANSWER_DOES_NOT_FIT');
  });

  it('a denied call does not run, and the model reads the reason', () => {
    const core = ToolCore.calling('gated');
    core.answerApproval('gated', 'deny', { reason: 'not on a Friday' });
    expect(core.running()).toEqual([]);
    expect(JSON.parse(core.shown()[0] ?? '').error).toMatchObject({ code: 'DENIED' });
    expect(core.shown()[0]).toContain('not on a Friday');
    expect(core.calls.length).toBe(1);
  });

  it('the denial of one of two calls leaves the other pending', () => {
    const core = ToolCore.calling('gated1', 'gated2');
    core.answerApproval('gated1', 'deny');
    expect(core.pending()).toEqual(['gated2']);
    expect([core.turn('pm')?.status, core.calls, core.running()]).toEqual(['waiting', [], []]);
    core.answerApproval('gated2', 'approve');
    expect(core.running()).toEqual(['gated2']);
  });

  it('an approved call waits for an earlier call that is still pending', () => {
    const core = ToolCore.calling('safe1', 'gated1', 'gated2', 'safe2');
    core.answerApproval('gated2', 'approve');
    expect(core.running()).toEqual(['safe1']);
    core.done('safe1');
    expect([core.running(), core.turn('pm')?.status]).toEqual([[], 'waiting']);
    core.crash();
    core.answerApproval('gated1', 'approve');
    expect(core.running()).toEqual(['gated1']);
    core.done('gated1');
    expect(core.running()).toEqual(['gated2']);
    core.done('gated2');
    core.done('safe2');
    expect(core.shown()).toEqual(['did safe1', 'did gated1', 'did gated2', 'did safe2']);
  });

  it('the first valid answer is accepted, and a second one is refused and changes nothing', () => {
    const core = ToolCore.calling('gated');
    const id = core.approvalOf('gated');
    core.answerApprovalId(id, 'approve');
    expectRefused(core.answerApprovalId(id, 'deny'), 'APPROVAL_ANSWERED');
    expectRefused(core.answerApprovalId(id, 'approve'), 'APPROVAL_ANSWERED');
    core.done('gated');
    expectRefused(core.answerApprovalId(id, 'approve'), 'APPROVAL_ANSWERED');
    expect(core.starts('gated').length).toBe(1);
  });

  it('an answer to an approval that was never requested is refused', () => {
    expectRefused(ToolCore.calling('gated').answerApprovalId('foreign', 'approve'), 'NOT_FOUND');
  });

  it.each(['rerun', 'result', 'failed'] as const)(
    'the answer %s is refused before the call has run',
    (answer) => {
      const core = ToolCore.calling('gated');
      expectRefused(core.answerApproval('gated', answer), 'ANSWER_DOES_NOT_FIT');
      expect(core.pending()).toEqual(['gated']);
    },
  );

  it.each(['approve', 'deny'] as const)('the answer %s is refused after the call may have run', (answer) => {
    const core = ToolCore.calling('risky');
    core.crash();
    expectRefused(core.answerApproval('risky', answer), 'ANSWER_DOES_NOT_FIT');
    expect(core.pending()).toEqual(['risky']);
  });

  it('L11: a policy that now runs everything releases no call whose approval is pending', () => {
    const core = ToolCore.calling('safe1', 'gated', 'safe2');
    core.judge.policy = 'run everything';
    core.done('safe1');
    core.post('and?');
    expect([core.running(), core.pending()]).toEqual([[], ['gated']]);
    core.crash();
    expect([core.running(), core.pending()]).toEqual([[], ['gated']]);
    core.answerApproval('gated', 'approve');
    expect(core.starts('gated')[0]?.risk).toBe('risky');
  });

  it('the continued turn shows the messages that arrived during the wait', () => {
    const core = ToolCore.calling('gated');
    core.post('by the way');
    expect(core.calls).toEqual([]);
    core.answerApproval('gated', 'deny');
    expect(JSON.stringify(core.request('pm'))).toContain('by the way');
  });

  it('a stop ends the turn and its approval', () => {
    const core = ToolCore.calling('gated');
    const id = core.approvalOf('gated');
    core.do({ type: 'stop', agent: null, by: PERSON });
    expect([core.turn('pm'), core.pending()]).toEqual([null, []]);
    expect(core.result('gated')).toContain('not run');
    expectRefused(core.answerApprovalId(id, 'approve'), 'APPROVAL_ANSWERED');
    expect(hasOutstandingWork(core.conversation.state)).toBe(false);
  });

  it('an approval after a stop starts nothing while another tool still runs', () => {
    const core = ToolCore.calling('safe', 'gated');
    core.do({ type: 'stop', agent: null, by: PERSON });
    core.answerApproval('gated', 'approve');
    core.done('safe');
    expect([core.running(), core.starts('gated'), core.outcomes('pm')]).toEqual([[], [], ['aborted']]);
  });

  it('the approvals of two agents are independent', () => {
    const core = ToolCore.calling(['delegate', { to: 'dev', request: 'look' }], 'gated1');
    core.act('dev', null, ['gated2']);
    const [first, second] = [core.approvalOf('gated1'), core.approvalOf('gated2')];
    core.answerApprovalId(second, 'approve');
    expect([core.running(), core.pending()]).toEqual([['gated2'], ['gated1']]);
    expectRefused(core.answerApprovalId(second, 'approve'), 'APPROVAL_ANSWERED');
    core.answerApprovalId(first, 'approve');
    expect(core.running()).toEqual(['gated2', 'gated1']);
  });
});

describe('an approval and a crash', () => {
  it('a crash before the answer leaves one pending approval with the same id', () => {
    const core = ToolCore.calling('gated');
    const id = core.approvalOf('gated');
    expect(core.crash().entries).toEqual([]);
    expect(core.crash().entries).toEqual([]);
    expect(core.approvalOf('gated')).toBe(id);
    core.answerApprovalId(id, 'approve');
    expect(core.running()).toEqual(['gated']);
  });

  it('an approval whose answer a crash lost is pending and accepts another answer', () => {
    const core = ToolCore.calling('gated');
    core.answerApproval('gated', 'approve');
    core.crash(1);
    expect([core.pending(), core.starts('gated')]).toEqual([['gated'], []]);
    core.answerApproval('gated', 'deny');
    expect(core.calls.length).toBe(1);
  });

  it('after a crash an answered call runs once and without another request when the earlier call is done', () => {
    const core = ToolCore.calling('safe', 'gated');
    core.answerApproval('gated', 'approve');
    core.crash();
    expect([core.running(), core.pending()]).toEqual([['safe'], []]);
    core.done('safe');
    expect(core.running()).toEqual(['gated']);
    expect(core.starts('gated').length).toBe(1);
  });

  it('L12: after a crash of a started call its approval is requested again and says that the call may have run', () => {
    const core = ToolCore.calling('gated');
    const id = core.approvalOf('gated');
    core.answerApproval('gated', 'approve');
    core.crash();
    expect(core.running()).toEqual([]);
    expect(typed(core.entries, 'approval-requested').map((entry) => entry.mayHaveRun)).toEqual([false, true]);
    expectRefused(core.answerApprovalId(id, 'approve'), 'APPROVAL_ANSWERED');
    core.answerApproval('gated', 'rerun');
    core.crash();
    expect([core.running(), core.pending()]).toEqual([[], ['gated']]);
    core.answerApproval('gated', 'result', { result: 'it was there' });
    expect(core.shown()).toEqual(['it was there']);
    expect(core.starts('gated').length).toBe(2);
  });
});

const errorOf = (text: string) => JSON.parse(text).error;

describe('an approval that expires', () => {
  it('an expired approval is an entry of its own, and its call gets an error that differs from a denial', () => {
    const core = ToolCore.calling('gated');
    const id = core.approvalOf('gated');
    const { entries, reply } = core.expire(id);
    expect(kinds(entries)).toEqual(['approval-answered', 'tool pm', 'turn-started pm']);
    expect(reply.kind).toBe('done');
    expect(core.last('approval-answered')).toMatchObject({
      approvalId: id,
      answer: 'expired',
      author: { kind: 'system' },
    });
    expect(errorOf(core.result('gated'))).toMatchObject({ code: 'APPROVAL_EXPIRED' });
    expect([core.running(), core.pending(), core.calls.length]).toEqual([[], [], 1]);
  });

  it('L12: an expired approval of a call that may have run reports an unknown outcome, never a failure', () => {
    const core = ToolCore.calling('risky');
    core.crash();
    core.expire(core.approvalOf('risky'));
    expect(errorOf(core.result('risky'))).toMatchObject({ code: 'UNKNOWN' });
    expect(core.result('risky')).not.toContain('not run');
    expect(core.running()).toEqual([]);
  });

  it('L11: an answer after the expiry is refused and starts nothing', () => {
    const core = ToolCore.calling('gated');
    const id = core.approvalOf('gated');
    core.expire(id);
    const late = core.answerApprovalId(id, 'approve');
    expect(late.entries).toEqual([]);
    expect(late.reply).toMatchObject({ kind: 'refused', refusal: { code: 'APPROVAL_EXPIRED' } });
    expect(core.starts('gated')).toEqual([]);
  });

  it.each(['approve', 'deny'] as const)('L11: an expiry after the answer %s changes nothing', (answer) => {
    const core = ToolCore.calling('gated');
    const id = core.approvalOf('gated');
    core.answerApprovalId(id, answer);
    expect(core.expire(id)).toMatchObject({ entries: [], effects: [], reply: { kind: 'stale' } });
  });

  it('a repeated expiry and the expiry of an unknown approval change nothing', () => {
    const core = ToolCore.calling('gated1', 'gated2');
    const id = core.approvalOf('gated1');
    core.expire(id);
    expect(core.expire(id).entries).toEqual([]);
    expect(core.expire('foreign').entries).toEqual([]);
    expect(core.pending()).toEqual(['gated2']);
    expect(hasOutstandingWork(core.conversation.state)).toBe(true);
  });

  it('an expiry keeps the order of the later calls', () => {
    const core = ToolCore.calling('gated', 'safe', 'risky');
    core.expire(core.approvalOf('gated'));
    expect(core.running()).toEqual(['safe']);
  });

  it('an expiry changes nothing after its turn was stopped', () => {
    const core = ToolCore.calling('gated');
    const id = core.approvalOf('gated');
    core.do({ type: 'stop', agent: null, by: PERSON });
    expect(core.expire(id).entries).toEqual([]);
  });

  it('recovery requests the approval again under the same id when a crash loses the expiry', () => {
    const core = ToolCore.calling('gated');
    const id = core.approvalOf('gated');
    core.expire(id);
    core.crash(1);
    expect(core.approvalOf('gated')).toBe(id);
    core.answerApproval('gated', 'approve');
    expect(core.running()).toEqual(['gated']);
  });
});
