import { describe, expect, it } from 'vitest';
import { checkLaws, pendingApprovals } from '../../../src/conversation/index.ts';
import { typed } from './life.ts';
import { kinds, PERSON } from './team.ts';
import { ToolTeam } from './tool-life.ts';

/** pm called `gated`, and a person allowed it for good. */
function granted(): ToolTeam {
  const team = ToolTeam.calling('gated');
  team.answerApproval('gated', 'approve', { always: true });
  team.done('gated');
  return team;
}

const answers = (team: ToolTeam) =>
  typed(team.entries, 'approval-answered').map(({ answer, always, grant }) => ({ answer, always, grant }));

describe('GRANTS-1: an approval that also allows later calls', () => {
  it('later calls that it covers run at once, each with a request and an answer that names the grant', () => {
    const team = granted();
    const grant = team.last('approval-answered').index;
    const { entries } = team.act('pm', 'again', ['gated', { other: 'arguments' }]);
    expect(kinds(entries)).toEqual([
      'assistant pm',
      'approval-requested',
      'approval-answered',
      'tool-started',
    ]);
    expect(team.last('approval-requested')).toMatchObject({ covers: 'calls of gated' });
    expect(team.last('approval-answered')).toMatchObject({ answer: 'approve', grant, author: PERSON });
    team.done('gated');
    expect(answers(team)).toEqual([
      { answer: 'approve', always: true, grant: undefined },
      { answer: 'approve', always: undefined, grant },
    ]);
    expect(team.starts('gated')).toHaveLength(2);
    expect(checkLaws(team.entries)).toEqual([]);
  });

  it('a call that needs its approval only since a policy changed runs by it, too', () => {
    const team = granted();
    const judge = team.judge.judge.bind(team.judge);
    let isAsked = false;
    team.judge.judge = (call) =>
      call.name === 'gated' && !isAsked ? { kind: 'run', risk: 'risky' } : judge(call);
    team.act('pm', 'again', ['risky'], ['gated']);
    isAsked = true;
    team.done('risky');
    expect(team.running()).toEqual(['gated']);
    expect(checkLaws(team.entries)).toEqual([]);
  });

  const OTHERS: Readonly<Record<string, (team: ToolTeam) => unknown>> = {
    'another tool': (team) => team.act('pm', 'again', ['gated2']),
    'another agent'(team) {
      team.act('pm', 'done');
      team.posted('go', { to: ['dev'] }).act('dev', 'mine', ['gated']);
    },
    'what a rule forbids'(team) {
      team.judge.policy = 'forbid everything';
      team.act('pm', 'again', ['gated']);
    },
  };
  it.each(Object.entries(OTHERS))('it does not cover %s', (_, act) => {
    const team = granted();
    act(team);
    expect(team.running()).toEqual([]);
    expect(answers(team)).toHaveLength(1);
  });

  it('a stop of the agent ends it', () => {
    const team = granted();
    team.do({ type: 'stop', agent: 'pm', by: PERSON });
    team.do({ type: 'resume', agent: 'pm', by: PERSON });
    team.posted('go', { to: ['pm'] }).act('pm', 'again', ['gated']);
    expect(pendingApprovals(team.conversation.state)).toHaveLength(1);
  });

  it('GRANTS-2: who gave it may not release a call of an own request by it', () => {
    const team = granted();
    Object.assign(team.rules, { ownRequests: false });
    team.act('pm', 'done');
    team.posted('go', { to: ['pm'], by: PERSON.id }).act('pm', 'again', ['gated']);
    expect(pendingApprovals(team.conversation.state)).toHaveLength(1);
  });

  it('a call that may have run is never covered', () => {
    const team = granted();
    team.act('pm', 'again', ['gated']);
    team.crash();
    expect(pendingApprovals(team.conversation.state)).toMatchObject([{ mayHaveRun: true }]);
    expect(team.last('approval-requested').covers).toBeUndefined();
  });

  it.each([
    ['deny', 'gated'],
    ['approve', 'uncovered'],
  ] as const)('always does not fit the answer %s to a call of %s', (answer, name) => {
    const team = new ToolTeam().posted('go');
    if (name === 'uncovered') team.judge.policy = 'ask everything';
    team.act('pm', 'working', ['gated']);
    const reply = team.answerApproval('gated', answer, { always: true }).reply;
    expect(reply).toMatchObject({ kind: 'refused', refusal: { code: 'ANSWER_DOES_NOT_FIT' } });
  });
});
