import { describe, expect, it } from 'vitest';
import { Conversation, type Entry } from '../../../src/conversation/index.ts';
import { typed } from './life.ts';
import { PERSON } from './team.ts';
import { ToolTeam } from './tool-life.ts';

/** Replaces the log by one without risks, as an earlier daemon wrote it. */
function removeRisks(team: ToolTeam): void {
  const log = team.entries.map((entry): Entry => {
    const { risks, ...rest } = entry as Entry & { risks?: unknown };
    return rest as Entry;
  });
  team.conversation = new Conversation(team.rules, log);
}

const codes = (team: ToolTeam) => team.shown().map((shown) => JSON.parse(shown ?? '{}').error?.code);

describe('the risk of a call', () => {
  it('L11: the risk of a call is in the entry that requests it, by position', () => {
    const team = ToolTeam.calling('safe', 'risky', 'gated', 'unknown', ['ask', { question: 'why?' }]);
    const [entry] = typed(team.entries, 'message').filter((message) => message.tool_calls);
    expect(entry?.risks).toEqual(['safe', 'risky', 'risky', null, null]);
  });

  it('an entry without a runnable call has no risks', () => {
    const team = ToolTeam.calling('unknown', ['ask', { question: 'why?' }]);
    const [entry] = typed(team.entries, 'message').filter((message) => message.tool_calls);
    expect(entry && 'risks' in entry).toBe(false);
  });

  it('L11: a policy that makes everything safe changes no recorded risk: a risky call runs alone, and a crash requests an approval', () => {
    const team = ToolTeam.calling('risky1', 'risky2', 'safe');
    team.judge.policy = 'run everything';
    team.done('risky1');
    expect(team.running()).toEqual(['risky2']);
    expect(team.starts('risky2')[0]?.risk).toBe('risky');
    team.crash();
    expect([team.running(), team.pending()]).toEqual([[], ['risky2']]);
  });

  it('L11: a crash between request and start releases no call', () => {
    const team = ToolTeam.calling('safe1', 'risky1', 'safe2', 'risky2');
    team.judge.policy = 'run everything';
    team.crash();
    expect(team.running()).toEqual(['safe1']);
    team.done('safe1');
    expect(team.running()).toEqual(['risky1']);
  });

  it('a call that was safe and now needs an approval gets a request before it starts', () => {
    const team = ToolTeam.calling('risky', 'safe');
    team.judge.policy = 'ask everything';
    team.done('risky');
    expect([team.running(), team.pending()]).toEqual([[], ['safe']]);
    expect(team.last('approval-requested').mayHaveRun).toBe(false);
    team.answerApproval('safe', 'approve');
    expect(team.running()).toEqual(['safe']); // An approval that was given is not requested again.
    team.crash();
    expect([team.running(), team.pending()]).toEqual([[], ['safe']]);
  });

  it('a call that was safe at the start and is risky now does not run again without an approval', () => {
    const team = ToolTeam.calling('safe');
    team.judge.policy = 'ask everything';
    expect(team.crash().reply).toMatchObject({ count: { retried: 0, unknown: 1 } });
    expect([team.running(), team.pending()]).toEqual([[], ['safe']]);
    expect(team.last('approval-requested').mayHaveRun).toBe(true);
    team.answerApproval('safe', 'rerun');
    expect(team.starts('safe').map((entry) => entry.risk)).toEqual(['safe', 'risky']);
  });

  it('in a log without risks every call counts as risky, except for calls that had started', () => {
    const waits = ToolTeam.calling('risky', 'safe1', 'safe2');
    removeRisks(waits);
    waits.done('risky');
    expect(waits.running()).toEqual(['safe1']);
    const runs = ToolTeam.calling('safe');
    removeRisks(runs);
    runs.crash();
    expect([runs.running(), runs.pending()]).toEqual([['safe'], []]);
  });
});

describe('a call that became forbidden', () => {
  it('a call that became forbidden does not run though a person approves it', () => {
    const team = ToolTeam.calling('gated');
    team.judge.policy = 'forbid everything';
    team.answerApproval('gated', 'approve');
    expect([team.running(), codes(team)]).toEqual([[], ['FORBIDDEN']]);
  });

  it('a call that became forbidden does not run though it was approved before its position was reached', () => {
    const team = ToolTeam.calling('gated1', 'gated2');
    team.answerApproval('gated2', 'approve');
    team.judge.policy = 'forbid everything';
    team.crash();
    team.answerApproval('gated1', 'deny');
    expect([team.running(), codes(team)]).toEqual([[], ['DENIED', 'FORBIDDEN']]);
  });

  it.each([
    ['risky', 'rerun'],
    ['safe', null],
  ] as const)('L12: a started call that became forbidden has an unknown outcome: %s', (name, word) => {
    const team = ToolTeam.calling(name);
    team.judge.policy = 'forbid everything';
    expect(team.crash().reply).toMatchObject({ count: { repaired: 0, retried: 0, unknown: 1 } });
    if (word) team.answerApproval(name, word);
    expect([team.running(), codes(team)]).toEqual([[], ['FORBIDDEN']]);
    expect(team.result(name)).toContain('unknown');
  });

  it('a call that became forbidden before its start has no unknown outcome', () => {
    const team = ToolTeam.calling('risky', 'safe');
    team.judge.policy = 'forbid everything';
    team.done('risky');
    expect(team.result('safe')).not.toContain('unknown');
    team.do({ type: 'stop', agent: null, by: PERSON });
  });
});
