import { describe, expect, it } from 'vitest';
import { availableTools, Conversation, type Workflow } from '../../../src/conversation/index.ts';
import { errorWith } from '../../support/error-with.ts';
import { card } from './core.ts';
import { typed } from './life.ts';
import { kinds, PERSON, SHIP_IT, TALK, TeamCore } from './team-core.ts';

const done = (outcome: string, summary = 'as said') => ['complete_node', { outcome, summary }] as const;

function running(workflow = 'ship-it', options: ConstructorParameters<typeof TeamCore>[0] = {}): TeamCore {
  const core = new TeamCore(options);
  begin(core, workflow);
  return core;
}

function begin(core: TeamCore, workflow: string) {
  return core.do({ type: 'set-mode', mode: 'run', workflow, input: 'build a clock', by: PERSON });
}

/** The first entries of a run with an input. */
const BEGUN = ['mode-entered', 'run-started', 'node-entered', `user ${PERSON.id}`];

/** A run that entered the node of an agent whose tool is running. */
function atBusyNode(): TeamCore {
  const core = new TeamCore().posted('@dev go');
  core.act('dev', null, ['look']);
  begin(core, 'ship-it');
  core.act('pm', null, done('planned'));
  expect(core.conversation.state.run).toMatchObject({ node: 'build', agent: 'dev' });
  expect(core.conversation.state.agents.dev?.waiting.length).toBe(1);
  return core;
}

/** A conversation with one answered message of a person. */
function afterExchange(): TeamCore {
  const core = new TeamCore().posted('a clock would be nice');
  core.act('pm', 'it would');
  return core;
}

