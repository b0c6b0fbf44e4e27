import { describe, expect, it } from 'vitest';
import { availableTools, Conversation, type Workflow } from '../../../src/conversation/index.ts';
import { errorWith } from '../../support/error-with.ts';
import { typed } from './life.ts';
import { kinds, PERSON, SHIP_IT, TALK, Team } from './team.ts';

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
      before: [{ node: 'plan', outcome: 'planned', summary: 'the plan' }],
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
      reply: { refusal: { code: 'UNKNOWN_WORKFLOW', message, hint: 'workflows: ship-it, talk, side' } },
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

/** A log that begins with a run whose first node triggered its agent. */
function earlierRun(): Team {
  const team = new Team();
  team.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', by: PERSON });
  const log = team.entries.map((entry) => {
    if (entry.type !== 'node-entered') return entry;
    const { agent, ...rest } = entry;
    return { ...rest, to: [agent ?? expect.unreachable()] };
  });
  team.conversation = new Conversation(team.rules, log);
  team.do({ type: 'recover' });
  return team;
}

describe('a run', () => {
  it.each([
    ['in a new conversation', () => new Team()],
    ['after an exchange', afterExchange],
  ])('a run without an input %s waits for the next message to its agent, after a crash too', (_, begin) => {
    const team = begin();
    const { entries, effects } = team.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', by: PERSON });
    expect(kinds(entries)).toEqual(['mode-entered', 'run-started', 'node-entered']);
    expect(entries[2]).toMatchObject({ node: 'plan', agent: 'pm' });
    expect(entries[2]).not.toHaveProperty('to');
    expect(effects).toEqual([]);
    team.crash();
    expect(team.conversation.state.run).toMatchObject({ node: 'plan', agent: 'pm', awaitsInput: true });
    team.post('for people', { includeInContext: false });
    team.post('@dev are you there?');
    team.act('dev', 'yes');
    expect(team.turn('pm')).toBeNull();
    expect(team.conversation.state.run).toHaveProperty('awaitsInput');

    expect(team.post('Build me a clock').reply).toMatchObject({ agents: ['pm'] });
    expect(team.conversation.state.run).not.toHaveProperty('awaitsInput');
    expect(team.last('turn-started')).toMatchObject({ agent: 'pm', trigger: [team.last('message').index] });
    expect(team.request('pm').at(-1)?.[1]).toContain('Build me a clock');
    team.act('pm', null, done('planned'));
    expect(team.conversation.state.run).toMatchObject({ node: 'build', agent: 'dev' });
    expect(team.callOf('dev')).toBeDefined();
  });

  it('a run that waits for its input still waits after its agent completed a delegation', () => {
    const team = new Team().posted('@dev go');
    team.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', by: PERSON });
    team.act('dev', null, ['delegate', { to: 'pm', request: 'when?' }]);
    team.act('pm', 'tomorrow');
    expect(team.result('delegate')).toBe('tomorrow');
    expect(team.conversation.state.run).toHaveProperty('awaitsInput');
    team.act('dev', 'tomorrow then');
    team.post('build a clock');
    expect(team.conversation.state.run).not.toHaveProperty('awaitsInput');
  });

  it('a run with an input begins with it, in one append, whatever messages came before', () => {
    for (const team of [new Team(), afterExchange()]) {
      const command = { type: 'set-mode', mode: 'run', workflow: 'ship-it', by: PERSON } as const;
      const { entries } = team.do({ ...command, input: '@dev knows: build a clock' });
      expect(kinds(entries)).toEqual([
        'mode-entered',
        'run-started',
        'node-entered',
        `user ${PERSON.id}`,
        'turn-started pm',
      ]);
      expect(entries[3]).toMatchObject({ author: PERSON, to: ['pm'], mode: 'run' });
      expect(entries[4]).toMatchObject({ trigger: [entries[3]?.index] });
      expect(team.conversation.state.run).not.toHaveProperty('awaitsInput');
    }
  });

  it('the input of a run gives a busy agent a turn of its own, and answers no open question', () => {
    const team = new Team().posted('go');
    team.act('pm', null, ['ask', { question: 'where?' }]);
    const input = { type: 'set-mode', mode: 'run', workflow: 'talk', by: PERSON, input: 'a clock' } as const;
    expect(team.do(input).effects).toEqual([]);
    const at = team.last('message').index;
    team.post('there');
    expect(team.result('ask')).toBe('there');
    team.act('pm', 'fine');
    expect(team.last('turn-started')).toMatchObject({ agent: 'pm', trigger: [at] });
  });

  it.each([
    ['of its first agent, with no agent named', 'pm', 'there', {}, true],
    ['of its first agent, to the agent by name', 'pm', '@pm there', {}, true],
    ['of its first agent, with a delivery of its own', 'pm', 'there', { delivery: 'queue' }, true],
    ['of its first agent, also addressed to another agent', 'pm', '@pm @qa there', {}, true],
    ['of another agent', 'dev', 'there', {}, true],
    ['of another agent, also addressed to its first agent', 'dev', '@pm @dev there', {}, false],
  ] as const)(
    'a run that waits for its input handles the answer to a question %s',
    (_, asker, words, more, waits) => {
      const team = new Team().posted(`@${asker} go`);
      team.act(asker, null, ['ask', { question: 'where?' }]);
      team.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', by: PERSON });
      team.post(words, more);
      expect(team.result('ask')).toBe(words);
      const { run } = team.conversation.state;
      expect(run?.awaitsInput ?? false).toBe(waits);
      team.crash();
      expect(team.conversation.state.run?.awaitsInput ?? false).toBe(waits);
      if (!waits) return;
      team.act(asker, 'thanks');
      expect(team.conversation.state.run).toMatchObject({ node: 'plan', awaitsInput: true });
      team.post('@pm build a clock');
      expect(team.conversation.state.run).not.toHaveProperty('awaitsInput');
      expect(team.last('turn-started')).toMatchObject({ agent: 'pm', trigger: [team.last('message').index] });
      team.act('pm', null, done('planned'));
      expect(team.conversation.state.run).toMatchObject({ node: 'build', agent: 'dev' });
    },
  );

  it('a run in a log of an earlier version, without the first message, continues at its node', () => {
    const team = earlierRun();
    expect(team.conversation.state.run).not.toHaveProperty('awaitsInput');
    expect(team.callOf('pm')).toBeDefined();
    team.act('pm', null, done('planned'));
    expect(team.callOf('dev')).toBeDefined();
  });

  it.each(['chat', 'agent'] as const)('mode %s refuses a workflow and an input', (mode) => {
    for (const more of [{ workflow: 'talk' }, { input: 'a clock' }])
      expect(new Team().do({ type: 'set-mode', mode, ...more, by: PERSON })).toMatchObject({
        entries: [],
        reply: { refusal: { code: 'INVALID_FIELD', message: expect.stringContaining(`mode ${mode} takes`) } },
      });
  });

  it('a run without a message of a person gives the conversation no title', () => {
    const team = earlierRun();
    team.act('pm', 'well', done('planned'));
    expect(team.conversation.state.title).toBeNull();
  });
});

