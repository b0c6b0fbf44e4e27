import { describe, expect, it } from 'vitest';
import {
  accountsOf,
  Conversation,
  checkLaws,
  type HireRequest,
  type HiringRules,
} from '../../../src/conversation/index.ts';
import { typed } from './life.ts';
import { type Called, PERSON, Team } from './team.ts';
import { card } from './world.ts';

const OWN: string[] = ['hire', 'dismiss', 'delegate', 'handoff', 'ask', 'look', 'write', 'mcp__files__*'];

function teamOf(hiring: Partial<HiringRules> = {}): Team {
  const cards = [
    card('pm', { tools: OWN, model: 'large' }),
    card('dev', { tools: ['look'], model: 'small' }),
  ];
  return new Team({ cards, models: ['large', 'small'], hiring });
}

/** pm hires an agent in a turn of its own. */
function hires(team: Team, request: Partial<HireRequest> = {}, ...more: readonly Called[]): string {
  if (!team.turn('pm')) team.post('Hire somebody', { to: ['pm'] });
  team.act('pm', null, ['hire', { slug: 'scout', persona: 'Look around.', ...request }], ...more);
  return team.result('hire');
}

function commandOf(team: Team, agent: Partial<HireRequest> = {}) {
  return team.do({ type: 'hire', agent: { slug: 'scout', persona: 'Look.', ...agent }, by: PERSON }).reply;
}

function useTokens(team: Team, agent: string, inputTokens: number, usd = 0): void {
  const { turnId } = team.callOf(agent);
  const usage = { inputTokens, outputTokens: 0, usd };
  const report = { agent, turnId, duration: 1, requestHash: 'hash', upTo: team.entries.length };
  team.do({ type: 'model-answered', ...report, answer: { content: 'done', toolCalls: [], usage } });
}

const active = (team: Team) => [...team.conversation.roster.agents.keys()];