describe('a run', () => {
  it('a run that starts after other messages enters its first node with its input, in one append', () => {
    const core = afterExchange();
    const { entries, effects } = begin(core, 'ship-it');
    expect(kinds(entries)).toEqual([...BEGUN, 'turn-started pm']);
    expect(entries[2]).toMatchObject({ node: 'plan', agent: 'pm', brief: 'make a plan' });
    expect(effects).toMatchObject([{ type: 'call-model', agent: 'pm' }]);
    core.act('pm', 'planning');
    expect(core.last('message')).toMatchObject({ mode: 'run', workflowId: 'ship-it' });
    expect(core.post('how far?').reply).toMatchObject({ agents: ['pm'] });
  });

  it('a run does not enter a node whose agent is stopped: complete_node is refused, and accepted after a resume', () => {
    const core = running();
    core.do({ type: 'stop', agent: 'dev', by: PERSON });
    core.act('pm', null, done('planned'));
    expect(core.result('complete_node')).toContain('AGENT_STOPPED');
    expect(core.result('complete_node')).toContain('dev, the agent of build, is stopped');
    expect(core.conversation.state.run).toMatchObject({ node: 'plan', agent: 'pm' });
    expect(core.callOf('pm')).toBeDefined(); // The agent can say so.
    core.do({ type: 'resume', agent: 'dev', by: PERSON });
    core.act('pm', null, done('planned'));
    expect(core.callOf('dev')).toBeDefined();
  });

  it('a run goes from node to node, loops back, and ends without a directive in later requests', () => {
    const core = running();
    core.act('pm', null, done('planned', 'the plan'));
    expect(core.conversation.state.run).toMatchObject({
      node: 'build',
      agent: 'dev',
      before: [{ node: 'plan', outcome: 'planned', summary: 'the plan' }],
    });
    expect(core.post('how far?', { delivery: 'queue' }).reply).toMatchObject({ agents: ['dev'] });
    core.act('dev', null, done('built'));
    core.act('dev', 'far');
    core.act('qa', null, done('failed', 'it broke'));
    core.act('dev', null, done('built'));
    const { entries } = core.act('qa', 'all good', done('passed'));
    expect(kinds(entries)).toEqual([
      'assistant qa',
      'tool qa',
      'run-ended',
      'mode-entered',
      'turn-ended qa completed',
    ]);
    expect(entries[2]).toMatchObject({ outcome: 'passed', summary: 'as said' });
    expect(core.conversation.state).toMatchObject({ mode: 'agent', run: null });
    expect(typed(core.entries, 'node-entered').map((entry) => [entry.node, entry.hops])).toEqual([
      ['plan', 0],
      ['build', 1],
      ['verify', 2],
      ['build', 3],
      ['verify', 4],
    ]);
    const card = core.rules.roster.agents.get('qa') ?? expect.unreachable();
    const setting = core.conversation.state.settings.at(-1) ?? expect.unreachable();
    expect(availableTools(card, setting, core.rules.workflows)).not.toContain('complete_node');
  });

  it('a run stays at its node when the outcome is unknown, and names the known outcomes', () => {
    for (const outcome of ['finished', 'constructor']) {
      const core = running();
      const { effects } = core.act('pm', null, done(outcome));
      expect(JSON.parse(core.result('complete_node'))).toEqual({
        error: { code: 'UNKNOWN_OUTCOME', message: `the outcomes of plan are planned; not ${outcome}` },
      });
      expect(effects).toMatchObject([{ agent: 'pm' }]);
      expect(core.conversation.state.run?.node).toBe('plan');
    }
  });

  it('a run gives complete_node to the agent of its node only, with the tools that the node allows', () => {
    const core = running();
    core.act('pm', null, done('planned'));
    core.act('dev', null, ['look'], ['delegate', { to: 'qa', request: 'x' }]);
    expect(core.result('delegate')).toContain('TOOL_NOT_AVAILABLE');
    core.post('@qa hello');
    core.act('qa', null, done('built'));
    expect(core.result('complete_node')).toContain('TOOL_NOT_AVAILABLE');
    expect(core.conversation.state.run?.node).toBe('build');
  });

  it('a node that narrows the tools of a coding agent leaves it the permissions that it asks for', () => {
    const core = running();
    core.act('pm', null, done('planned'));
    const setting = core.conversation.state.settings.at(-1) ?? expect.unreachable();
    const tools = ['write', 'delegate', 'permit_edit', 'permit_execute'];
    expect(availableTools(card('dev', { tools }), setting, core.rules.workflows)).toEqual([
      'write',
      'permit_edit',
      'permit_execute',
      'complete_node',
    ]);
    expect(availableTools(card('dev', { tools: ['write'] }), setting, core.rules.workflows)).toEqual([
      'write',
      'complete_node',
    ]);
  });

  it('a run stops at the hop limit, which people see', () => {
    const core = running('ship-it', { hopsPerTrigger: 1 });
    core.act('pm', null, done('planned'));
    const { entries } = core.act('dev', null, done('built'));
    expect(kinds(entries)).toEqual(['assistant dev', 'limit-reached', 'tool dev']);
    expect(core.result('complete_node')).toContain('HOP_LIMIT');
  });

  it('a run may end at the hop limit, since its end starts no turn', () => {
    const core = running('talk', { hopsPerTrigger: 0 });
    core.act('pm', null, done('planned'));
    expect(core.last('run-ended').outcome).toBe('planned');
  });

  it('a run that starts during a turn is part of the next request of that turn', () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, ['look']);
    core.do({ type: 'set-mode', mode: 'run', workflow: 'talk', by: PERSON });
    core.finish(core.tools[0] ?? expect.unreachable());
    core.act('pm', null, done('planned'));
    expect(core.last('run-ended').outcome).toBe('planned');
  });

  it('a run ends when the mode changes, and its node no longer belongs to an agent', () => {
    const core = running();
    const { entries } = core.do({ type: 'set-mode', mode: 'chat', by: PERSON });
    expect(kinds(entries)).toEqual(['run-ended', 'mode-entered']);
    expect(entries[0]).toMatchObject({ outcome: 'left' });
    core.act('pm', null, done('planned'));
    expect(core.result('complete_node')).toContain('NO_NODE');
    expect(core.conversation.state).toMatchObject({ mode: 'chat', run: null });
  });

  it('a queued turn for a node of a run that ended starts and ends without a model call', () => {
    const core = atBusyNode();
    core.do({ type: 'set-mode', mode: 'agent', by: PERSON });
    core.finish(core.tools[0] ?? expect.unreachable());
    const { entries, effects } = core.act('dev', 'gone');
    expect(kinds(entries).slice(-3)).toEqual([
      'turn-ended dev completed',
      'turn-started dev',
      'turn-ended dev aborted',
    ]);
    expect(effects).toEqual([]);
    const at = core.last('node-entered').index;
    expect(core.last('turn-started').trigger).toEqual([at]);
    expect(core.post('and now?').effects).toMatchObject([{ type: 'call-model', agent: 'pm' }]);
  });

  it('L14: a run starts no turn for a node that a busy agent completed in its running turn', () => {
    const core = atBusyNode();
    core.finish(core.tools[0] ?? expect.unreachable());
    const { effects } = core.act('dev', null, done('built'));
    expect(core.outcomes('dev')).toEqual(['completed', 'aborted']);
    expect(effects).toMatchObject([{ type: 'call-model', agent: 'qa' }]);
  });

  it('a run that was left while every agent was stopped starts no turn on resume, nor after a crash', () => {
    const core = atBusyNode();
    core.do({ type: 'stop', agent: null, by: PERSON });
    core.finish(core.tools[0] ?? expect.unreachable());
    core.do({ type: 'set-mode', mode: 'chat', by: PERSON });
    core.crash();
    expect(core.do({ type: 'resume', agent: null, by: PERSON }).effects).toEqual([]);
    expect(core.outcomes('dev')).toEqual(['aborted', 'aborted']); // The stopped turn, and the turn of the node.
    expect(core.last('turn-started').trigger).toEqual([typed(core.entries, 'node-entered').at(-1)?.index]);
  });

  it('a call of an earlier run completes nothing in a later run', () => {
    const core = running();
    const { entries } = begin(core, 'talk');
    expect(kinds(entries)).toEqual(['run-ended', ...BEGUN]);
    const [first, second] = typed(core.entries, 'run-started').map((entry) => entry.runId);
    expect(first).not.toBe(second);
    core.act('pm', null, done('planned'));
    expect(core.result('complete_node')).toContain('NO_NODE');
    expect(core.conversation.state.run).toMatchObject({ runId: second, node: 'plan' });
    core.act('pm', 'ah, another one');
    core.act('pm', null, done('planned'));
    expect(core.last('run-ended')).toMatchObject({ runId: second, outcome: 'planned' });
  });

  it('a run continues at the same node after a crash at any append', () => {
    const script = ['pm planned', 'dev built', 'qa failed', 'dev built', 'qa passed'];
    for (let cut = 0; cut <= script.length; cut++) {
      const core = running();
      for (const [at, step] of script.entries()) {
        if (at === cut) core.crash();
        const [agent = '', outcome = ''] = step.split(' ');
        core.act(agent, null, done(outcome));
      }
      expect(typed(core.entries, 'node-entered').map((entry) => entry.node)).toEqual(
        'plan build verify build verify'.split(' '),
      );
      expect(core.conversation.state).toMatchObject({ mode: 'agent', run: null });
    }
  });

  it.each([
    [undefined, 'mode run needs a workflow'],
    ['none', 'there is no workflow none'],
  ])('a run of the workflow %s is refused, and nothing is appended', (workflow, message) => {
    const core = new TeamCore();
    expect(
      core.do({ type: 'set-mode', mode: 'run', ...(workflow ? { workflow } : {}), by: PERSON }),
    ).toMatchObject({
      entries: [],
      reply: { refusal: { code: 'UNKNOWN_WORKFLOW', message, hint: 'workflows: ship-it, talk, side' } },
    });
  });
});

