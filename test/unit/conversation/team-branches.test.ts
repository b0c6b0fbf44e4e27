import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkLaws, visitsOf, type Workflow } from '../../../src/conversation/index.ts';
import { typed } from './life.ts';
import { kinds, PERSON, SIDE, TeamCore } from './team-core.ts';

const done = (outcome: string, summary = `${outcome}.`) => ['complete_node', { outcome, summary }] as const;

function running(
  options: ConstructorParameters<typeof TeamCore>[0] = {},
  workflow: Workflow = SIDE,
): TeamCore {
  const core = new TeamCore({ slugs: ['pm', 'dev', 'qa', 'doc'], workflows: [workflow], ...options });
  core.do({ type: 'set-mode', mode: 'run', workflow: workflow.id, input: 'a clock', by: PERSON });
  return core;
}

/** Its branches run. */
function forked(options: ConstructorParameters<typeof TeamCore>[0] = {}): TeamCore {
  const core = running(options);
  core.act('pm', null, done('planned'));
  return core;
}

const nodes = (core: TeamCore) =>
  typed(core.entries, 'node-entered').map(({ node, branch, to }) => [node, branch, to?.[0]]);

describe('nodes that run side by side', () => {
  it('an outcome forks the run in one append, and the node after both begins when the last branch comes', () => {
    const core = running();
    const { entries, effects } = core.act('pm', null, done('planned', 'the plan'));
    expect(kinds(entries)).toEqual([
      ...['assistant pm', 'tool pm', 'node-entered', 'node-entered', 'title-set', 'turn-ended pm completed'],
      ...['turn-started dev', 'turn-started doc'],
    ]);
    expect(effects.map(({ agent }) => agent)).toEqual(['dev', 'doc']);
    expect(core.result('complete_node')).toBe('The run continues at build and describe, side by side.');
    expect(core.conversation.state.run).toMatchObject({
      ...{ node: 'build', agent: 'dev' },
      branches: [
        { branch: 'build', node: 'build', agent: 'dev' },
        { branch: 'describe', node: 'describe', agent: 'doc' },
      ],
    });
    core.act('doc', null, done('described', 'the words'));
    expect(core.result('complete_node')).toBe('Your branch of the run waits at check for build.');
    expect(core.callOf('dev')).toBeDefined();
    core.act('dev', null, done('built', 'the thing'));
    expect(nodes(core)).toEqual([
      ['plan', undefined, undefined],
      ['build', 'build', 'dev'],
      ['describe', 'describe', 'doc'],
      ['check', 'describe', undefined],
      ['check', undefined, 'qa'],
    ]);
    expect(core.conversation.state.run).toMatchObject({
      node: 'check',
      before: [
        { node: 'describe', outcome: 'described', summary: 'the words' },
        { node: 'build', outcome: 'built', summary: 'the thing' },
      ],
    });
    expect(core.conversation.state.run?.branches).toBeUndefined();
    core.act('qa', null, done('passed'));
    expect(core.conversation.state).toMatchObject({ mode: 'agent', run: null });
  });

  it('a branch can have several nodes, and the whole may be repeated', () => {
    const core = forked();
    core.act('dev', null, done('blocked'));
    expect(core.conversation.state.run?.branches?.[0]).toMatchObject({ node: 'unblock', agent: 'pm' });
    core.act('doc', null, done('described'));
    core.act('pm', null, done('unblocked'));
    core.act('qa', null, done('failed'));
    core.act('pm', null, done('planned'));
    core.act('dev', null, done('built'));
    core.act('doc', null, done('described'));
    core.act('qa', null, done('passed'));
    expect(typed(core.entries, 'run-ended')).toMatchObject([{ outcome: 'passed' }]);
    expect(typed(core.entries, 'node-entered').map(({ hops }) => hops)).toEqual([
      ...[0, 1, 1, 2, 2, 3, 4, 5, 5, 6, 6],
    ]);
  });

  it('a run with branches continues after a crash at any append: each node begins once', () => {
    const script = ['pm planned', 'doc described', 'dev blocked', 'pm unblocked', 'qa passed'];
    for (let cut = 0; cut <= script.length; cut++) {
      const core = running();
      for (const [at, step] of script.entries()) {
        if (at === cut) core.crash();
        const [agent = '', outcome = ''] = step.split(' ');
        core.act(agent, null, done(outcome));
      }
      expect(nodes(core).flatMap(([node, , to]) => (to ? [node] : []))).toEqual([
        ...['build', 'describe', 'unblock', 'check'],
      ]);
      expect(core.conversation.state.run).toBeNull();
    }
  });

  it('a branch that leads to the end ends the run, and the turns of the others', () => {
    const core = forked();
    const { effects } = core.act('dev', null, done('dropped'));
    expect(effects).toMatchObject([{ type: 'abort-turn', agent: 'doc' }]);
    expect(typed(core.entries, 'run-ended')).toMatchObject([{ outcome: 'dropped' }]);
    core.act('doc', null, done('described'));
    expect(core.outcomes('doc')).toEqual(['aborted']);
    expect(nodes(core)).toHaveLength(3);
  });

  it('a branch whose turn fails stays where it is, the other one goes on, and a message continues it', () => {
    const core = forked();
    core.fail(core.callOf('dev'), '');
    core.act('doc', null, done('described'));
    expect(core.conversation.state.run).toMatchObject({ node: 'build', agent: 'dev' });
    expect(core.post('try again').reply).toMatchObject({ agents: ['dev'] });
    core.act('dev', null, done('built'));
    expect(core.callOf('qa')).toBeDefined();
  });

  it('RUN-BRANCH-1 a message that names no agent is for the branch that waits for one, before those at work and stopped ones', () => {
    const core = forked();
    expect(core.post('a word').reply).toMatchObject({ agents: ['dev'] }); // both work
    core.actOn(core.callOf('doc'), 'Which style?', []);
    expect(core.post('the short one').reply).toMatchObject({ agents: ['doc'] });
    core.actOn(core.callOf('doc'), 'And which length?', []);
    core.do({ type: 'stop', agent: 'doc', by: PERSON });
    expect(core.post('and now?').reply).toMatchObject({ agents: ['dev'] });
  });

  it('a stop holds all branches, and a resume continues each at its node', () => {
    const core = forked();
    core.do({ type: 'stop', agent: null, by: PERSON });
    core.drain();
    core.do({ type: 'resume', agent: null, by: PERSON });
    expect(core.conversation.state.run?.branches).toHaveLength(2);
    core.post('go on', { to: ['dev', 'doc'] });
    core.act('dev', null, done('built'));
    core.act('doc', null, done('described'));
    expect(core.callOf('qa')).toBeDefined();
  });

  it('no branch is entered while an agent of one is stopped, and none beyond the limit of hops', () => {
    const core = running();
    core.do({ type: 'stop', agent: 'doc', by: PERSON });
    core.act('pm', null, done('planned'));
    expect(core.result('complete_node')).toContain('doc, the agent of describe, is stopped');
    expect(nodes(core)).toHaveLength(1);
    const short = forked({ hopsPerTrigger: 1 });
    short.act('doc', null, done('described'));
    expect(short.result('complete_node')).toContain('HOP_LIMIT');
  });

  it('an agent reads the brief of its own branch, and the results of all branches where they meet', () => {
    const core = forked();
    const brief = (agent: string) => JSON.stringify(core.request(agent));
    expect(brief('doc')).toContain('describe it');
    expect(brief('dev')).toContain('build it');
    expect(brief('doc')).not.toContain('build it');
    core.act('doc', null, done('described'));
    core.act('dev', null, done('built'));
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
        const core = running({ hopsPerTrigger: 100 });
        for (const { kind, pick } of steps) {
          const visits = visitsOf(core.conversation.state.run);
          const visit = visits[pick % Math.max(1, visits.length)];
          const agent = visit?.agent ?? 'pm';
          const call = core.calls.find((one) => one.agent === agent);
          if (kind === 'crash') core.crash();
          else if (kind === 'post') core.post('go on', { to: [agent] });
          else if (kind === 'stop') {
            core.do({ type: 'stop', agent, by: PERSON });
            core.drain();
            core.do({ type: 'resume', agent, by: PERSON });
          } else if (!call) continue;
          else if (kind === 'fail') core.fail(call, '');
          else if (kind === 'talk') core.actOn(call, 'hm', []);
          else {
            const outcomes = Object.keys(SIDE.nodes[visit?.node ?? '']?.outcomes ?? { planned: '' });
            core.actOn(call, null, [done(outcomes[pick % outcomes.length] ?? '')]);
          }
          const { run } = core.conversation.state;
          expect([undefined, 2]).toContain(run?.branches?.length);
          expect(visitsOf(run).length).toBeLessThanOrEqual(2);
        }
        const entered = typed(core.entries, 'node-entered');
        const forks = entered.filter(({ node }) => node === 'describe').length;
        const met = entered.filter(({ node, to }) => node === 'check' && to).length;
        const isApart = core.conversation.state.run?.branches !== undefined;
        const dropped = typed(core.entries, 'run-ended').filter(
          ({ outcome }) => outcome === 'dropped',
        ).length;
        expect(forks).toBe(met + dropped + (isApart ? 1 : 0));
        const begun = typed(core.entries, 'turn-started').filter(({ resumed }) => !resumed);
        for (const { index, to } of entered)
          if (to)
            expect(begun.filter(({ trigger }) => trigger.includes(index)).length).toBeLessThanOrEqual(1);
        expect(checkLaws(core.entries)).toEqual([]);
        meetings += met;
      }),
      { numRuns: 150 },
    );
    expect(meetings).toBeGreaterThan(0);
  });
});