describe('an agent that hires', () => {
  it('a hired agent takes part from the next entry, and the log contains its card', () => {
    const team = teamOf();
    const result = hires(team, { tools: ['look'], budget: { tokens: 100 }, description: 'looks\n  around' });
    expect(result).toBe('scout is part of this conversation now.');
    expect(team.last('agent-hired')).toMatchObject({
      ...{ agent: 'scout', name: 'Scout (hired)', description: 'looks around', persona: 'Look around.' },
      ...{ tools: ['look'], model: 'large', budget: { tokens: 100 }, by: 'pm', depth: 1 },
      author: { kind: 'agent', id: 'pm' },
    });
    expect(active(team)).toEqual(['dev', 'pm', 'scout']);
  });

  it('an agent delegates to a new agent in the same answer', () => {
    const team = teamOf();
    hires(team, {}, ['delegate', { to: 'scout', request: 'look' }]);
    team.act('scout', 'nothing there');
    expect(team.result('delegate')).toBe('nothing there');
    expect(team.turn('pm')?.status).toBe('running');
  });

  it.each([
    { what: 'a tool that it does not have', request: { tools: ['shell'] }, code: 'TOOL_NOT_AVAILABLE' },
    { what: 'a wider pattern', request: { tools: ['mcp__files*'] }, code: 'TOOL_NOT_AVAILABLE' },
    {
      what: 'a text that is no tool name',
      request: { tools: ['mcp__files__\nx'] },
      code: 'TOOL_NOT_AVAILABLE',
    },
    { what: 'a tool of workflow nodes', request: { tools: ['complete_node'] }, code: 'TOOL_NOT_AVAILABLE' },
    { what: 'a model that is not configured', request: { model: 'huge' }, code: 'UNKNOWN_MODEL' },
    { what: 'the slug of an agent', request: { slug: 'dev' }, code: 'NAME_TAKEN' },
    { what: 'the name of an agent', request: { name: 'dev' }, code: 'NAME_TAKEN' },
    { what: 'a name that looks like an agent', request: { name: 'Dеv' }, code: 'NAME_TAKEN' },
    { what: 'the name of a person in the conversation', request: { name: 'Alice' }, code: 'NAME_TAKEN' },
    { what: 'the publisher of a person', request: { slug: 'alice' }, code: 'NAME_TAKEN' },
    { what: 'a name that a person imitated', request: { slug: 'carla' }, code: 'NAME_TAKEN' },
    { what: 'a configured person', request: { slug: 'carol' }, code: 'NAME_TAKEN' },
    { what: 'the publisher of callers at `/v1`', request: { slug: 'openai' }, code: 'NAME_TAKEN' },
    { what: 'the name of the operator', request: { slug: 'operator' }, code: 'NAME_TAKEN' },
    { what: 'the name of the system', request: { name: 'Parley' }, code: 'NAME_TAKEN' },
    { what: 'an invalid slug', request: { slug: '../x' }, code: 'INVALID_FIELD' },
    { what: 'a name with a line break', request: { name: 'A\nB' }, code: 'INVALID_FIELD' },
    { what: 'a name with a bracket', request: { name: 'A] x' }, code: 'INVALID_FIELD' },
    { what: 'a persona that is too long', request: { persona: 'x'.repeat(20_001) }, code: 'INVALID_FIELD' },
    { what: 'a persona without text', request: { persona: ' ' }, code: 'INVALID_ARGUMENTS' },
    { what: 'an unknown key', request: { phases: ['plan'] } as object, code: 'INVALID_ARGUMENTS' },
  ])('an agent cannot give $what', ({ request, code }) => {
    const team = teamOf({ people: ['carol', 'agent carla'] });
    expect(hires(team, request)).toContain(code);
    expect(typed(team.entries, 'agent-hired')).toEqual([]);
    expect(team.turn('pm')?.status).toBe('running');
  });

  it('an agent gives a part of a pattern that it has', () => {
    const team = teamOf();
    hires(team, { tools: ['mcp__files__read', 'mcp__files__l*'] });
    expect(team.last('agent-hired').tools).toEqual(['mcp__files__read', 'mcp__files__l*']);
  });

  it('an agent needs the tool `hire` to hire', () => {
    const team = teamOf();
    team.post('Hire', { to: ['dev'] });
    team.act('dev', null, ['hire', { slug: 'scout', persona: 'Look.' }]);
    expect(team.result('hire')).toContain('TOOL_NOT_AVAILABLE');
  });

  it('an agent gives at most what is left of its own budget, which includes the use of its hired agents', () => {
    const team = teamOf();
    hires(team, { slug: 'lead', tools: OWN, budget: { tokens: 1_000 } }, [
      'delegate',
      { to: 'lead', request: 'go' },
    ]);
    team.act(
      'lead',
      null,
      ['hire', { slug: 'scout', persona: 'Look.', budget: { tokens: 600 } }],
      ['delegate', { to: 'scout', request: 'go' }],
    );
    useTokens(team, 'scout', 500);
    const lead = (tokens: number) =>
      team.act('lead', null, ['hire', { slug: `s${tokens}`, persona: 'Look.', budget: { tokens } }]);
    lead(501);
    expect(team.result('hire')).toContain('BUDGET_EXCEEDED');
    expect(team.result('hire')).toContain('the 500 that are left');
    lead(500);
    expect(team.result('hire')).toContain('is part of this conversation');
  });

  it('an agent gives at most what is left of the limits of the conversation', () => {
    const team = teamOf({ tokensPerConversation: 100, usdPerConversation: 1 });
    expect(hires(team, { budget: { tokens: 101 } })).toContain('BUDGET_EXCEEDED');
    expect(hires(team, { budget: { usd: 1.5 } })).toContain('BUDGET_EXCEEDED');
    expect(hires(team, { budget: { tokens: 100, usd: 1 } })).toContain('is part of');
  });

  it('the depth of hiring is limited', () => {
    const team = teamOf();
    hires(team, { slug: 'a', tools: OWN }, ['delegate', { to: 'a', request: 'go' }]);
    const below = (slug: string): Called => ['hire', { slug, persona: 'x', tools: OWN }];
    team.act('a', null, below('b'), ['delegate', { to: 'b', request: 'go' }]);
    expect(team.last('agent-hired').depth).toBe(2);
    team.act('b', null, below('c'));
    expect(team.result('hire')).toContain('HIRE_LIMIT');
  });

  it('the number of hired agents is limited, and a dismissal frees a place', () => {
    const team = teamOf({ agents: 1 });
    hires(team);
    expect(hires(team, { slug: 'other' })).toContain('HIRE_LIMIT');
    team.act('pm', null, ['dismiss', { agent: 'scout' }]);
    expect(hires(team, { slug: 'other' })).toContain('is part of');
  });

  it('an agent cannot hire where the rules do not allow it', () => {
    const cards = [card('pm', { tools: OWN, model: 'large' })];
    expect(hires(new Team({ cards, models: ['large'] }))).toContain('HIRE_LIMIT');
  });
});