const start = { workflow: 'ship-it', id: 'begin' };

describe('a post with a workflow', () => {
  it('a post with a workflow starts the run with its text as input in one append, even if it mentions agents and others are busy', () => {
    const busy = new Team().posted('@pm what time is it?');
    for (const team of [new Team(), busy]) {
      const { entries, reply } = team.post('@dev knows: build a clock', start);
      expect(kinds(entries).slice(0, 4)).toEqual([
        'mode-entered',
        'run-started',
        'node-entered',
        'user alice',
      ]);
      expect(entries[3]).toMatchObject({ ...start, to: ['pm'], mode: 'run', delivery: 'queue' });
      expect(entries[1]).toMatchObject({ author: { id: 'alice' } });
      expect(reply).toMatchObject({ kind: 'posted', index: entries[3]?.index, agents: ['pm'] });
      expect(team.conversation.state.run).toMatchObject({ workflowId: 'ship-it', node: 'plan' });
      expect(team.conversation.state.run).not.toHaveProperty('awaitsInput');
      if (team === busy) team.act('pm', 'late');
      expect(team.last('turn-started')).toMatchObject({ agent: 'pm', trigger: [entries[3]?.index] });
    }
  });

  it('a repeated post with a workflow starts nothing, also after a crash and after the run has ended', () => {
    const team = new Team().posted('build a clock', start);
    const again = () => team.post('build a clock', start);
    expect(again()).toMatchObject({ entries: [], reply: { duplicate: true, index: 3 } });
    team.crash();
    expect(again()).toMatchObject({ entries: [], reply: { duplicate: true, index: 3 } });
    team.do({ type: 'set-mode', mode: 'chat', by: PERSON });
    expect(again()).toMatchObject({ entries: [], reply: { duplicate: true, index: 3 } });
    expect(team.entries.filter(({ type }) => type === 'run-started')).toHaveLength(1);
  });

  it('a post with a workflow and the id of a message without one, or with another one, is refused', () => {
    const team = new Team().posted('build a clock', start);
    for (const workflow of [undefined, 'talk'])
      expect(team.post('build a clock', { id: 'begin', ...(workflow && { workflow }) }).reply).toMatchObject({
        refusal: errorWith('ID_CONFLICT', 'another "workflow"'),
      });
  });

  it('a post with a workflow is refused while a run is active, with its node and the known workflows', () => {
    const team = new Team().posted('build a clock', start);
    for (const workflow of ['ship-it', 'talk'])
      expect(team.post('and a lamp', { workflow })).toMatchObject({
        entries: [],
        reply: {
          refusal: {
            code: 'RUN_CONFLICT',
            message: 'a run of ship-it is active in this conversation, at the node plan',
            hint: expect.stringContaining('workflows: ship-it, talk, side'),
          },
        },
      });
    team.do({ type: 'set-mode', mode: 'chat', by: PERSON });
    expect(team.post('and a lamp', { workflow: 'talk' }).reply).toMatchObject({ kind: 'posted' });
  });

  it.each([
    [{ workflow: 'none' }, 'UNKNOWN_WORKFLOW', 'there is no workflow none'],
    [
      { ...start, to: ['dev'], delivery: 'interrupt' as const },
      'INVALID_FIELD',
      'field workflow: it cannot be combined with to, delivery interrupt',
    ],
    [
      { ...start, includeInContext: false },
      'INVALID_FIELD',
      'field workflow: it cannot be combined with includeInContext false',
    ],
  ])('a post with the fields %j is refused as a whole', (more, code, message) => {
    const team = new Team();
    const { entries, reply } = team.post('build a clock', more);
    expect(entries).toEqual([]);
    expect(reply).toMatchObject({ kind: 'refused', refusal: { code, message } });
    expect(team.entries).toEqual([]);
  });

  it('a post with a workflow answers no open question', () => {
    const team = new Team().posted('go');
    team.act('pm', null, ['ask', { question: 'where?' }]);
    team.post('a clock', { workflow: 'talk' });
    expect(team.turn('pm')?.openCalls).toHaveLength(1);
    team.post('there');
    expect(team.result('ask')).toBe('there');
  });
});

