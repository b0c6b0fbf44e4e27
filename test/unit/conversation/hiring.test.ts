import { describe, expect, it } from 'vitest';
import {
  accountsOf,
  Conversation,
  checkLaws,
  type HireRequest,
  type HiringRules,
} from '../../../src/conversation/index.ts';
import { card } from './core.ts';
import { typed } from './life.ts';
import { type Called, PERSON, TeamCore } from './team-core.ts';

const OWN: string[] = ['hire', 'dismiss', 'delegate', 'handoff', 'ask', 'look', 'write', 'mcp__files__*'];

function teamOf(hiring: Partial<HiringRules> = {}): TeamCore {
  const cards = [
    card('pm', { tools: OWN, model: 'large' }),
    card('dev', { tools: ['look'], model: 'small' }),
  ];
  return new TeamCore({ cards, models: ['large', 'small'], hiring });
}

/** pm hires an agent in a turn of its own. */
function hires(core: TeamCore, request: Partial<HireRequest> = {}, ...more: readonly Called[]): string {
  if (!core.turn('pm')) core.post('Hire somebody', { to: ['pm'] });
  core.act('pm', null, ['hire', { slug: 'scout', persona: 'Look around.', ...request }], ...more);
  return core.result('hire');
}

function commandOf(core: TeamCore, agent: Partial<HireRequest> = {}) {
  return core.do({ type: 'hire', agent: { slug: 'scout', persona: 'Look.', ...agent }, by: PERSON }).reply;
}

function useTokens(core: TeamCore, agent: string, inputTokens: number): void {
  const { turnId } = core.callOf(agent);
  const usage = { inputTokens, outputTokens: 0, usd: 0 };
  const report = { agent, turnId, duration: 1, requestHash: 'hash', upTo: core.entries.length };
  core.do({ type: 'model-answered', ...report, answer: { content: 'done', toolCalls: [], usage } });
}

const ASK_LEAD = ['delegate', { to: 'lead', request: 'go' }] as const;
const active = (core: TeamCore) => [...core.conversation.roster.agents.keys()];

