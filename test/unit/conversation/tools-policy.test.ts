import { describe, expect, it } from 'vitest';
import { Conversation, checkLaws, type Entry } from '../../../src/conversation/index.ts';
import { typed } from './life.ts';
import { PERSON } from './team-core.ts';
import { ToolCore } from './tool-core.ts';

/** Replaces the log by one without risks, as an earlier daemon wrote it. */
function removeRisks(core: ToolCore): void {
  const log = core.entries.map((entry): Entry => {
    const { risks, ...rest } = entry as Entry & { risks?: unknown };
    return rest as Entry;
  });
  core.conversation = new Conversation(core.rules, log);
}

const codes = (core: ToolCore) => core.shown().map((shown) => JSON.parse(shown ?? '{}').error?.code);

describe('the risk of a call', () => {
  it('L11: the risk of a call is in the entry that requests it, by position', () => {
    const core = ToolCore.calling('safe', 'risky', 'gated', 'unknown', ['ask', { question: 'why?' }]);
    const [entry] = typed(core.entries, 'message').filter((message) => message.tool_calls);
    expect(entry?.risks).toEqual(['safe', 'risky', 'risky', null, null]);
  });

  it('an entry without a runnable call has no risks', () => {
    const core = ToolCore.calling('unknown', ['ask', { question: 'why?' }]);
    const [entry] = typed(core.entries, 'message').filter((message) => message.tool_calls);
    expect(entry && 'risks' in entry).toBe(false);
  });

  it('L11: a policy that makes everything safe changes no recorded risk: a risky call runs alone, and a crash requests an approval', () => {
    const core = ToolCore.calling('risky1', 'risky2', 'safe');
    core.judge.policy = 'run everything';
    core.done('risky1');
    expect(core.running()).toEqual(['risky2']);
    expect(core.starts('risky2')[0]?.risk).toBe('risky');
    core.crash();
    expect([core.running(), core.pending()]).toEqual([[], ['risky2']]);
  });

  it('L11: a crash between request and start releases no call', () => {
    const core = ToolCore.calling('safe1', 'risky1', 'safe2', 'risky2');
    core.judge.policy = 'run everything';
    core.crash();
    expect(core.running()).toEqual(['safe1']);
    core.done('safe1');
    expect(core.running()).toEqual(['risky1']);
  });

  it('a call that was safe and now needs an approval gets a request before it starts', () => {
    const core = ToolCore.calling('risky', 'safe');
    core.judge.policy = 'ask everything';
    core.done('risky');
    expect([core.running(), core.pending()]).toEqual([[], ['safe']]);
    expect(core.last('approval-requested').mayHaveRun).toBe(false);
    core.answerApproval('safe', 'approve');
    expect(core.running()).toEqual(['safe']); // An approval that was given is not requested again.
    core.crash();
    expect([core.running(), core.pending()]).toEqual([[], ['safe']]);
  });

  it('a call that was safe at the start and is risky now does not run again without an approval', () => {
    const core = ToolCore.calling('safe');
    core.judge.policy = 'ask everything';
    expect(core.crash().reply).toMatchObject({ count: { retried: 0, unknown: 1 } });
    expect([core.running(), core.pending()]).toEqual([[], ['safe']]);
    expect(core.last('approval-requested').mayHaveRun).toBe(true);
    core.answerApproval('safe', 'rerun');
    expect(core.starts('safe').map((entry) => entry.risk)).toEqual(['safe', 'risky']);
  });

  it('in a log without risks every call counts as risky, except for calls that had started', () => {
    const waits = ToolCore.calling('risky', 'safe1', 'safe2');
    removeRisks(waits);
    waits.done('risky');
    expect(waits.running()).toEqual(['safe1']);
    const runs = ToolCore.calling('safe');
    removeRisks(runs);
    runs.crash();
    expect([runs.running(), runs.pending()]).toEqual([['safe'], []]);
  });
});

describe('a call that became forbidden', () => {
  it('a call that became forbidden does not run though a person approves it', () => {
    const core = ToolCore.calling('gated');
    core.judge.policy = 'forbid everything';
    core.answerApproval('gated', 'approve');
    expect([core.running(), codes(core)]).toEqual([[], ['FORBIDDEN']]);
  });

  it('a call that became forbidden does not run though it was approved before its position was reached', () => {
    const core = ToolCore.calling('gated1', 'gated2');
    core.answerApproval('gated2', 'approve');
    core.judge.policy = 'forbid everything';
    core.crash();
    core.answerApproval('gated1', 'deny');
    expect([core.running(), codes(core)]).toEqual([[], ['DENIED', 'FORBIDDEN']]);
  });

  it.each([
    ['risky', 'rerun'],
    ['safe', null],
  ] as const)('L12: a started call that became forbidden has an unknown outcome: %s', (name, word) => {
    const core = ToolCore.calling(name);
    core.judge.policy = 'forbid everything';
    expect(core.crash().reply).toMatchObject({ count: { repaired: 0, retried: 0, unknown: 1 } });
    if (word) core.answerApproval(name, word);
    expect([core.running(), codes(core)]).toEqual([[], ['FORBIDDEN']]);
    expect(core.result(name)).toContain('unknown');
  });

  it('an approved call runs although the one before it became forbidden, and a later one waits for a person', () => {
    const core = new ToolCore();
    core.judge.policy = 'ask everything';
    core.post('go');
    core.act('pm', 'working', ['unknown'], ['safe1'], ['safe2']);
    core.answerApproval('safe1', 'approve');
    core.judge.policy = 'by name';
    core.answerApproval('unknown', 'approve');
    expect(core.result('unknown')).toContain('TOOL_NOT_AVAILABLE');
    expect([core.running(), core.pending()]).toEqual([['safe1'], ['safe2']]);
    expect(checkLaws(core.entries)).toEqual([]);
  });

  it('a call that became forbidden before its start has no unknown outcome', () => {
    const core = ToolCore.calling('risky', 'safe');
    core.judge.policy = 'forbid everything';
    core.done('risky');
    expect(core.result('safe')).not.toContain('unknown');
    core.do({ type: 'stop', agent: null, by: PERSON });
  });
});