type Options = ConstructorParameters<typeof Team>[0];

const { build: _, ...nodes } = SHIP_IT.nodes;
const WITHOUT_BUILD: Workflow = { ...SHIP_IT, nodes };

/** What the configuration lacks after the restart, and the reason in the log. */
const REMOVED: readonly [string, Options, string][] = [
  ['its agent', { slugs: ['pm', 'qa'] }, 'agent dev was removed from the configuration'],
  ['its workflow', { workflows: [TALK] }, 'workflow ship-it was removed from the configuration'],
  ['its node', { workflows: [WITHOUT_BUILD] }, 'node build of ship-it was removed from the configuration'],
];

/** A run at the node of dev, whose turn has ended without an outcome. */
function atIdleNode(): Team {
  const team = new Team();
  team.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', input: 'build a clock', by: PERSON });
  team.act('pm', null, done('planned'));
  team.act('dev', 'not yet');
  expect(team.conversation.state.run).toMatchObject({ node: 'build', agent: 'dev' });
  return team;
}

function restarted(team: Team, options: Options): Team {
  const later = new Team(options, false);
  later.conversation = new Conversation(later.rules, [...team.entries]);
  return later;
}

describe('a run that needs something that was removed from the configuration', () => {
  it.each(REMOVED)('recovery ends the run once, with the reason: %s', (_what, options, summary) => {
    const later = restarted(atIdleNode(), options);
    const { entries } = later.do({ type: 'recover' });
    expect(kinds(entries)).toEqual(['run-ended', 'mode-entered']);
    expect(entries[0]).toMatchObject({ author: { kind: 'system' }, outcome: 'aborted', summary });
    expect(later.conversation.state).toMatchObject({ mode: 'agent', run: null });
    expect(later.do({ type: 'recover' }).entries).toEqual([]);
  });

  it('recovery ends the run before it resumes the running turn, which then has no node', () => {
    const team = new Team();
    team.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', input: 'build a clock', by: PERSON });
    team.act('pm', null, done('planned'));
    const later = restarted(team, { workflows: [TALK] });
    expect(kinds(later.do({ type: 'recover' }).entries)).toEqual([
      'run-ended',
      'mode-entered',
      'turn-started dev',
    ]);
    later.act('dev', null, done('built'));
    expect(later.result('complete_node')).toContain('NO_NODE');
  });

  it('the run stays at its node while agent, workflow and node exist', () => {
    const later = restarted(atIdleNode(), { workflows: [SHIP_IT] });
    expect(later.do({ type: 'recover' }).entries).toEqual([]);
    expect(later.conversation.state.run).toMatchObject({ node: 'build', agent: 'dev' });
  });
});
