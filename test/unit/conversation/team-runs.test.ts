import { describe, expect, it } from 'vitest';
import { availableTools } from '../../../src/conversation/index.ts';
import { typed } from './life.ts';
import { kinds, PERSON, Team } from './team.ts';

const done = (outcome: string, summary = 'as said') => ['complete_node', { outcome, summary }] as const;

function running(workflow = 'ship-it', options: ConstructorParameters<typeof Team>[0] = {}): Team {
  const team = new Team(options);
  begin(team, workflow);
  return team;
}

function begin(team: Team, workflow: string) {
  return team.do({ type: 'set-mode', mode: 'run', workflow, input: 'build a clock', by: PERSON });
}

/** A run that entered the node of an agent whose tool is running. */
function atBusyNode(): Team {
  const team = new Team().posted('@dev go');
  team.act('dev', null, ['look']);
  begin(team, 'ship-it');
  team.act('pm', null, done('planned'));
  expect(team.conversation.state.run).toMatchObject({ node: 'build', agent: 'dev' });
  expect(team.conversation.state.agents.dev?.waiting.length).toBe(1);
  return team;
}

/** A conversation with one answered message of a person. */
function afterExchange(): Team {
  const team = new Team().posted('a clock would be nice');
  team.act('pm', 'it would');
  return team;
}