describe('an agent that hires', () => {
  it('a hired agent takes part from the next entry, and the log contains its card', () => {
    const core = teamOf();
    const result = hires(core, { tools: ['look'], budget: { tokens: 100 }, description: 'looks\n  around' });
    expect(result).toBe('scout is part of this conversation now.');
    expect(core.last('agent-hired')).toMatchObject({
      ...{ agent: 'scout', name: 'Scout (hired)', description: 'looks around', persona: 'Look around.' },
      ...{ tools: ['look'], model: 'large', budget: { tokens: 100 }, by: 'pm', depth: 1 },
      author: { kind: 'agent', id: 'pm' },
    });
    expect(active(core)).toEqual(['dev', 'pm', 'scout']);
  });

  it('an agent delegates to a new agent in the same answer', () => {
    const core = teamOf();
    hires(core, {}, ['delegate', { to: 'scout', request: 'look' }]);
    core.act('scout', 'nothing there');
    expect(core.result('delegate')).toBe('nothing there');
    expect(core.turn('pm')?.status).toBe('running');
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
    const core = teamOf({ people: ['carol', 'agent carla'] });
    expect(hires(core, request)).toContain(code);
    expect(typed(core.entries, 'agent-hired')).toEqual([]);
    expect(core.turn('pm')?.status).toBe('running');
  });

  it('an agent gives a part of a pattern that it has', () => {
    const core = teamOf();
    hires(core, { tools: ['mcp__files__read', 'mcp__files__l*'] });
    expect(core.last('agent-hired').tools).toEqual(['mcp__files__read', 'mcp__files__l*']);
  });

  it('an agent needs the tool `hire` to hire', () => {
    const core = teamOf();
    core.post('Hire', { to: ['dev'] });
    core.act('dev', null, ['hire', { slug: 'scout', persona: 'Look.' }]);
    expect(core.result('hire')).toContain('TOOL_NOT_AVAILABLE');
  });

  it('an agent gives at most what is left of its own budget, which includes the use of its hired agents', () => {
    const core = teamOf();
    hires(core, { slug: 'lead', tools: OWN, budget: { tokens: 1_000 } }, ASK_LEAD);
    core.act(
      'lead',
      null,
      ['hire', { slug: 'scout', persona: 'Look.', budget: { tokens: 600 } }],
      ['delegate', { to: 'scout', request: 'go' }],
    );
    useTokens(core, 'scout', 500);
    const lead = (tokens: number) =>
      core.act('lead', null, ['hire', { slug: `s${tokens}`, persona: 'Look.', budget: { tokens } }]);
    lead(501);
    expect(core.result('hire')).toContain('BUDGET_EXCEEDED');
    expect(core.result('hire')).toContain('the 500 that are left');
    lead(500);
    expect(core.result('hire')).toContain('is part of this conversation');
  });

  it('an agent gives at most what is left of the limits of the conversation', () => {
    const core = teamOf({ tokensPerConversation: 100, usdPerConversation: 1 });
    expect(hires(core, { budget: { tokens: 101 } })).toContain('BUDGET_EXCEEDED');
    expect(hires(core, { budget: { usd: 1.5 } })).toContain('BUDGET_EXCEEDED');
    expect(hires(core, { budget: { tokens: 100, usd: 1 } })).toContain('is part of');
  });

  it('HIRING-5: no agent with a model without a price is hired where dollars are limited, since its calls would count as free', () => {
    const unpriced = new Set(['small']);
    const core = teamOf({ unpriced });
    expect(hires(core, { slug: 'free', model: 'small', budget: { tokens: 100 } })).toContain('is part of');
    expect(hires(core, { model: 'small', budget: { usd: 1 } })).toContain('has no price');
    hires(core, { slug: 'lead', tools: OWN, budget: { usd: 1 } }, ASK_LEAD);
    core.act('lead', null, ['hire', { slug: 'below', persona: 'Look.', model: 'small' }]);
    expect(core.result('hire')).toContain('has no price');
    const limited = teamOf({ unpriced, usdPerConversation: 1 });
    expect(hires(limited, { model: 'small' })).toContain('has no price');
    expect(hires(limited, { slug: 'lead', model: 'large' })).toContain('is part of');
    expect(commandOf(limited, { model: 'small' })).toMatchObject({
      kind: 'refused',
      refusal: { code: 'INVALID_FIELD', hint: expect.stringContaining('models: large;') },
    });
  });

  it('the depth of hiring is limited', () => {
    const core = teamOf();
    hires(core, { slug: 'a', tools: OWN }, ['delegate', { to: 'a', request: 'go' }]);
    const below = (slug: string): Called => ['hire', { slug, persona: 'x', tools: OWN }];
    core.act('a', null, below('b'), ['delegate', { to: 'b', request: 'go' }]);
    expect(core.last('agent-hired').depth).toBe(2);
    core.act('b', null, below('c'));
    expect(core.result('hire')).toContain('HIRE_LIMIT');
  });

  it('the number of hired agents is limited, and a dismissal frees a place', () => {
    const core = teamOf({ agents: 1 });
    hires(core);
    expect(hires(core, { slug: 'other' })).toContain('HIRE_LIMIT');
    core.act('pm', null, ['dismiss', { agent: 'scout' }]);
    expect(hires(core, { slug: 'other' })).toContain('is part of');
  });

  it('an agent cannot hire where the rules do not allow it', () => {
    const cards = [card('pm', { tools: OWN, model: 'large' })];
    expect(hires(new TeamCore({ cards, models: ['large'] }))).toContain('HIRE_LIMIT');
  });
});