describe('a limit', () => {
  it('a limit of model calls ends the turn; after a resume with a higher limit one turn answers the notice', () => {
    const core = new TeamCore({ modelCallsPerTurn: 1 }).posted('go');
    const { entries } = core.act('pm', null, ['set_phase', { phase: 'plan', reason: 'x' }]);
    expect(kinds(entries).slice(-2)).toEqual(['limit-reached', 'turn-ended pm limited']);
    const limit = core.last('limit-reached').index;
    expect(kinds(core.do({ type: 'resume', agent: 'pm', by: PERSON }).entries)).toEqual([
      'agent-resumed',
      'turn-started pm',
    ]);
    expect(core.last('turn-started').trigger).toEqual([limit]);
    expect(core.request('pm').at(-1)?.[1]).toContain('=== LIMIT REACHED modelCallsPerTurn ===');
    core.act('pm', 'done');
    expect(core.do({ type: 'resume', agent: 'pm', by: PERSON }).entries).toEqual([]);
  });

  it('a resume starts nothing when a turn answered a later message of a person', () => {
    const core = new TeamCore({ modelCallsPerTurn: 1 }).posted('go');
    core.act('pm', null, ['set_phase', { phase: 'plan', reason: 'x' }]);
    core.post('go on');
    core.act('pm', 'done');
    expect(core.do({ type: 'resume', agent: null, by: PERSON }).entries).toEqual([]);
  });
});