describe('a hired agent', () => {
  it('a hired agent answers a mention, and a delegation to its name', () => {
    const team = teamOf();
    hires(team);
    expect(team.post('@scout look').reply).toMatchObject({ kind: 'posted', agents: ['scout'] });
    team.act('pm', null, ['delegate', { to: 'Scout', request: 'go' }]);
    expect(team.last('delegation-requested')).toMatchObject({ to: 'scout' });
  });

  it('an agent that is hired under the name of a publisher does not keep that publisher from posting and commanding', () => {
    const team = teamOf();
    hires(team);
    expect(team.post('Hello', { by: 'scout' }).reply).toMatchObject({ kind: 'posted' });
    const by = { kind: 'person', id: 'scout', name: 'Scout' } as const;
    expect(team.do({ type: 'stop', agent: null, by }).reply).toMatchObject({ kind: 'done' });
  });

  it.each(['Scout (hired)', 'SCOUT（ʜired）', 'Anyone (h1red)', 'agent Scout (hired)'])(
    'no person may sign as %j, which is a name of hired agents',
    (by) => {
      const team = teamOf();
      hires(team);
      expect(team.post('Hello', { by }).reply).toMatchObject({ refusal: { code: 'AUTHOR_IS_AN_AGENT' } });
    },
  );

  it('a hired agent loses a tool that its maker loses, and is removed with its maker or its model', () => {
    const team = teamOf();
    hires(team, { tools: ['look', 'write'], model: 'small' });
    const opened = (tools: readonly string[] | null, models: readonly string[]) => {
      const cards = [card('dev', { model: 'small' }), ...(tools ? [card('pm', { tools })] : [])];
      const { rules } = new Team({ cards, models });
      return new Conversation(rules, [...team.entries]).roster.agents.get('scout')?.tools;
    };
    expect(opened(OWN, ['small'])).toEqual(['look', 'write']);
    expect(opened(['look'], ['small'])).toEqual(['look']);
    expect(opened(OWN, ['large'])).toBeUndefined();
    expect(opened(null, ['small'])).toBeUndefined();
  });

  it('the policy of its first maker judges the calls of a hired agent', () => {
    const judged: string[] = [];
    const tools = {
      judge: ({ agent }: { agent: string }) => {
        judged.push(agent);
        return { kind: 'run', risk: 'safe' } as const;
      },
      fingerprint: (text: string) => text,
    };
    const cards = [card('pm', { tools: OWN, model: 'large' })];
    const team = new Team({ cards, models: ['large'], hiring: {}, tools });
    hires(team, { tools: ['look'] }, ['delegate', { to: 'scout', request: 'go' }]);
    team.act('scout', null, ['look']);
    expect(new Set(judged)).toEqual(new Set(['pm']));
  });

  it('a configured agent with the same slug replaces a hired agent', () => {
    const team = teamOf();
    hires(team);
    const cards = [card('pm', { tools: OWN }), card('scout', { description: 'configured' })];
    const { rules } = new Team({ cards, models: ['large'] });
    const { roster } = new Conversation(rules, [...team.entries]);
    expect(roster.agents.get('scout')?.description).toBe('configured');
    expect(roster.hired?.has('scout')).toBe(false);
  });
});

describe('an operator', () => {
  it('an operator hires with any configured tool, and the same request again changes nothing', () => {
    const team = teamOf({ isConfigured: (tool) => tool === 'shell' });
    expect(commandOf(team, { tools: ['shell', 'hire'] })).toEqual({ kind: 'done' });
    const { length } = team.entries;
    expect(commandOf(team, { tools: ['shell', 'hire'] })).toEqual({ kind: 'done' });
    expect(team.entries).toHaveLength(length);
    expect(team.last('agent-hired')).toMatchObject({ by: 'operator', depth: 1, model: 'large' });
    expect(commandOf(team, { tools: ['shell'] })).toMatchObject({ refusal: { code: 'NAME_TAKEN' } });
    expect(commandOf(team, { slug: 'other', tools: ['unknown'] })).toMatchObject({
      refusal: { code: 'TOOL_NOT_AVAILABLE' },
    });
  });

  it('an operator dismisses any hired agent, also again, and no configured one', () => {
    const team = teamOf();
    hires(team);
    const dismiss = (agent: string) => team.do({ type: 'dismiss', agent, by: PERSON }).reply;
    expect([dismiss('scout'), dismiss('scout')]).toEqual([{ kind: 'done' }, { kind: 'done' }]);
    expect(typed(team.entries, 'agent-dismissed')).toHaveLength(1);
    expect(dismiss('dev')).toMatchObject({ refusal: { code: 'UNKNOWN_AGENT' } });
  });
});