describe('a hired agent', () => {
  it('a hired agent answers a mention, and a delegation to its name', () => {
    const core = teamOf();
    hires(core);
    expect(core.post('@scout look').reply).toMatchObject({ kind: 'posted', agents: ['scout'] });
    core.act('pm', null, ['delegate', { to: 'Scout', request: 'go' }]);
    expect(core.last('delegation-requested')).toMatchObject({ to: 'scout' });
  });

  it('an agent that is hired under the name of a publisher does not keep that publisher from posting and commanding', () => {
    const core = teamOf();
    hires(core);
    expect(core.post('Hello', { by: 'scout' }).reply).toMatchObject({ kind: 'posted' });
    const by = { kind: 'person', id: 'scout', name: 'Scout' } as const;
    expect(core.do({ type: 'stop', agent: null, by }).reply).toMatchObject({ kind: 'done' });
  });

  it.each(['Scout (hired)', 'SCOUT（ʜired）', 'Anyone (h1red)', 'agent Scout (hired)'])(
    'no person may sign as %j, which is a name of hired agents',
    (by) => {
      const core = teamOf();
      hires(core);
      expect(core.post('Hello', { by }).reply).toMatchObject({ refusal: { code: 'AUTHOR_IS_AN_AGENT' } });
    },
  );

  it('a hired agent loses a tool that its maker loses, and is removed with its maker or its model', () => {
    const core = teamOf();
    hires(core, { tools: ['look', 'write'], model: 'small' });
    const opened = (tools: readonly string[] | null, models: readonly string[]) => {
      const cards = [card('dev', { model: 'small' }), ...(tools ? [card('pm', { tools })] : [])];
      const { rules } = new TeamCore({ cards, models });
      return new Conversation(rules, [...core.entries]).roster.agents.get('scout')?.tools;
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
    const core = new TeamCore({ cards, models: ['large'], hiring: {}, tools });
    hires(core, { tools: ['look'] }, ['delegate', { to: 'scout', request: 'go' }]);
    core.act('scout', null, ['look']);
    expect(new Set(judged)).toEqual(new Set(['pm']));
  });

  it('a configured agent with the same slug replaces a hired agent', () => {
    const core = teamOf();
    hires(core);
    const cards = [card('pm', { tools: OWN }), card('scout', { description: 'configured' })];
    const { rules } = new TeamCore({ cards, models: ['large'] });
    const { roster } = new Conversation(rules, [...core.entries]);
    expect(roster.agents.get('scout')?.description).toBe('configured');
    expect(roster.hired?.has('scout')).toBe(false);
  });
});

describe('an operator', () => {
  it('an operator hires with any configured tool, and the same request again changes nothing', () => {
    const core = teamOf({ isConfigured: (tool) => tool === 'shell' });
    expect(commandOf(core, { tools: ['shell', 'hire'] })).toEqual({ kind: 'done' });
    const { length } = core.entries;
    expect(commandOf(core, { tools: ['shell', 'hire'] })).toEqual({ kind: 'done' });
    expect(core.entries).toHaveLength(length);
    expect(core.last('agent-hired')).toMatchObject({ by: 'operator', depth: 1, model: 'large' });
    expect(commandOf(core, { tools: ['shell'] })).toMatchObject({ refusal: { code: 'NAME_TAKEN' } });
    expect(commandOf(core, { slug: 'other', tools: ['unknown'] })).toMatchObject({
      refusal: { code: 'TOOL_NOT_AVAILABLE' },
    });
  });

  it('an operator dismisses any hired agent, also again, and no configured one', () => {
    const core = teamOf();
    hires(core);
    const dismiss = (agent: string) => core.do({ type: 'dismiss', agent, by: PERSON }).reply;
    expect([dismiss('scout'), dismiss('scout')]).toEqual([{ kind: 'done' }, { kind: 'done' }]);
    expect(typed(core.entries, 'agent-dismissed')).toHaveLength(1);
    expect(dismiss('dev')).toMatchObject({ refusal: { code: 'UNKNOWN_AGENT' } });
  });
});

describe('a dismissal', () => {
  it('the dismissal of an agent with a running turn answers its asker, and the report of its turn ends the turn', () => {
    const core = teamOf();
    hires(core, {}, ['delegate', { to: 'scout', request: 'go' }]);
    const call = core.callOf('scout');
    const { effects } = core.do({ type: 'dismiss', agent: 'scout', by: PERSON });
    expect(effects).toMatchObject([{ type: 'abort-turn', agent: 'scout' }]);
    core.abort(call, 'half');
    expect(core.result('delegate')).toBe('half\n\n[scout did not finish: its turn was aborted]');
    expect(core.turn('pm')?.status).toBe('running');
  });

  it('a dismissal ends a waiting turn at once', () => {
    const core = teamOf();
    hires(core, { tools: ['ask'] }, ['delegate', { to: 'scout', request: 'go' }]);
    core.act('scout', null, ['ask', { question: 'Where?' }]);
    core.do({ type: 'dismiss', agent: 'scout', by: PERSON });
    expect(core.outcomes('scout')).toEqual(['waiting', 'aborted']);
    expect(core.result('delegate')).toContain('its turn was aborted');
  });

  it('a dismissal ends the posts that wait for the agent in the same way, and leaves no outstanding work', () => {
    const core = teamOf();
    hires(core);
    core.post('@scout one');
    const call = core.callOf('scout');
    core.post('@scout two', { delivery: 'queue' });
    core.do({ type: 'dismiss', agent: 'scout', by: PERSON });
    core.abort(call);
    expect(core.outcomes('scout')).toEqual(['aborted', 'aborted']);
    core.act('pm', 'done');
    expect(core.calls).toEqual([]);
    expect(core.post('@scout three').reply).toMatchObject({ agents: ['pm'] });
  });

  it('a dismissal works in the answer that delegated to the agent', () => {
    const core = teamOf();
    hires(core, {}, ['delegate', { to: 'scout', request: 'go' }], ['dismiss', { agent: 'scout' }]);
    expect(core.result('delegate')).toContain('its turn was aborted');
    expect(core.turn('pm')?.status).toBe('running');
    expect(core.calls.map(({ agent }) => agent)).toEqual(['pm']);
  });

  it('a dismissal includes the agents that the dismissed agent hired', () => {
    const core = teamOf();
    hires(core, { slug: 'lead', tools: ['hire', 'delegate', 'ask'] }, ASK_LEAD);
    core.act(
      'lead',
      null,
      ['hire', { slug: 'scout', persona: 'x' }],
      ['delegate', { to: 'scout', request: 'go' }],
    );
    const call = core.callOf('scout');
    core.do({ type: 'dismiss', agent: 'lead', by: PERSON });
    expect(typed(core.entries, 'agent-dismissed').map(({ agent }) => agent)).toEqual(['lead', 'scout']);
    core.abort(call);
    expect(active(core)).toEqual(['dev', 'pm']);
    expect(core.turn('lead')).toBeNull();
    expect(core.turn('pm')?.status).toBe('running');
  });

  it('a maker may dismiss only the agents below it', () => {
    const core = teamOf();
    commandOf(core, { slug: 'other' });
    hires(core);
    core.act('pm', null, ['dismiss', { agent: 'other' }]);
    expect(core.result('dismiss')).toContain('FORBIDDEN');
    core.act('pm', null, ['dismiss', { agent: 'nobody' }]);
    expect(core.result('dismiss')).toContain('agents that you can dismiss: scout');
    core.act('pm', null, ['dismiss', { agent: 'scout', reason: 'done' }]);
    expect(core.last('agent-dismissed')).toMatchObject({ agent: 'scout', by: 'pm', reason: 'done' });
  });

  it('the slug and the name of a dismissed agent stay reserved for it, and people may have them', () => {
    const core = teamOf();
    hires(core);
    core.act('pm', null, ['dismiss', { agent: 'scout' }]);
    expect(hires(core)).toContain('NAME_TAKEN');
    expect(core.post('Hello', { by: 'scout' }).reply).toMatchObject({ kind: 'posted' });
  });

  it('the turn of a dismissed agent is aborted after a crash as well', () => {
    const core = teamOf();
    hires(core, {}, ['delegate', { to: 'scout', request: 'go' }]);
    core.do({ type: 'dismiss', agent: 'scout', by: PERSON });
    core.crash();
    expect(core.outcomes('scout')).toEqual(['aborted']);
    expect(core.result('delegate')).toContain('its turn was aborted');
    expect(checkLaws(core.entries)).toEqual([]);
  });
});

const HIRING_TOOLS: string[] = ['hire', 'dismiss', 'look'];

/** pm has hired scout, and its turn has ended. */
function hiring(request: Partial<HireRequest>): TeamCore {
  const cards = [card('pm', { tools: HIRING_TOOLS, model: 'large' }), card('dev', { model: 'large' })];
  const core = new TeamCore({ cards, models: ['large'], hiring: {} }).posted('Hire somebody', { to: ['pm'] });
  core.act('pm', null, ['hire', { slug: 'scout', persona: 'Look around.', ...request }]);
  core.act('pm', 'done');
  return core;
}

/** The same log under a configuration with these agents. */
function reconfigured(core: TeamCore, agents: Readonly<Record<string, readonly string[]>>): TeamCore {
  const cards = Object.entries(agents).map(([slug, tools]) => card(slug, { tools, model: 'large' }));
  const later = new TeamCore({ cards, models: ['large', 'small'], hiring: {} }, false);
  later.conversation = new Conversation(later.rules, [...core.entries]);
  return later;
}

describe('a configured agent with the slug of a hired one', () => {
  function replaced(): TeamCore {
    const core = hiring({ tools: ['hire', 'look'], budget: { tokens: 10 } });
    return reconfigured(core, { pm: HIRING_TOOLS, scout: HIRING_TOOLS });
  }

  it('the configured agent has neither the budget nor the depth of the hired one', () => {
    const core = replaced();
    const { state, roster } = core.conversation;
    expect(accountsOf(state, roster, 'scout')).toEqual([]);
    core.post('@scout hire', { id: 'p1' });
    core.act('scout', null, ['hire', { slug: 'below', persona: 'x', budget: { tokens: 50 } }]);
    expect(core.last('agent-hired')).toMatchObject({ agent: 'below', depth: 1 });
  });

  it('no agent and no operator can dismiss the configured agent, and it keeps its turn', () => {
    const core = replaced();
    core.post('@scout go', { id: 'p1' });
    expect(core.do({ type: 'dismiss', agent: 'scout', by: PERSON })).toMatchObject({
      ...{ reply: { refusal: { code: 'UNKNOWN_AGENT' } }, effects: [] },
    });
    core.post('@pm dismiss', { id: 'p2' });
    core.act('pm', null, ['dismiss', { agent: 'scout' }]);
    expect(core.result('dismiss')).toContain('UNKNOWN_AGENT');
    expect(typed(core.entries, 'agent-dismissed')).toEqual([]);
  });

  it('HIRING-5: the configured agent may hire an agent with the slug of its former maker, since budgets and dismissals ended', () => {
    const core = hiring({ tools: ['hire', 'dismiss'], budget: { tokens: 10 } });
    const later = reconfigured(core, { dev: [], scout: HIRING_TOOLS });
    later.post('@scout hire', { id: 'p1' });
    later.act('scout', null, ['hire', { slug: 'pm', persona: 'x', tools: ['hire', 'dismiss'] }]);
    expect(later.result('hire')).toContain('pm is part of this conversation');
    const { state, roster } = later.conversation;
    expect(accountsOf(state, roster, 'pm').map(({ agent }) => agent)).toEqual(['pm']);
    later.act('scout', null, ['dismiss', { agent: 'pm' }]);
    expect(later.last('agent-dismissed')).toMatchObject({ agent: 'pm', by: 'scout' });
  });
});
