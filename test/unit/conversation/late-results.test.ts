import { describe, expect, it } from 'vitest';
import { planRepair } from '../../../src/conversation/index.ts';
import { typed } from './life.ts';
import { PERSON } from './team.ts';
import { ToolTeam } from './tool-life.ts';
import { messagesOf, type RunTool } from './world.ts';

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