describe('a dismissal', () => {
  it('the dismissal of an agent with a running turn answers its asker, and the report of its turn ends the turn', () => {
    const team = teamOf();
    hires(team, {}, ['delegate', { to: 'scout', request: 'go' }]);
    const call = team.callOf('scout');
    const { effects } = team.do({ type: 'dismiss', agent: 'scout', by: PERSON });
    expect(effects).toMatchObject([{ type: 'abort-turn', agent: 'scout' }]);
    team.abort(call, 'half');
    expect(team.result('delegate')).toBe('half\n\n[scout did not finish: its turn was aborted]');
    expect(team.turn('pm')?.status).toBe('running');
  });

  it('a dismissal ends a waiting turn at once', () => {
    const team = teamOf();
    hires(team, { tools: ['ask'] }, ['delegate', { to: 'scout', request: 'go' }]);
    team.act('scout', null, ['ask', { question: 'Where?' }]);
    team.do({ type: 'dismiss', agent: 'scout', by: PERSON });
    expect(team.outcomes('scout')).toEqual(['waiting', 'aborted']);
    expect(team.result('delegate')).toContain('its turn was aborted');
  });

  it('a dismissal ends the posts that wait for the agent in the same way, and leaves no outstanding work', () => {
    const team = teamOf();
    hires(team);
    team.post('@scout one');
    const call = team.callOf('scout');
    team.post('@scout two', { delivery: 'queue' });
    team.do({ type: 'dismiss', agent: 'scout', by: PERSON });
    team.abort(call);
    expect(team.outcomes('scout')).toEqual(['aborted', 'aborted']);
    team.act('pm', 'done');
    expect(team.calls).toEqual([]);
    expect(team.post('@scout three').reply).toMatchObject({ agents: ['pm'] });
  });

  it('a dismissal works in the answer that delegated to the agent', () => {
    const team = teamOf();
    hires(team, {}, ['delegate', { to: 'scout', request: 'go' }], ['dismiss', { agent: 'scout' }]);
    expect(team.result('delegate')).toContain('its turn was aborted');
    expect(team.turn('pm')?.status).toBe('running');
    expect(team.calls.map(({ agent }) => agent)).toEqual(['pm']);
  });

  it('a dismissal includes the agents that the dismissed agent hired', () => {
    const team = teamOf();
    hires(team, { slug: 'lead', tools: ['hire', 'delegate', 'ask'] }, [
      'delegate',
      { to: 'lead', request: 'go' },
    ]);
    team.act(
      'lead',
      null,
      ['hire', { slug: 'scout', persona: 'x' }],
      ['delegate', { to: 'scout', request: 'go' }],
    );
    const call = team.callOf('scout');
    team.do({ type: 'dismiss', agent: 'lead', by: PERSON });
    expect(typed(team.entries, 'agent-dismissed').map(({ agent }) => agent)).toEqual(['lead', 'scout']);
    team.abort(call);
    expect(active(team)).toEqual(['dev', 'pm']);
    expect(team.turn('lead')).toBeNull();
    expect(team.turn('pm')?.status).toBe('running');
  });

  it('a maker may dismiss only the agents below it', () => {
    const team = teamOf();
    commandOf(team, { slug: 'other' });
    hires(team);
    team.act('pm', null, ['dismiss', { agent: 'other' }]);
    expect(team.result('dismiss')).toContain('FORBIDDEN');
    team.act('pm', null, ['dismiss', { agent: 'nobody' }]);
    expect(team.result('dismiss')).toContain('agents that you can dismiss: scout');
    team.act('pm', null, ['dismiss', { agent: 'scout', reason: 'done' }]);
    expect(team.last('agent-dismissed')).toMatchObject({ agent: 'scout', by: 'pm', reason: 'done' });
  });

  it('the slug and the name of a dismissed agent stay reserved for it, and people may have them', () => {
    const team = teamOf();
    hires(team);
    team.act('pm', null, ['dismiss', { agent: 'scout' }]);
    expect(hires(team)).toContain('NAME_TAKEN');
    expect(team.post('Hello', { by: 'scout' }).reply).toMatchObject({ kind: 'posted' });
  });

  it('the turn of a dismissed agent is aborted after a crash as well', () => {
    const team = teamOf();
    hires(team, {}, ['delegate', { to: 'scout', request: 'go' }]);
    team.do({ type: 'dismiss', agent: 'scout', by: PERSON });
    team.crash();
    expect(team.outcomes('scout')).toEqual(['aborted']);
    expect(team.result('delegate')).toContain('its turn was aborted');
    expect(checkLaws(team.entries)).toEqual([]);
  });
});

