import { describe, expect, it } from 'vitest';
import { planRepair } from '../../../src/conversation/index.ts';
import { typed } from './life.ts';
import { kinds, PERSON } from './team.ts';
import { type Policy, ToolTeam } from './tool-life.ts';
import { messagesOf, type RunTool } from './world.ts';

describe('the calls of one answer', () => {
  it('contiguous safe calls start together; a risky call runs alone and in its position', () => {
    const team = ToolTeam.calling('safe1', 'safe2', 'risky', 'safe3', 'safe4');
    expect(team.running()).toEqual(['safe1', 'safe2']);
    team.done('safe2');
    expect(team.running()).toEqual(['safe1']);
    team.done('safe1');
    expect(team.running()).toEqual(['risky']);
    team.done('risky');
    expect(team.running()).toEqual(['safe3', 'safe4']);
    team.done('safe4');
    team.done('safe3');
    expect(team.calls.map((call) => call.agent)).toEqual(['pm']);
    expect(team.shown()).toEqual(['did safe1', 'did safe2', 'did risky', 'did safe3', 'did safe4']);
  });

  it('two risky calls run one after the other', () => {
    const team = ToolTeam.calling('risky1', 'risky2');
    expect(team.running()).toEqual(['risky1']);
    team.done('risky1');
    expect(team.running()).toEqual(['risky2']);
  });

  it.each([
    ['unknown', {}, 'TOOL_NOT_AVAILABLE'],
    ['forbidden', {}, 'FORBIDDEN'],
    ['safe', 'wrong', 'INVALID_ARGUMENTS'],
  ])('a call of %s (%j) is answered with %s and runs nothing', (name, given, code) => {
    const team = ToolTeam.calling([name, given]);
    expect(team.running()).toEqual([]);
    expect(team.starts(name)).toEqual([]);
    expect(JSON.parse(team.result(name)).error.code).toBe(code);
    expect(team.calls.length).toBe(1);
  });

  it('the calls beside a refused call run, with results in call order', () => {
    const team = ToolTeam.calling('safe1', 'unknown', 'safe2');
    expect(team.running()).toEqual(['safe1', 'safe2']);
    team.done('safe2');
    team.done('safe1');
    expect(team.shown()).toEqual(['did safe1', expect.stringContaining('TOOL_NOT_AVAILABLE'), 'did safe2']);
  });

  it('calls that became forbidden after the request do not start', () => {
    const team = ToolTeam.calling('risky1', 'safe1', 'risky2');
    team.judge.policy = 'forbid everything';
    team.done('risky1');
    expect(team.running()).toEqual([]);
    expect(team.shown()).toEqual([
      'did risky1',
      expect.stringContaining('FORBIDDEN'),
      expect.stringContaining('FORBIDDEN'),
    ]);
  });

  it('L9: the intent is in the log before the tool runs, with the risk', () => {
    const team = ToolTeam.calling('safe', 'risky');
    expect(team.tools.map((tool) => team.entries[tool.key]?.type)).toEqual(['tool-started']);
    team.done('safe');
    expect(typed(team.entries, 'tool-started').map((entry) => entry.risk)).toEqual(['safe', 'risky']);
  });

  it('TURNS-3: a repeated report, and one of a call that has not started, change nothing', () => {
    const team = ToolTeam.calling('safe', 'risky');
    const run = team.tool('safe');
    const early = team.finish({ ...run, call: { ...run.call, position: 1 } });
    expect([early.reply.kind, early.entries]).toEqual(['stale', []]);
    team.done('safe');
    const again = team.finish(run, 'did safe');
    expect([again.reply.kind, again.entries]).toEqual(['stale', []]);
    expect(team.result('safe')).toBe('did safe');
  });

  it('V13: a turn waits for its delegation, its question and its tool', () => {
    const team = ToolTeam.calling(
      ['delegate', { to: 'dev', request: 'look' }],
      'safe',
      ['ask', { question: 'why?' }],
      'gated',
    );
    expect(team.running()).toEqual(['safe']);
    expect(team.turn('pm')?.status).toBe('running');
    team.done('safe');
    expect(team.turn('pm')?.status).toBe('waiting');
    team.act('dev', 'looked');
    expect(team.turn('pm')?.status).toBe('waiting');
    team.answerApproval('gated', 'approve');
    expect(team.running()).toEqual(['gated']);
    team.done('gated');
    expect(team.turn('pm')?.status).toBe('waiting');
    team.post('because');
    expect(team.shown()).toEqual(['looked', 'did safe', 'because', 'did gated']);
    expect(team.calls.map((call) => call.agent)).toEqual(['pm']);
  });

  it('a handoff is carried out after the tools beside it, also after one with an approval', () => {
    const team = ToolTeam.calling(['handoff', { to: 'dev', summary: 'yours' }], 'safe', 'gated');
    team.done('safe');
    expect(team.turn('dev')).toBeNull();
    team.answerApproval('gated', 'deny');
    expect(team.turn('pm')).toBeNull();
    expect(team.calls.map((call) => call.agent)).toEqual(['dev']);
  });

  it('a stop while tools run starts none of the others', () => {
    const team = ToolTeam.calling('safe', 'risky');
    team.do({ type: 'stop', agent: null, by: PERSON });
    team.done('safe');
    expect(team.running()).toEqual([]);
    expect(team.outcomes('pm')).toEqual(['aborted']);
    expect(team.result('risky')).toContain('not run');
  });
});