describe('the title', () => {
  it('the title is set once, from the first words of the first person, with the first exchange', () => {
    const core = new TeamCore().posted(`  Build\n me   a boat ${'very '.repeat(20)}`);
    expect(core.conversation.state.title).toBeNull();
    core.act('pm', 'hm', ['look']);
    expect(core.conversation.state.title).toBeNull();
    core.finish(core.tools[0] ?? expect.unreachable());
    core.act('pm', 'aye');
    expect(core.conversation.state.title).toMatch(/^Build me a boat very .*…$/u);
    core.post('another');
    core.act('pm', 'aye');
    expect(typed(core.entries, 'title-set')).toHaveLength(1);
  });
});

/** A log that begins with a run whose first node triggered its agent. */
function earlierRun(): TeamCore {
  const core = new TeamCore();
  core.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', by: PERSON });
  const log = core.entries.map((entry) => {
    if (entry.type !== 'node-entered') return entry;
    const { agent, ...rest } = entry;
    return { ...rest, to: [agent ?? expect.unreachable()] };
  });
  core.conversation = new Conversation(core.rules, log);
  core.do({ type: 'recover' });
  return core;
}

describe('a run', () => {
  it.each([
    ['in a new conversation', () => new TeamCore()],
    ['after an exchange', afterExchange],
  ])('a run without an input %s waits for the next message to its agent, after a crash too', (_, begin) => {
    const core = begin();
    const { entries, effects } = core.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', by: PERSON });
    expect(kinds(entries)).toEqual(['mode-entered', 'run-started', 'node-entered']);
    expect(entries[2]).toMatchObject({ node: 'plan', agent: 'pm' });
    expect(entries[2]).not.toHaveProperty('to');
    expect(effects).toEqual([]);
    core.crash();
    expect(core.conversation.state.run).toMatchObject({ node: 'plan', agent: 'pm', awaitsInput: true });
    core.post('for people', { includeInContext: false });
    core.post('@dev are you there?');
    core.act('dev', 'yes');
    expect(core.turn('pm')).toBeNull();
    expect(core.conversation.state.run).toHaveProperty('awaitsInput');

    expect(core.post('Build me a clock').reply).toMatchObject({ agents: ['pm'] });
    expect(core.conversation.state.run).not.toHaveProperty('awaitsInput');
    expect(core.last('turn-started')).toMatchObject({ agent: 'pm', trigger: [core.last('message').index] });
    expect(core.request('pm').at(-1)?.[1]).toContain('Build me a clock');
    core.act('pm', null, done('planned'));
    expect(core.conversation.state.run).toMatchObject({ node: 'build', agent: 'dev' });
    expect(core.callOf('dev')).toBeDefined();
  });

  it('a run that waits for its input still waits after its agent completed a delegation', () => {
    const core = new TeamCore().posted('@dev go');
    core.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', by: PERSON });
    core.act('dev', null, ['delegate', { to: 'pm', request: 'when?' }]);
    core.act('pm', 'tomorrow');
    expect(core.result('delegate')).toBe('tomorrow');
    expect(core.conversation.state.run).toHaveProperty('awaitsInput');
    core.act('dev', 'tomorrow then');
    core.post('build a clock');
    expect(core.conversation.state.run).not.toHaveProperty('awaitsInput');
  });

  it('a run with an input begins with it, in one append, whatever messages came before', () => {
    for (const core of [new TeamCore(), afterExchange()]) {
      const command = { type: 'set-mode', mode: 'run', workflow: 'ship-it', by: PERSON } as const;
      const { entries } = core.do({ ...command, input: '@dev knows: build a clock' });
      expect(kinds(entries)).toEqual([...BEGUN, 'turn-started pm']);
      expect(entries[3]).toMatchObject({ author: PERSON, to: ['pm'], mode: 'run' });
      expect(entries[4]).toMatchObject({ trigger: [entries[3]?.index] });
      expect(core.conversation.state.run).not.toHaveProperty('awaitsInput');
    }
  });

  it('the input of a run gives a busy agent a turn of its own, and answers no open question', () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, ['ask', { question: 'where?' }]);
    const input = { type: 'set-mode', mode: 'run', workflow: 'talk', by: PERSON, input: 'a clock' } as const;
    expect(core.do(input).effects).toEqual([]);
    const at = core.last('message').index;
    core.post('there');
    expect(core.result('ask')).toBe('there');
    core.act('pm', 'fine');
    expect(core.last('turn-started')).toMatchObject({ agent: 'pm', trigger: [at] });
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
      const core = new TeamCore().posted(`@${asker} go`);
      core.act(asker, null, ['ask', { question: 'where?' }]);
      core.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', by: PERSON });
      core.post(words, more);
      expect(core.result('ask')).toBe(words);
      const { run } = core.conversation.state;
      expect(run?.awaitsInput ?? false).toBe(waits);
      core.crash();
      expect(core.conversation.state.run?.awaitsInput ?? false).toBe(waits);
      if (!waits) return;
      core.act(asker, 'thanks');
      expect(core.conversation.state.run).toMatchObject({ node: 'plan', awaitsInput: true });
      core.post('@pm build a clock');
      expect(core.conversation.state.run).not.toHaveProperty('awaitsInput');
      expect(core.last('turn-started')).toMatchObject({ agent: 'pm', trigger: [core.last('message').index] });
      core.act('pm', null, done('planned'));
      expect(core.conversation.state.run).toMatchObject({ node: 'build', agent: 'dev' });
    },
  );

  it('a run in a log of an earlier version, without the first message, continues at its node', () => {
    const core = earlierRun();
    expect(core.conversation.state.run).not.toHaveProperty('awaitsInput');
    expect(core.callOf('pm')).toBeDefined();
    core.act('pm', null, done('planned'));
    expect(core.callOf('dev')).toBeDefined();
  });

  it.each(['chat', 'agent'] as const)('mode %s refuses a workflow and an input', (mode) => {
    for (const more of [{ workflow: 'talk' }, { input: 'a clock' }])
      expect(new TeamCore().do({ type: 'set-mode', mode, ...more, by: PERSON })).toMatchObject({
        entries: [],
        reply: { refusal: { code: 'INVALID_FIELD', message: expect.stringContaining(`mode ${mode} takes`) } },
      });
  });

  it('a run without a message of a person gives the conversation no title', () => {
    const core = earlierRun();
    core.act('pm', 'well', done('planned'));
    expect(core.conversation.state.title).toBeNull();
  });
});