const HIRING_TOOLS: string[] = ['hire', 'dismiss', 'look'];

/** pm has hired scout, and its turn has ended. */
function hiring(request: Partial<HireRequest>): Team {
  const cards = [card('pm', { tools: HIRING_TOOLS, model: 'large' }), card('dev', { model: 'large' })];
  const team = new Team({ cards, models: ['large'], hiring: {} }).posted('Hire somebody', { to: ['pm'] });
  team.act('pm', null, ['hire', { slug: 'scout', persona: 'Look around.', ...request }]);
  team.act('pm', 'done');
  return team;
}

/** The same log under a configuration with these agents. */
function reconfigured(team: Team, agents: Readonly<Record<string, readonly string[]>>): Team {
  const cards = Object.entries(agents).map(([slug, tools]) => card(slug, { tools, model: 'large' }));
  const later = new Team({ cards, models: ['large', 'small'], hiring: {} }, false);
  later.conversation = new Conversation(later.rules, [...team.entries]);
  return later;
}

describe('a configured agent with the slug of a hired one', () => {
  function replaced(): Team {
    const team = hiring({ tools: ['hire', 'look'], budget: { tokens: 10 } });
    return reconfigured(team, { pm: HIRING_TOOLS, scout: HIRING_TOOLS });
  }

  it('the configured agent has neither the budget nor the depth of the hired one', () => {
    const team = replaced();
    const { state, roster } = team.conversation;
    expect(accountsOf(state, roster, 'scout')).toEqual([]);
    team.post('@scout hire', { id: 'p1' });
    team.act('scout', null, ['hire', { slug: 'below', persona: 'x', budget: { tokens: 50 } }]);
    expect(team.last('agent-hired')).toMatchObject({ agent: 'below', depth: 1 });
  });

  it('no agent and no operator can dismiss the configured agent, and it keeps its turn', () => {
    const team = replaced();
    team.post('@scout go', { id: 'p1' });
    expect(team.do({ type: 'dismiss', agent: 'scout', by: PERSON })).toMatchObject({
      ...{ reply: { refusal: { code: 'UNKNOWN_AGENT' } }, effects: [] },
    });
    team.post('@pm dismiss', { id: 'p2' });
    team.act('pm', null, ['dismiss', { agent: 'scout' }]);
    expect(team.result('dismiss')).toContain('UNKNOWN_AGENT');
    expect(typed(team.entries, 'agent-dismissed')).toEqual([]);
  });

  it('HIRING-5: the configured agent may hire an agent with the slug of its former maker, since budgets and dismissals ended', () => {
    const team = hiring({ tools: ['hire', 'dismiss'], budget: { tokens: 10 } });
    const later = reconfigured(team, { dev: [], scout: HIRING_TOOLS });
    later.post('@scout hire', { id: 'p1' });
    later.act('scout', null, ['hire', { slug: 'pm', persona: 'x', tools: ['hire', 'dismiss'] }]);
    expect(later.result('hire')).toContain('pm is part of this conversation');
    const { state, roster } = later.conversation;
    expect(accountsOf(state, roster, 'pm').map(({ agent }) => agent)).toEqual(['pm']);
    later.act('scout', null, ['dismiss', { agent: 'pm' }]);
    expect(later.last('agent-dismissed')).toMatchObject({ agent: 'pm', by: 'scout' });
  });
});
