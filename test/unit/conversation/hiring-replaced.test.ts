import { describe, expect, it } from 'vitest';
import { accountsOf, Conversation, type HireRequest } from '../../../src/conversation/index.ts';
import { typed } from './life.ts';
import { PERSON, Team } from './team.ts';
import { card } from './world.ts';

const OWN: string[] = ['hire', 'dismiss', 'look'];

/** pm has hired scout, and its turn has ended. */
function hiring(request: Partial<HireRequest>): Team {
  const cards = [card('pm', { tools: OWN, model: 'large' }), card('dev', { model: 'large' })];
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
    return reconfigured(team, { pm: OWN, scout: OWN });
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
    const later = reconfigured(team, { dev: [], scout: OWN });
    later.post('@scout hire', { id: 'p1' });
    later.act('scout', null, ['hire', { slug: 'pm', persona: 'x', tools: ['hire', 'dismiss'] }]);
    expect(later.result('hire')).toContain('pm is part of this conversation');
    const { state, roster } = later.conversation;
    expect(accountsOf(state, roster, 'pm').map(({ agent }) => agent)).toEqual(['pm']);
    later.act('scout', null, ['dismiss', { agent: 'pm' }]);
    expect(later.last('agent-dismissed')).toMatchObject({ agent: 'pm', by: 'scout' });
  });
});