const start = { workflow: 'ship-it', id: 'begin' };

describe('a post with a workflow', () => {
  it('a post with a workflow starts the run with its text as input in one append, even if it mentions agents and others are busy', () => {
    const busy = new TeamCore().posted('@pm what time is it?');
    for (const core of [new TeamCore(), busy]) {
      const { entries, reply } = core.post('@dev knows: build a clock', start);
      expect(kinds(entries).slice(0, 4)).toEqual([
        'mode-entered',
        'run-started',
        'node-entered',
        'user alice',
      ]);
      expect(entries[3]).toMatchObject({ ...start, to: ['pm'], mode: 'run', delivery: 'queue' });
      expect(entries[1]).toMatchObject({ author: { id: 'alice' } });
      expect(reply).toMatchObject({ kind: 'posted', index: entries[3]?.index, agents: ['pm'] });
      expect(core.conversation.state.run).toMatchObject({ workflowId: 'ship-it', node: 'plan' });
      expect(core.conversation.state.run).not.toHaveProperty('awaitsInput');
      if (core === busy) core.act('pm', 'late');
      expect(core.last('turn-started')).toMatchObject({ agent: 'pm', trigger: [entries[3]?.index] });
    }
  });

  it('a repeated post with a workflow starts nothing, also after a crash and after the run has ended', () => {
    const core = new TeamCore().posted('build a clock', start);
    const again = () => core.post('build a clock', start);
    expect(again()).toMatchObject({ entries: [], reply: { duplicate: true, index: 3 } });
    core.crash();
    expect(again()).toMatchObject({ entries: [], reply: { duplicate: true, index: 3 } });
    core.do({ type: 'set-mode', mode: 'chat', by: PERSON });
    expect(again()).toMatchObject({ entries: [], reply: { duplicate: true, index: 3 } });
    expect(core.entries.filter(({ type }) => type === 'run-started')).toHaveLength(1);
  });

  it('a post with a workflow and the id of a message without one, or with another one, is refused', () => {
    const core = new TeamCore().posted('build a clock', start);
    for (const workflow of [undefined, 'talk'])
      expect(core.post('build a clock', { id: 'begin', ...(workflow && { workflow }) }).reply).toMatchObject({
        refusal: errorWith('ID_CONFLICT', 'another "workflow"'),
      });
  });

  it('a post with a workflow is refused while a run is active, with its node and the known workflows', () => {
    const core = new TeamCore().posted('build a clock', start);
    for (const workflow of ['ship-it', 'talk'])
      expect(core.post('and a lamp', { workflow })).toMatchObject({
        entries: [],
        reply: {
          refusal: {
            code: 'RUN_CONFLICT',
            message: 'a run of ship-it is active in this conversation, at the node plan',
            hint: expect.stringContaining('workflows: ship-it, talk, side'),
          },
        },
      });
    core.do({ type: 'set-mode', mode: 'chat', by: PERSON });
    expect(core.post('and a lamp', { workflow: 'talk' }).reply).toMatchObject({ kind: 'posted' });
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
    [
      { ...start, schema: { type: 'object' } },
      'INVALID_FIELD',
      'field workflow: it cannot be combined with schema',
    ],
  ])('a post with the fields %j is refused as a whole', (more, code, message) => {
    const core = new TeamCore();
    const { entries, reply } = core.post('build a clock', more);
    expect(entries).toEqual([]);
    expect(reply).toMatchObject({ kind: 'refused', refusal: { code, message } });
    expect(core.entries).toEqual([]);
  });

  it('a post with a workflow answers no open question', () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, ['ask', { question: 'where?' }]);
    core.post('a clock', { workflow: 'talk' });
    expect(core.turn('pm')?.openCalls).toHaveLength(1);
    core.post('there');
    expect(core.result('ask')).toBe('there');
  });
});

