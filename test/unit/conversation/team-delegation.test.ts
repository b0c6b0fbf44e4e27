import { describe, expect, it } from 'vitest';
import { kinds, Team } from './team.ts';
import { expectCursors } from './world.ts';

const to = (agent: string, request = 'please') => ['delegate', { to: agent, request }] as const;

describe('a delegation', () => {
  it('a delegation is durable before the other agent starts, in one append, and the asker waits', () => {
    const team = new Team().posted('go');
    const { entries, effects } = team.act('pm', 'I ask dev.', to('dev', 'build it'));
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
    expect(team.request('dev')).toEqual([
      ['user', 'go'],
      ['system', '[Pm]: I ask dev.'],
      ['system', '[Pm]: build it'],
    ]);
  });

  it("a delegation returns the delegate's last message, which appears after its call and nowhere else", () => {
    const team = new Team().posted('go');
    team.act('pm', null, to('dev'));
    team.act('dev', 'let me look', ['look']);
    team.finish(team.tools[0] ?? expect.unreachable(), 'seen');
    const { entries } = team.act('dev', 'it is fine');
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
    expect(entries[5]).toMatchObject({ resumed: true, trigger: [words], turnId: team.turn('pm')?.turnId });
    expect(team.request('pm')).toEqual([
      ['user', 'go'],
      ['assistant', null],
      ['tool', 'it is fine'],
    ]);
    team.act('pm', 'done');
    expectCursors(team.entries);
    expect(team.outcomes('pm')).toEqual(['waiting', 'completed']);
  });

  it.each([[['dev', 'qa']], [['qa', 'dev']]])(
    'several delegations run at the same time, and with answers in the order %j the results are in call order',
    (order) => {
      const team = new Team().posted('go');
      const { entries } = team.act('pm', null, to('dev'), to('qa'));
      expect(team.calls.map((call) => call.agent).sort()).toEqual(['dev', 'qa']);
      const call = entries[0]?.index ?? -1;
      for (const [at, agent] of order.entries()) {
        expect(team.turn('pm')?.status).toBe('waiting');
        team.act(agent, `${agent} says ${at}`);
      }
      expect(team.resultsAt(call)).toEqual(
        ['dev', 'qa'].map((slug) => `${slug} says ${order.indexOf(slug)}`),
      );
      expect(team.calls.map((out) => out.agent)).toEqual(['pm']);
      expect(team.outcomes('pm')).toEqual(['waiting']);
      const woken = team.last('turn-started');
      expect(woken.trigger).toHaveLength(2);
    },
  );

  it('two delegations to one agent in one answer start two turns of it, one after the other', () => {
    const team = new Team().posted('go');
    const { entries } = team.act('pm', null, to('dev', 'a'), to('dev', 'b'));
    team.act('dev', 'did a');
    expect(team.request('dev').at(-1)).toEqual(['system', '[Pm]: b']);
    team.act('dev', 'did b');
    expect(team.resultsAt(entries[0]?.index ?? -1)).toEqual(['did a', 'did b']);
  });

  it('a delegation starts at once, though another tool of the same answer still runs', () => {
    const team = new Team().posted('go');
    const { effects } = team.act('pm', null, to('dev'), ['look']);
    expect(effects.map((effect) => [effect.type, effect.agent])).toEqual([
      ['run-tool', 'pm'],
      ['call-model', 'dev'],
    ]);
    team.act('dev', 'early');
    expect(team.turn('pm')?.status).toBe('running');
    expect(team.calls).toEqual([]);
    team.finish(team.tools[0] ?? expect.unreachable(), 'seen');
    expect(team.calls.map((call) => call.agent)).toEqual(['pm']);
    expect(team.outcomes('pm')).toEqual([]); // It never waited.
  });

  it.each([
    ['to oneself', 'pm', 'TO_YOURSELF', 'that is you'],
    ['to an agent that does not exist', 'nobody', 'UNKNOWN_AGENT', 'there are dev, qa'],
    ['to a name that every object has', 'constructor', 'UNKNOWN_AGENT', 'there are dev, qa'],
  ])('a delegation %s is refused, and the model is called again', (_, slug, code, words) => {
    const team = new Team().posted('go');
    const { entries, effects } = team.act('pm', null, to(slug));
    expect(kinds(entries)).toEqual(['assistant pm', 'tool pm']);
    expect(JSON.parse(team.result('delegate'))).toMatchObject({
      error: { code, message: expect.stringContaining(words) },
    });
    expect(effects).toMatchObject([{ type: 'call-model', agent: 'pm' }]);
  });

  it.each(['dev', '@dev', 'Dev', '@DEV', ' Dev '])('a delegation to %j reaches dev', (named) => {
    const team = new Team().posted('go');
    const { entries } = team.act('pm', null, to(named));
    expect(entries[1]).toMatchObject({ type: 'delegation-requested', to: 'dev' });
  });

  it('a handoff to a name of an agent reaches it', () => {
    const team = new Team().posted('go');
    const { entries } = team.act('pm', null, ['handoff', { to: '@Dev', summary: 'build it' }]);
    expect(entries).toContainEqual(expect.objectContaining({ type: 'handoff', to: 'dev' }));
  });

  it('a refused delegation says which agent was probably meant', () => {
    const team = new Team().posted('go');
    team.act('pm', null, to('devv'));
    expect(team.result('delegate')).toContain('did you mean dev?');
  });

  it.each([
    ['{', 'not a JSON object'],
    ['[]', 'delegate'],
    ['{"to":"dev"}', 'request'],
    ['{"to":"dev","request":""}', 'request'],
    ['{"to":"dev","request":"x","extra":1}', 'extra'],
    ['{"to":1,"request":"x"}', 'to: '],
  ])('a delegation with the arguments %s is refused with the reason', (given, words) => {
    const team = new Team().posted('go');
    team.act('pm', null, ['delegate', given]);
    expect(JSON.parse(team.result('delegate'))).toMatchObject({
      error: { code: 'INVALID_ARGUMENTS', message: expect.stringContaining(words) },
    });
    expect(team.calls.map((call) => call.agent)).toEqual(['pm']);
  });

  it('a call of a tool that the agent does not have is refused', () => {
    const team = new Team().posted('go');
    team.act('pm', null, ['complete_node', { outcome: 'x', summary: 'y' }]);
    expect(team.result('complete_node')).toContain('TOOL_NOT_AVAILABLE');
  });

  it('V13: a delegation to any agent of its own chain is a cycle and is refused', () => {
    const team = new Team().posted('go');
    team.act('pm', null, to('dev'));
    team.act('dev', null, to('qa'));
    for (const slug of ['pm', 'dev']) {
      team.act('qa', null, to(slug));
      expect(JSON.parse(team.result('delegate'))).toMatchObject({
        error: { code: 'DELEGATION_CIRCLE', message: expect.stringContaining('pm → dev → qa') },
      });
    }
    expect(team.calls.map((call) => call.agent)).toEqual(['qa']);
  });

  it('V13: two agents with turns of their own cannot wait for each other', () => {
    const team = new Team().posted('@pm @dev: go');
    team.act('pm', null, to('dev'));
    expect(team.turn('pm')?.status).toBe('waiting');
    team.act('dev', null, to('pm'));
    expect(team.result('delegate')).toContain('DELEGATION_CIRCLE');
    team.drain();
    expect(team.outcomes('pm')).toEqual(['waiting', 'completed']);
    expect(team.outcomes('dev')).toEqual(['completed', 'completed']);
  });

  it('V13: three agents with turns of their own cannot wait for each other', () => {
    const team = new Team().posted('@pm @dev @qa: go');
    team.act('pm', null, to('dev'));
    team.act('dev', null, to('qa'));
    team.act('qa', null, to('pm'));
    expect(team.result('delegate')).toContain('DELEGATION_CIRCLE');
    team.drain();
    for (const slug of ['pm', 'dev', 'qa']) expect(team.turn(slug)).toBeNull();
  });

  it('a delegation inherits the hops of its asker, and the limit is an entry that people see', () => {
    const team = new Team({ hopsPerTrigger: 2 }).posted('go');
    team.act('pm', null, to('dev'));
    team.act('dev', null, to('qa'));
    const { entries } = team.act('qa', null, to('other'), ['handoff', { to: 'pm', summary: 'x' }]);
    expect(kinds(entries)).toEqual(['assistant qa', 'tool qa', 'limit-reached', 'tool qa']);
    expect(team.result('delegate')).toContain('UNKNOWN_AGENT');
    expect(team.result('handoff')).toContain('HOP_LIMIT');
    team.act('qa', 'I cannot');
    expect(team.result('delegate')).toBe('I cannot');
  });
});