describe('a run', () => {
  it('a run that starts after other messages enters its first node with its input, in one append', () => {
    const team = afterExchange();
    const { entries, effects } = begin(team, 'ship-it');
    expect(kinds(entries)).toEqual([
      'mode-entered',
      'run-started',
      'node-entered',
      `user ${PERSON.id}`,
      'turn-started pm',
    ]);
    expect(entries[2]).toMatchObject({ node: 'plan', agent: 'pm', brief: 'make a plan' });
    expect(effects).toMatchObject([{ type: 'call-model', agent: 'pm' }]);
    team.act('pm', 'planning');
    expect(team.last('message')).toMatchObject({ mode: 'run', workflowId: 'ship-it' });
    expect(team.post('how far?').reply).toMatchObject({ agents: ['pm'] });
  });

  it('a run does not enter a node whose agent is stopped: complete_node is refused, and accepted after a resume', () => {
    const team = running();
    team.do({ type: 'stop', agent: 'dev', by: PERSON });
    team.act('pm', null, done('planned'));
    expect(team.result('complete_node')).toContain('AGENT_STOPPED');
    expect(team.result('complete_node')).toContain('dev, the agent of build, is stopped');
    expect(team.conversation.state.run).toMatchObject({ node: 'plan', agent: 'pm' });
    expect(team.callOf('pm')).toBeDefined(); // The agent can say so.
    team.do({ type: 'resume', agent: 'dev', by: PERSON });
    team.act('pm', null, done('planned'));
    expect(team.callOf('dev')).toBeDefined();
  });

  it('a run goes from node to node, loops back, and ends without a directive in later requests', () => {
    const team = running();
    team.act('pm', null, done('planned', 'the plan'));
    expect(team.conversation.state.run).toMatchObject({
      node: 'build',
      agent: 'dev',
      before: { outcome: 'planned', summary: 'the plan' },
    });
    expect(team.post('how far?', { delivery: 'queue' }).reply).toMatchObject({ agents: ['dev'] });
    team.act('dev', null, done('built'));
    team.act('dev', 'far');
    team.act('qa', null, done('failed', 'it broke'));
    team.act('dev', null, done('built'));
    const { entries } = team.act('qa', 'all good', done('passed'));
    expect(kinds(entries)).toEqual([
      'assistant qa',
      'tool qa',
      'run-ended',
      'mode-entered',
      'turn-ended qa completed',
    ]);
    expect(entries[2]).toMatchObject({ outcome: 'passed', summary: 'as said' });
    expect(team.conversation.state).toMatchObject({ mode: 'agent', run: null });
    expect(typed(team.entries, 'node-entered').map((entry) => [entry.node, entry.hops])).toEqual([
      ['plan', 0],
      ['build', 1],
      ['verify', 2],
      ['build', 3],
      ['verify', 4],
    ]);
    const card = team.rules.roster.agents.get('qa') ?? expect.unreachable();
    const setting = team.conversation.state.settings.at(-1) ?? expect.unreachable();
    expect(availableTools(card, setting, team.rules.workflows)).not.toContain('complete_node');
  });

  it('a run stays at its node when the outcome is unknown, and names the known outcomes', () => {
    for (const outcome of ['finished', 'constructor']) {
      const team = running();
      const { effects } = team.act('pm', null, done(outcome));
      expect(JSON.parse(team.result('complete_node'))).toEqual({
        error: { code: 'UNKNOWN_OUTCOME', message: `the outcomes of plan are planned; not ${outcome}` },
      });
      expect(effects).toMatchObject([{ agent: 'pm' }]);
      expect(team.conversation.state.run?.node).toBe('plan');
    }
  });

  it('a run gives complete_node to the agent of its node only, with the tools that the node allows', () => {
    const team = running();
    team.act('pm', null, done('planned'));
    team.act('dev', null, ['look'], ['delegate', { to: 'qa', request: 'x' }]);
    expect(team.result('delegate')).toContain('TOOL_NOT_AVAILABLE');
    team.post('@qa hello');
    team.act('qa', null, done('built'));
    expect(team.result('complete_node')).toContain('TOOL_NOT_AVAILABLE');
    expect(team.conversation.state.run?.node).toBe('build');
  });

  it('a run stops at the hop limit, which people see', () => {
    const team = running('ship-it', { hopsPerTrigger: 1 });
    team.act('pm', null, done('planned'));
    const { entries } = team.act('dev', null, done('built'));
    expect(kinds(entries)).toEqual(['assistant dev', 'limit-reached', 'tool dev']);
    expect(team.result('complete_node')).toContain('HOP_LIMIT');
  });

  it('a run may end at the hop limit, since its end starts no turn', () => {
    const team = running('talk', { hopsPerTrigger: 0 });
    team.act('pm', null, done('planned'));
    expect(team.last('run-ended').outcome).toBe('planned');
  });

  it('a run that starts during a turn is part of the next request of that turn', () => {
    const team = new Team().posted('go');
    team.act('pm', null, ['look']);
    team.do({ type: 'set-mode', mode: 'run', workflow: 'talk', by: PERSON });
    team.finish(team.tools[0] ?? expect.unreachable());
    team.act('pm', null, done('planned'));
    expect(team.last('run-ended').outcome).toBe('planned');
  });

  it('a run ends when the mode changes, and its node no longer belongs to an agent', () => {
    const team = running();
    const { entries } = team.do({ type: 'set-mode', mode: 'chat', by: PERSON });
    expect(kinds(entries)).toEqual(['run-ended', 'mode-entered']);
    expect(entries[0]).toMatchObject({ outcome: 'left' });
    team.act('pm', null, done('planned'));
    expect(team.result('complete_node')).toContain('NO_NODE');
    expect(team.conversation.state).toMatchObject({ mode: 'chat', run: null });
  });

  it('a queued turn for a node of a run that ended starts and ends without a model call', () => {
    const team = atBusyNode();
    team.do({ type: 'set-mode', mode: 'agent', by: PERSON });
    team.finish(team.tools[0] ?? expect.unreachable());
    const { entries, effects } = team.act('dev', 'gone');
    expect(kinds(entries).slice(-3)).toEqual([
      'turn-ended dev completed',
      'turn-started dev',
      'turn-ended dev aborted',
    ]);
    expect(effects).toEqual([]);
    const at = team.last('node-entered').index;
    expect(team.last('turn-started').trigger).toEqual([at]);
    expect(team.post('and now?').effects).toMatchObject([{ type: 'call-model', agent: 'pm' }]);
  });

  it('L14: a run starts no turn for a node that a busy agent completed in its running turn', () => {
    const team = atBusyNode();
    team.finish(team.tools[0] ?? expect.unreachable());
    const { effects } = team.act('dev', null, done('built'));
    expect(team.outcomes('dev')).toEqual(['completed', 'aborted']);
    expect(effects).toMatchObject([{ type: 'call-model', agent: 'qa' }]);
  });

  it('a run that was left while every agent was stopped starts no turn on resume, nor after a crash', () => {
    const team = atBusyNode();
    team.do({ type: 'stop', agent: null, by: PERSON });
    team.finish(team.tools[0] ?? expect.unreachable());
    team.do({ type: 'set-mode', mode: 'chat', by: PERSON });
    team.crash();
    expect(team.do({ type: 'resume', agent: null, by: PERSON }).effects).toEqual([]);
    expect(team.outcomes('dev')).toEqual(['aborted', 'aborted']); // The stopped turn, and the turn of the node.
    expect(team.last('turn-started').trigger).toEqual([typed(team.entries, 'node-entered').at(-1)?.index]);
  });

  it('a call of an earlier run completes nothing in a later run', () => {
    const team = running();
    const { entries } = begin(team, 'talk');
    expect(kinds(entries)).toEqual([
      'run-ended',
      'mode-entered',
      'run-started',
      'node-entered',
      `user ${PERSON.id}`,
    ]);
    const [first, second] = typed(team.entries, 'run-started').map((entry) => entry.runId);
    expect(first).not.toBe(second);
    team.act('pm', null, done('planned'));
    expect(team.result('complete_node')).toContain('NO_NODE');
    expect(team.conversation.state.run).toMatchObject({ runId: second, node: 'plan' });
    team.act('pm', 'ah, another one');
    team.act('pm', null, done('planned'));
    expect(team.last('run-ended')).toMatchObject({ runId: second, outcome: 'planned' });
  });

  it('a run continues at the same node after a crash at any append', () => {
    const script = ['pm planned', 'dev built', 'qa failed', 'dev built', 'qa passed'];
    for (let cut = 0; cut <= script.length; cut++) {
      const team = running();
      for (const [at, step] of script.entries()) {
        if (at === cut) team.crash();
        const [agent = '', outcome = ''] = step.split(' ');
        team.act(agent, null, done(outcome));
      }
      expect(typed(team.entries, 'node-entered').map((entry) => entry.node)).toEqual(
        'plan build verify build verify'.split(' '),
      );
      expect(team.conversation.state).toMatchObject({ mode: 'agent', run: null });
    }
  });

  it.each([
    [undefined, 'mode run needs a workflow'],
    ['none', 'there is no workflow none'],
  ])('a run of the workflow %s is refused, and nothing is appended', (workflow, message) => {
    const team = new Team();
    expect(
      team.do({ type: 'set-mode', mode: 'run', ...(workflow ? { workflow } : {}), by: PERSON }),
    ).toMatchObject({
      entries: [],
      reply: { refusal: { code: 'UNKNOWN_WORKFLOW', message, hint: 'workflows: ship-it, talk' } },
    });
  });
});

