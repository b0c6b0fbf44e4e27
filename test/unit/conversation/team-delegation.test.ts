import { describe, expect, it } from 'vitest';
import { expectCursors } from './core.ts';
import { kinds, TeamCore } from './team-core.ts';

const to = (agent: string, request = 'please') => ['delegate', { to: agent, request }] as const;

describe('a delegation', () => {
  it('a delegation is durable before the other agent starts, in one append, and the asker waits', () => {
    const core = new TeamCore().posted('go');
    const { entries, effects } = core.act('pm', 'I ask dev.', to('dev', 'build it'));
    expect(kinds(entries)).toEqual([
      'assistant pm',
      'delegation-requested',
      'turn-ended pm waiting',
      'turn-started dev',
    ]);
    expect(entries[1]).toMatchObject({
      from: 'pm',
      to: 'dev',
      request: 'build it',
      call: { index: 2, position: 0 },
      hops: 1,
    });
    expect(effects).toMatchObject([{ type: 'call-model', agent: 'dev', key: 5 }]);
    expect(core.request('dev')).toEqual([
      ['user', 'go'],
      ['system', '[Pm]: I ask dev.'],
      ['system', '[Pm]: build it'],
    ]);
  });

  it("a delegation returns the delegate's last message, which appears after its call and nowhere else", () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, to('dev'));
    core.act('dev', 'let me look', ['look']);
    core.finish(core.tools[0] ?? expect.unreachable(), 'seen');
    const { entries } = core.act('dev', 'it is fine');
    expect(kinds(entries)).toEqual([
      'assistant dev',
      'title-set',
      'turn-ended dev completed',
      'delegation-answered',
      'tool pm',
      'turn-started pm',
    ]);
    const words = entries[0]?.index ?? -1;
    expect(entries[3]).toMatchObject({ from: 'dev', to: 'pm', answers: [words], late: false });
    expect(entries[4]).toMatchObject({
      content: 'it is fine',
      answers: [words],
      call: { index: 2, position: 0 },
    });
    expect(entries[5]).toMatchObject({ resumed: true, trigger: [words], turnId: core.turn('pm')?.turnId });
    expect(core.request('pm')).toEqual([
      ['user', 'go'],
      ['assistant', null],
      ['tool', 'it is fine'],
    ]);
    core.act('pm', 'done');
    expectCursors(core.entries);
    expect(core.outcomes('pm')).toEqual(['waiting', 'completed']);
  });

  it.each([[['dev', 'qa']], [['qa', 'dev']]])(
    'several delegations run at the same time, and with answers in the order %j the results are in call order',
    (order) => {
      const core = new TeamCore().posted('go');
      const { entries } = core.act('pm', null, to('dev'), to('qa'));
      expect(core.calls.map((call) => call.agent).sort()).toEqual(['dev', 'qa']);
      const call = entries[0]?.index ?? -1;
      for (const [at, agent] of order.entries()) {
        expect(core.turn('pm')?.status).toBe('waiting');
        core.act(agent, `${agent} says ${at}`);
      }
      expect(core.resultsAt(call)).toEqual(
        ['dev', 'qa'].map((slug) => `${slug} says ${order.indexOf(slug)}`),
      );
      expect(core.calls.map((out) => out.agent)).toEqual(['pm']);
      expect(core.outcomes('pm')).toEqual(['waiting']);
      const woken = core.last('turn-started');
      expect(woken.trigger).toHaveLength(2);
    },
  );

  it('two delegations to one agent in one answer start two turns of it, one after the other', () => {
    const core = new TeamCore().posted('go');
    const { entries } = core.act('pm', null, to('dev', 'a'), to('dev', 'b'));
    core.act('dev', 'did a');
    expect(core.request('dev').at(-1)).toEqual(['system', '[Pm]: b']);
    core.act('dev', 'did b');
    expect(core.resultsAt(entries[0]?.index ?? -1)).toEqual(['did a', 'did b']);
  });

  it('a delegation starts at once, though another tool of the same answer still runs', () => {
    const core = new TeamCore().posted('go');
    const { effects } = core.act('pm', null, to('dev'), ['look']);
    expect(effects.map((effect) => [effect.type, effect.agent])).toEqual([
      ['run-tool', 'pm'],
      ['call-model', 'dev'],
    ]);
    core.act('dev', 'early');
    expect(core.turn('pm')?.status).toBe('running');
    expect(core.calls).toEqual([]);
    core.finish(core.tools[0] ?? expect.unreachable(), 'seen');
    expect(core.calls.map((call) => call.agent)).toEqual(['pm']);
    expect(core.outcomes('pm')).toEqual([]); // It never waited.
  });

  it.each([
    ['to oneself', 'pm', 'TO_YOURSELF', 'that is you'],
    ['to an agent that does not exist', 'nobody', 'UNKNOWN_AGENT', 'there are dev, qa'],
    ['to a name that every object has', 'constructor', 'UNKNOWN_AGENT', 'there are dev, qa'],
  ])('a delegation %s is refused, and the model is called again', (_, slug, code, words) => {
    const core = new TeamCore().posted('go');
    const { entries, effects } = core.act('pm', null, to(slug));
    expect(kinds(entries)).toEqual(['assistant pm', 'tool pm']);
    expect(JSON.parse(core.result('delegate'))).toMatchObject({
      error: { code, message: expect.stringContaining(words) },
    });
    expect(effects).toMatchObject([{ type: 'call-model', agent: 'pm' }]);
  });

  it.each(['dev', '@dev', 'Dev', '@DEV', ' Dev '])('a delegation to %j reaches dev', (named) => {
    const core = new TeamCore().posted('go');
    const { entries } = core.act('pm', null, to(named));
    expect(entries[1]).toMatchObject({ type: 'delegation-requested', to: 'dev' });
  });

  it('a handoff to a name of an agent reaches it', () => {
    const core = new TeamCore().posted('go');
    const { entries } = core.act('pm', null, ['handoff', { to: '@Dev', summary: 'build it' }]);
    expect(entries).toContainEqual(expect.objectContaining({ type: 'handoff', to: 'dev' }));
  });

  it('a refused delegation says which agent was probably meant', () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, to('devv'));
    expect(core.result('delegate')).toContain('did you mean dev?');
  });

  it.each([
    ['{', 'not a JSON object'],
    ['[]', 'delegate'],
    ['{"to":"dev"}', 'request'],
    ['{"to":"dev","request":""}', 'request'],
    ['{"to":"dev","request":"x","extra":1}', 'extra'],
    ['{"to":1,"request":"x"}', 'to: '],
  ])('a delegation with the arguments %s is refused with the reason', (given, words) => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, ['delegate', given]);
    expect(JSON.parse(core.result('delegate'))).toMatchObject({
      error: { code: 'INVALID_ARGUMENTS', message: expect.stringContaining(words) },
    });
    expect(core.calls.map((call) => call.agent)).toEqual(['pm']);
  });

  it('a call of a tool that the agent does not have is refused', () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, ['complete_node', { outcome: 'x', summary: 'y' }]);
    expect(core.result('complete_node')).toContain('TOOL_NOT_AVAILABLE');
  });

  it('V13: a delegation to any agent of its own chain is a cycle and is refused', () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, to('dev'));
    core.act('dev', null, to('qa'));
    for (const slug of ['pm', 'dev']) {
      core.act('qa', null, to(slug));
      expect(JSON.parse(core.result('delegate'))).toMatchObject({
        error: { code: 'DELEGATION_CIRCLE', message: expect.stringContaining('pm → dev → qa') },
      });
    }
    expect(core.calls.map((call) => call.agent)).toEqual(['qa']);
  });

  it('V13: two agents with turns of their own cannot wait for each other', () => {
    const core = new TeamCore().posted('@pm @dev: go');
    core.act('pm', null, to('dev'));
    expect(core.turn('pm')?.status).toBe('waiting');
    core.act('dev', null, to('pm'));
    expect(core.result('delegate')).toContain('DELEGATION_CIRCLE');
    core.drain();
    expect(core.outcomes('pm')).toEqual(['waiting', 'completed']);
    expect(core.outcomes('dev')).toEqual(['completed', 'completed']);
  });

  it('V13: three agents with turns of their own cannot wait for each other', () => {
    const core = new TeamCore().posted('@pm @dev @qa: go');
    core.act('pm', null, to('dev'));
    core.act('dev', null, to('qa'));
    core.act('qa', null, to('pm'));
    expect(core.result('delegate')).toContain('DELEGATION_CIRCLE');
    core.drain();
    for (const slug of ['pm', 'dev', 'qa']) expect(core.turn(slug)).toBeNull();
  });

  it('a delegation inherits the hops of its asker, and the limit is an entry that people see', () => {
    const core = new TeamCore({ hopsPerTrigger: 2 }).posted('go');
    core.act('pm', null, to('dev'));
    core.act('dev', null, to('qa'));
    const { entries } = core.act('qa', null, to('other'), ['handoff', { to: 'pm', summary: 'x' }]);
    expect(kinds(entries)).toEqual(['assistant qa', 'tool qa', 'limit-reached', 'tool qa']);
    expect(core.result('delegate')).toContain('UNKNOWN_AGENT');
    expect(core.result('handoff')).toContain('HOP_LIMIT');
    core.act('qa', 'I cannot');
    expect(core.result('delegate')).toBe('I cannot');
  });
});