type Options = ConstructorParameters<typeof TeamCore>[0];

const { build: _, ...nodes } = SHIP_IT.nodes;
const WITHOUT_BUILD: Workflow = { ...SHIP_IT, nodes };

/** What the configuration lacks after the restart, and the reason in the log. */
const REMOVED: readonly [string, Options, string][] = [
  ['its agent', { slugs: ['pm', 'qa'] }, 'agent dev was removed from the configuration'],
  ['its workflow', { workflows: [TALK] }, 'workflow ship-it was removed from the configuration'],
  ['its node', { workflows: [WITHOUT_BUILD] }, 'node build of ship-it was removed from the configuration'],
];

/** A run at the node of dev, whose turn has ended without an outcome. */
function atIdleNode(): TeamCore {
  const core = new TeamCore();
  core.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', input: 'build a clock', by: PERSON });
  core.act('pm', null, done('planned'));
  core.act('dev', 'not yet');
  expect(core.conversation.state.run).toMatchObject({ node: 'build', agent: 'dev' });
  return core;
}

function restarted(core: TeamCore, options: Options): TeamCore {
  const later = new TeamCore(options, false);
  later.conversation = new Conversation(later.rules, [...core.entries]);
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
    const core = new TeamCore();
    core.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', input: 'build a clock', by: PERSON });
    core.act('pm', null, done('planned'));
    const later = restarted(core, { workflows: [TALK] });
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