describe('a limit', () => {
  it('a limit of model calls ends the turn; after a resume with a higher limit one turn answers the notice', () => {
    const team = new Team({ modelCallsPerTurn: 1 }).posted('go');
    const { entries } = team.act('pm', null, ['set_phase', { phase: 'plan', reason: 'x' }]);
    expect(kinds(entries).slice(-2)).toEqual(['limit-reached', 'turn-ended pm limited']);
    const limit = team.last('limit-reached').index;
    expect(kinds(team.do({ type: 'resume', agent: 'pm', by: PERSON }).entries)).toEqual([
      'agent-resumed',
      'turn-started pm',
    ]);
    expect(team.last('turn-started').trigger).toEqual([limit]);
    expect(team.request('pm').at(-1)?.[1]).toContain('=== LIMIT REACHED modelCallsPerTurn ===');
    team.act('pm', 'done');
    expect(team.do({ type: 'resume', agent: 'pm', by: PERSON }).entries).toEqual([]);
  });

  it('a resume starts nothing when a turn answered a later message of a person', () => {
    const team = new Team({ modelCallsPerTurn: 1 }).posted('go');
    team.act('pm', null, ['set_phase', { phase: 'plan', reason: 'x' }]);
    team.post('go on');
    team.act('pm', 'done');
    expect(team.do({ type: 'resume', agent: null, by: PERSON }).entries).toEqual([]);
  });
});

describe('the title', () => {
  it('the title is set once, from the first words of the first person, with the first exchange', () => {
    const team = new Team().posted(`  Build\n me   a boat ${'very '.repeat(20)}`);
    expect(team.conversation.state.title).toBeNull();
    team.act('pm', 'hm', ['look']);
    expect(team.conversation.state.title).toBeNull();
    team.finish(team.tools[0] ?? expect.unreachable());
    team.act('pm', 'aye');
    expect(team.conversation.state.title).toMatch(/^Build me a boat very .*…$/u);
    team.post('another');
    team.act('pm', 'aye');
    expect(typed(team.entries, 'title-set')).toHaveLength(1);
  });
});