describe('tools after a crash', () => {
  it('a started safe call runs once more after a crash, with a mark, and not a third time', () => {
    const team = ToolTeam.calling('safe');
    const { reply } = team.crash();
    expect(reply).toEqual({ kind: 'recovered', count: { repaired: 0, retried: 1, unknown: 0 } });
    expect(team.running()).toEqual(['safe']);
    expect(team.starts('safe').map((entry) => entry.rerun ?? false)).toEqual([false, true]);
    expect(team.crash().reply).toMatchObject({ count: { retried: 0, unknown: 1 } });
    expect(team.running()).toEqual([]);
    expect(team.result('safe')).toContain('INTERRUPTED');
    expect(team.starts('safe').length).toBe(2);
    expect(team.calls.length).toBe(1);
  });

  it('TOOLS-3: recovery requests an approval for a started risky call, and runs nothing', () => {
    const team = ToolTeam.calling('risky', 'safe');
    const { entries } = team.crash();
    expect(kinds(entries)).toEqual(['turn-started pm', 'approval-requested', 'turn-ended pm waiting']);
    expect(team.running()).toEqual([]);
    expect(team.last('approval-requested')).toMatchObject({ tool: 'risky', mayHaveRun: true });
    expect(team.crash().entries).toEqual([]); // Requested once.
    team.answerApproval('risky', 'rerun');
    expect(team.running()).toEqual(['risky']);
    team.done('risky');
    expect(team.running()).toEqual(['safe']);
  });

  it.each([
    ['result', { result: 'it was sent' }, 'it was sent'],
    ['failed', { reason: 'no mail came' }, 'no mail came'],
    ['failed', {}, 'did not happen'],
  ] as const)('the answer %s (%j) of a person runs nothing', (answer, more, shown) => {
    const team = ToolTeam.calling('risky');
    team.crash();
    team.answerApproval('risky', answer, more);
    expect(team.running()).toEqual([]);
    expect(team.result('risky')).toContain(shown);
    expect(team.calls.length).toBe(1);
  });

  it.each(['risky', 'safe'])('recovery takes the result of a %s call from the audit log', (name) => {
    const team = ToolTeam.calling(name);
    const { index, position } = team.tool(name).call;
    const { reply } = team.crash(0, [{ index, position, content: 'it happened' }]);
    expect(reply).toEqual({ kind: 'recovered', count: { repaired: 1, retried: 0, unknown: 0 } });
    expect(team.result(name)).toBe('it happened');
    expect([team.running(), team.pending(), team.calls.length]).toEqual([[], [], 1]);
  });

  it.each(['safe', 'risky', 'gated'])(
    'B4: recovery runs a %s call that provably did not run, by its one start and without a question',
    (name) => {
      const next = name === 'safe' ? 'risky2' : 'safe2';
      const team = ToolTeam.calling(name, next);
      if (name === 'gated') team.answerApproval(name, 'approve');
      const { call } = team.tool(name);
      for (let crashes = 0; crashes < 3; crashes++) {
        const { reply, entries } = team.crash(0, [{ ...call, content: null }]);
        expect(reply).toMatchObject({ count: { repaired: 0, unknown: 0 } });
        expect(kinds(entries)).not.toContain('approval-requested');
        expect(team.tool(name).call).toEqual(call);
      }
      expect(team.starts(name)).toHaveLength(1);
      team.done(name);
      expect(team.running()).toEqual([next]); // Each call keeps its position.
      expect(team.result(name)).not.toContain('unknown');
    },
  );

  it.each<[string, Policy]>([
    ['risky', 'forbid everything'],
    ['risky', 'ask everything'],
    ['gated', 'forbid everything'],
    ['safe', 'ask everything'],
  ])(
    'TOOLS-4: recovery requests an approval for a %s call that did not run if the policy now says %s',
    (name, policy) => {
      const team = ToolTeam.calling(name);
      if (name === 'gated') team.answerApproval(name, 'approve');
      const { call } = team.tool(name);
      team.judge.policy = policy;
      team.crash(0, [{ ...call, content: null }]);
      expect([team.running(), team.pending()]).toEqual([[], [name]]);
      expect(team.last('approval-requested')).toMatchObject({ mayHaveRun: true });
    },
  );

  it('TOOLS-4: recovery runs nothing for a turn that was stopped, though the call did not run', () => {
    const team = ToolTeam.calling('risky');
    const { call } = team.tool('risky');
    team.do({ type: 'stop', agent: null, by: PERSON });
    team.crash(0, [{ ...call, content: null }]);
    expect([team.running(), team.pending()]).toEqual([[], []]);
    expect(team.outcomes('pm')).toEqual(['aborted']);
  });

  it('recovery takes the result from the audit log for a turn that was stopped, too', () => {
    const team = ToolTeam.calling('risky');
    const { index, position } = team.tool('risky').call;
    team.do({ type: 'stop', agent: null, by: PERSON });
    team.crash(0, [{ index, position, content: 'it happened' }]);
    expect(team.result('risky')).toBe('it happened');
    expect(team.outcomes('pm')).toEqual(['aborted']);
  });

  it('recovery gives a safe call that is forbidden now an error result', () => {
    const team = ToolTeam.calling('safe');
    team.judge.policy = 'forbid everything';
    team.crash();
    expect(team.running()).toEqual([]);
    expect(team.result('safe')).toContain('FORBIDDEN');
  });

  it('L12: recovery reports an unknown outcome for a call that had started when its turn was stopped', () => {
    const team = ToolTeam.calling('risky');
    team.do({ type: 'stop', agent: null, by: PERSON });
    team.crash();
    expect(team.result('risky')).toContain('unknown');
  });

  it('L12: recovery reports an unknown outcome after a stop during the request for an approval, too', () => {
    const team = ToolTeam.calling('risky');
    team.crash();
    team.do({ type: 'stop', agent: null, by: PERSON });
    expect(team.result('risky')).toContain('unknown');
  });

  it('recovery repairs the calls of several agents independently', () => {
    const team = ToolTeam.calling(['delegate', { to: 'dev', request: 'look' }], 'risky');
    team.act('dev', null, ['safe'], ['gated']);
    team.crash();
    expect([team.running(), team.pending().sort()]).toEqual([['safe'], ['gated', 'risky']]);
    team.done('safe');
    team.answerApproval('gated', 'deny', { reason: 'no' });
    team.act('dev', 'looked');
    team.answerApproval('risky', 'failed');
    expect(team.shown()).toEqual(['looked', expect.stringContaining('FAILED')]);
  });
});

