import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkLaws, visitsOf, type Workflow } from '../../../src/conversation/index.ts';
import { typed } from './life.ts';
import { kinds, PERSON, SIDE, Team } from './team.ts';

const done = (outcome: string, summary = `${outcome}.`) => ['complete_node', { outcome, summary }] as const;

function running(options: ConstructorParameters<typeof Team>[0] = {}, workflow: Workflow = SIDE): Team {
  const team = new Team({ slugs: ['pm', 'dev', 'qa', 'doc'], workflows: [workflow], ...options });
  team.do({ type: 'set-mode', mode: 'run', workflow: workflow.id, input: 'a clock', by: PERSON });
  return team;
}

/** Its branches run. */
function forked(options: ConstructorParameters<typeof Team>[0] = {}, workflow?: Workflow): Team {
  const team = running(options, workflow);
  team.act('pm', null, done('planned'));
  return team;
}

const nodes = (team: Team) =>
  typed(team.entries, 'node-entered').map(({ node, branch, to }) => [node, branch, to?.[0]]);

describe('nodes that run side by side', () => {
  it('an outcome forks the run in one append, and the node after both begins when the last branch comes', () => {
    const team = running();
    const { entries, effects } = team.act('pm', null, done('planned', 'the plan'));
    expect(kinds(entries)).toEqual([
      ...['assistant pm', 'tool pm', 'node-entered', 'node-entered', 'title-set', 'turn-ended pm completed'],
      ...['turn-started dev', 'turn-started doc'],
    ]);
    expect(effects.map(({ agent }) => agent)).toEqual(['dev', 'doc']);
    expect(team.result('complete_node')).toBe('The run continues at build and describe, side by side.');
    expect(team.conversation.state.run).toMatchObject({
      ...{ node: 'build', agent: 'dev' },
      branches: [
        { branch: 'build', node: 'build', agent: 'dev' },
        { branch: 'describe', node: 'describe', agent: 'doc' },
      ],
    });
    team.act('doc', null, done('described', 'the words'));
    expect(team.result('complete_node')).toBe('Your branch of the run waits at check for build.');
    expect(team.callOf('dev')).toBeDefined();
    team.act('dev', null, done('built', 'the thing'));
    expect(nodes(team)).toEqual([
      ['plan', undefined, undefined],
      ['build', 'build', 'dev'],
      ['describe', 'describe', 'doc'],
      ['check', 'describe', undefined],
      ['check', undefined, 'qa'],
    ]);
    expect(team.conversation.state.run).toMatchObject({
      node: 'check',
      before: [
        { node: 'describe', outcome: 'described', summary: 'the words' },
        { node: 'build', outcome: 'built', summary: 'the thing' },
      ],
    });
    expect(team.conversation.state.run?.branches).toBeUndefined();
    team.act('qa', null, done('passed'));
    expect(team.conversation.state).toMatchObject({ mode: 'agent', run: null });
  });

  it('a branch can have several nodes, and the whole may be repeated', () => {
    const team = forked();
    team.act('dev', null, done('blocked'));
    expect(team.conversation.state.run?.branches?.[0]).toMatchObject({ node: 'unblock', agent: 'pm' });
    team.act('doc', null, done('described'));
    team.act('pm', null, done('unblocked'));
    team.act('qa', null, done('failed'));
    team.act('pm', null, done('planned'));
    team.act('dev', null, done('built'));
    team.act('doc', null, done('described'));
    team.act('qa', null, done('passed'));
    expect(typed(team.entries, 'run-ended')).toMatchObject([{ outcome: 'passed' }]);
    expect(typed(team.entries, 'node-entered').map(({ hops }) => hops)).toEqual([
      ...[0, 1, 1, 2, 2, 3, 4, 5, 5, 6, 6],
    ]);
  });

  it('a run with branches continues after a crash at any append: each node begins once', () => {
    const script = ['pm planned', 'doc described', 'dev blocked', 'pm unblocked', 'qa passed'];
    for (let cut = 0; cut <= script.length; cut++) {
      const team = running();
      for (const [at, step] of script.entries()) {
        if (at === cut) team.crash();
        const [agent = '', outcome = ''] = step.split(' ');
        team.act(agent, null, done(outcome));
      }
      expect(nodes(team).flatMap(([node, , to]) => (to ? [node] : []))).toEqual([
        ...['build', 'describe', 'unblock', 'check'],
      ]);
      expect(team.conversation.state.run).toBeNull();
    }
  });

  it('a branch that leads to the end ends the run, and the turns of the others', () => {
    const team = forked();
    const { effects } = team.act('dev', null, done('dropped'));
    expect(effects).toMatchObject([{ type: 'abort-turn', agent: 'doc' }]);
    expect(typed(team.entries, 'run-ended')).toMatchObject([{ outcome: 'dropped' }]);
    team.act('doc', null, done('described'));
    expect(team.outcomes('doc')).toEqual(['aborted']);
    expect(nodes(team)).toHaveLength(3);
  });

  it('a branch whose turn fails stays where it is, the other one goes on, and a message continues it', () => {
    const team = forked();
    team.fail(team.callOf('dev'), '');
    team.act('doc', null, done('described'));
    expect(team.conversation.state.run).toMatchObject({ node: 'build', agent: 'dev' });
    expect(team.post('try again').reply).toMatchObject({ agents: ['dev'] });
    team.act('dev', null, done('built'));
    expect(team.callOf('qa')).toBeDefined();
  });

  it('a stop holds all branches, and a resume continues each at its node', () => {
    const team = forked();
    team.do({ type: 'stop', agent: null, by: PERSON });
    team.drain();
    team.do({ type: 'resume', agent: null, by: PERSON });
    expect(team.conversation.state.run?.branches).toHaveLength(2);
    team.post('go on', { to: ['dev', 'doc'] });
    team.act('dev', null, done('built'));
    team.act('doc', null, done('described'));
    expect(team.callOf('qa')).toBeDefined();
  });

  it('no branch is entered while an agent of one is stopped, and none beyond the limit of hops', () => {
    const team = running();
    team.do({ type: 'stop', agent: 'doc', by: PERSON });
    team.act('pm', null, done('planned'));
    expect(team.result('complete_node')).toContain('doc, the agent of describe, is stopped');
    expect(nodes(team)).toHaveLength(1);
    const short = forked({ hopsPerTrigger: 1 });
    short.act('doc', null, done('described'));
    expect(short.result('complete_node')).toContain('HOP_LIMIT');
  });

  it('an agent reads the brief of its own branch, and the results of all branches where they meet', () => {
    const team = forked();
    const brief = (agent: string) => JSON.stringify(team.request(agent));
    expect(brief('doc')).toContain('describe it');
    expect(brief('dev')).toContain('build it');
    expect(brief('doc')).not.toContain('build it');
    team.act('doc', null, done('described'));
    team.act('dev', null, done('built'));
    expect(brief('qa')).toContain('BRANCH describe WAITS AT check');
  });

  const step = fc.record({
    kind: fc.constantFrom('done', 'done', 'done', 'done', 'talk', 'fail', 'crash', 'stop', 'post'),
    pick: fc.nat({ max: 11 }),
  });

  it('whatever happens, each entered node has one turn that began for it, and branches meet once for each fork', () => {
    let meetings = 0;
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40, size: 'max' }), (steps) => {
        const team = running({ hopsPerTrigger: 100 });
        for (const { kind, pick } of steps) {
          const visits = visitsOf(team.conversation.state.run);
          const visit = visits[pick % Math.max(1, visits.length)];
          const agent = visit?.agent ?? 'pm';
          const call = team.calls.find((one) => one.agent === agent);
          if (kind === 'crash') team.crash();
          else if (kind === 'post') team.post('go on', { to: [agent] });
          else if (kind === 'stop') {
            team.do({ type: 'stop', agent, by: PERSON });
            team.drain();
            team.do({ type: 'resume', agent, by: PERSON });
          } else if (!call) continue;
          else if (kind === 'fail') team.fail(call, '');
          else if (kind === 'talk') team.actOn(call, 'hm', []);
          else {
            const outcomes = Object.keys(SIDE.nodes[visit?.node ?? '']?.outcomes ?? { planned: '' });
            team.actOn(call, null, [done(outcomes[pick % outcomes.length] ?? '')]);
          }
          const { run } = team.conversation.state;
          expect([undefined, 2]).toContain(run?.branches?.length);
          expect(visitsOf(run).length).toBeLessThanOrEqual(2);
        }
        const entered = typed(team.entries, 'node-entered');
        const forks = entered.filter(({ node }) => node === 'describe').length;
        const met = entered.filter(({ node, to }) => node === 'check' && to).length;
        const isApart = team.conversation.state.run?.branches !== undefined;
        const dropped = typed(team.entries, 'run-ended').filter(
          ({ outcome }) => outcome === 'dropped',
        ).length;
        expect(forks).toBe(met + dropped + (isApart ? 1 : 0));
        const begun = typed(team.entries, 'turn-started').filter(({ resumed }) => !resumed);
        for (const { index, to } of entered)
          if (to)
            expect(begun.filter(({ trigger }) => trigger.includes(index)).length).toBeLessThanOrEqual(1);
        expect(checkLaws(team.entries)).toEqual([]);
        meetings += met;
      }),
      { numRuns: 150 },
    );
    expect(meetings).toBeGreaterThan(0);
  });
});
