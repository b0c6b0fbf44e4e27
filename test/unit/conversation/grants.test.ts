import { describe, expect, it } from 'vitest';
import { checkLaws, pendingApprovals } from '../../../src/conversation/index.ts';
import { typed } from './life.ts';
import { kinds, PERSON } from './team-core.ts';
import { ToolCore } from './tool-core.ts';

/** pm called `gated`, and a person allowed it for good. */
function granted(): ToolCore {
  const core = ToolCore.calling('gated');
  core.answerApproval('gated', 'approve', { always: true });
  core.done('gated');
  return core;
}

const answers = (core: ToolCore) =>
  typed(core.entries, 'approval-answered').map(({ answer, always, grant }) => ({ answer, always, grant }));

describe('GRANTS-1: an approval that also allows later calls', () => {
  it('later calls that it covers run at once, each with a request and an answer that names the grant', () => {
    const core = granted();
    const grant = core.last('approval-answered').index;
    const { entries } = core.act('pm', 'again', ['gated', { other: 'arguments' }]);
    expect(kinds(entries)).toEqual([
      'assistant pm',
      'approval-requested',
      'approval-answered',
      'tool-started',
    ]);
    expect(core.last('approval-requested')).toMatchObject({ covers: 'calls of gated' });
    expect(core.last('approval-answered')).toMatchObject({ answer: 'approve', grant, author: PERSON });
    core.done('gated');
    expect(answers(core)).toEqual([
      { answer: 'approve', always: true, grant: undefined },
      { answer: 'approve', always: undefined, grant },
    ]);
    expect(core.starts('gated')).toHaveLength(2);
    expect(checkLaws(core.entries)).toEqual([]);
  });

  it('a call that needs its approval only since a policy changed runs by it, too', () => {
    const core = granted();
    const judge = core.judge.judge.bind(core.judge);
    let isAsked = false;
    core.judge.judge = (call) =>
      call.name === 'gated' && !isAsked ? { kind: 'run', risk: 'risky' } : judge(call);
    core.act('pm', 'again', ['risky'], ['gated']);
    isAsked = true;
    core.done('risky');
    expect(core.running()).toEqual(['gated']);
    expect(checkLaws(core.entries)).toEqual([]);
  });

  const OTHERS: Readonly<Record<string, (core: ToolCore) => unknown>> = {
    'another tool': (core) => core.act('pm', 'again', ['gated2']),
    'another agent'(core) {
      core.act('pm', 'done');
      core.posted('go', { to: ['dev'] }).act('dev', 'mine', ['gated']);
    },
    'what a rule forbids'(core) {
      core.judge.policy = 'forbid everything';
      core.act('pm', 'again', ['gated']);
    },
  };
  it.each(Object.entries(OTHERS))('it does not cover %s', (_, act) => {
    const core = granted();
    act(core);
    expect(core.running()).toEqual([]);
    expect(answers(core)).toHaveLength(1);
  });

  it('a stop of the agent ends it', () => {
    const core = granted();
    core.do({ type: 'stop', agent: 'pm', by: PERSON });
    core.do({ type: 'resume', agent: 'pm', by: PERSON });
    core.posted('go', { to: ['pm'] }).act('pm', 'again', ['gated']);
    expect(pendingApprovals(core.conversation.state)).toHaveLength(1);
  });

  it('GRANTS-2: who gave it may not release a call of an own request by it', () => {
    const core = granted();
    Object.assign(core.rules, { ownRequests: false });
    core.act('pm', 'done');
    core.posted('go', { to: ['pm'], by: PERSON.id }).act('pm', 'again', ['gated']);
    expect(pendingApprovals(core.conversation.state)).toHaveLength(1);
  });

  it('a call that may have run is never covered', () => {
    const core = granted();
    core.act('pm', 'again', ['gated']);
    core.crash();
    expect(pendingApprovals(core.conversation.state)).toMatchObject([{ mayHaveRun: true }]);
    expect(core.last('approval-requested').covers).toBeUndefined();
  });

  it.each([
    ['deny', 'gated'],
    ['approve', 'uncovered'],
  ] as const)('always does not fit the answer %s to a call of %s', (answer, name) => {
    const core = new ToolCore().posted('go');
    if (name === 'uncovered') core.judge.policy = 'ask everything';
    core.act('pm', 'working', ['gated']);
    const reply = core.answerApproval('gated', answer, { always: true }).reply;
    expect(reply).toMatchObject({ kind: 'refused', refusal: { code: 'ANSWER_DOES_NOT_FIT' } });
  });
});