function stoppedInTheMiddle(name: string) {
  const team = ToolTeam.calling(name);
  const tool = team.tool(name);
  team.do({ type: 'stop', agent: null, by: PERSON });
  team.crash(); // The outcome of the running call is recorded as unknown.
  return { team, tool };
}

describe('a late result', () => {
  it('L12: a late result of an aborted turn is a note that names the call', () => {
    const { team, tool } = stoppedInTheMiddle('risky');
    const { entries, effects, reply } = team.finish(tool, 'it was sent');
    expect([reply.kind, entries.length, effects]).toEqual(['done', 1, []]);
    expect(team.last('note')).toMatchObject({
      author: { kind: 'system' },
      call: tool.call,
      toolName: 'risky',
      content: `a late result of risky (call c${tool.call.index}_0): it was sent`,
    });
    expect(team.result('risky')).toContain('unknown'); // The first result counts.
    expect(planRepair(team.entries)).toEqual([]);
  });

  it('a late result changes nothing after a person answered that the call failed', () => {
    const team = ToolTeam.calling('risky');
    const tool = team.tool('risky');
    team.crash();
    team.answerApproval('risky', 'failed');
    const before = team.shown();
    team.finish(tool, 'it was sent');
    expect(team.last('note').content).toContain('it was sent');
    expect(team.shown()).toEqual(before);
  });

  it('a late result leaves a pending approval to the person', () => {
    const team = ToolTeam.calling('risky');
    const tool = team.tool('risky');
    team.crash();
    team.finish(tool, 'it was sent');
    expect(team.last('note').content).toContain('it was sent');
    expect(team.pending()).toEqual(['risky']);
    team.answerApproval('risky', 'result', { result: 'sent' });
    expect(team.shown()).toEqual(['sent']);
  });

  it('L18: a late result is in no view', () => {
    const { team, tool } = stoppedInTheMiddle('risky');
    team.finish(tool, 'it was sent');
    team.do({ type: 'resume', agent: null, by: PERSON });
    team.post('and?', { to: ['pm', 'dev'] });
    for (const agent of ['pm', 'dev'])
      expect(JSON.stringify(messagesOf(team.view(agent)))).not.toContain('it was sent');
  });

  it('a large late result keeps its file under the same id', () => {
    const { team, tool } = stoppedInTheMiddle('risky');
    const { agent, turnId, call } = tool;
    const large = { id: 'big', fullOutputPath: '@state/logs/tool-results/demo/big.json' };
    const report = {
      type: 'tool-finished',
      agent,
      turnId,
      call,
      duration: 1,
      result: 'the beginning',
    } as const;
    team.do({ ...report, ...large });
    expect(team.last('note')).toMatchObject(large);
  });

  it('TURNS-3: a late result is kept once, however often it is reported', () => {
    const { team, tool } = stoppedInTheMiddle('risky');
    for (const result of ['half \ud800', 'half \ud800', 'other', 'half \ud800']) team.finish(tool, result);
    expect(typed(team.entries, 'note').length).toBe(2);
  });

  it.each<[string, Partial<RunTool>]>([
    ['of another agent', { agent: 'dev' }],
    ['of another turn', { turnId: 'another' }],
    ['of no call', { call: { index: 0, position: 0 } }],
    ['of a position that was not called', { call: { index: 2, position: 7 } }],
  ])('TURNS-3: a late result %s is not kept', (_, other) => {
    const { team, tool } = stoppedInTheMiddle('risky');
    expect(tool.call.index).toBe(2);
    const decision = team.finish({ ...tool, ...other }, 'it was sent');
    expect([decision.reply.kind, decision.entries]).toEqual(['stale', []]);
  });

  it('TURNS-3: a late result of a call that never started is not kept', () => {
    const team = ToolTeam.calling('safe', 'gated');
    const safe = team.tool('safe');
    team.do({ type: 'stop', agent: null, by: PERSON });
    team.done('safe');
    const decision = team.finish({ ...safe, call: { ...safe.call, position: 1 } }, 'it was sent');
    expect([decision.reply.kind, decision.entries]).toEqual(['stale', []]);
  });
});
