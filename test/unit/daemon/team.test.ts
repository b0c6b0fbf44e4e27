import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_VIEW_POLICY } from '../../../src/conversation/index.ts';
import type { RunningAgent, Team } from '../../../src/daemon/team/team.ts';
import { until } from '../../support/steps.ts';
import { createWorld, type World } from './world.ts';

describe('a team that is replaced', () => {
  let world: World;

  beforeEach(() => {
    world = createWorld();
  });
  afterEach(() => world.end());

  /** Every agent of the team, changed. */
  function changed(change: (agent: RunningAgent) => Partial<RunningAgent>): Partial<Team> {
    const { team } = world.runtime;
    const agents = new Map([...team.agents].map(([slug, agent]) => [slug, { ...agent, ...change(agent) }]));
    return { agents, sources: { ...team.sources, agents } };
  }

  const callsOf = async (count: number) => {
    await until(() => world.calls.length === count);
    const call = world.calls[count - 1];
    if (!call) throw new Error('no call');
    return call;
  };

  const personaOf = async (count: number) => String((await callsOf(count)).request.messages[0]?.content);

  it('gives a running turn the persona, the model and the view policy of its definition until it ends (TEAM-2)', async () => {
    await world.deliver({ content: 'one' });
    await callsOf(1);
    const names: string[] = [];
    const other = { call: async () => Promise.reject(new Error('the model of another team')) };
    world.replaceTeam(
      changed(({ profile }) => ({
        persona: 'Another persona.',
        model: other,
        profile: { ...profile, name: 'other' },
        viewPolicy: { ...DEFAULT_VIEW_POLICY, includeCollapsed: true },
      })),
    );
    names.push(await personaOf(1));
    world.calls[0]?.answer(null, [{ id: 'c1', name: 'recall', arguments: '{"query":"one"}' }]);
    names.push(await personaOf(2));
    expect(names).toEqual([expect.stringContaining('Persona of'), expect.stringContaining('Persona of')]);
    world.calls[1]?.answer('done');
    await until(async () => (await world.entries()).some(({ type }) => type === 'turn-ended'));
    await world.deliver({ content: 'two' });
    await until(async () =>
      (await world.entries()).some(
        (entry) => 'content' in entry && `${entry.content}`.includes('another team'),
      ),
    );
    const starts = (await world.entries()).flatMap((entry) =>
      entry.type === 'turn-started' ? entry.definition : [],
    );
    expect(new Set(starts).size).toBe(2);
  });

  it('lets the same definition use the newest client of its model, so that a new key applies at once', async () => {
    await world.deliver({ content: 'one' });
    const first = await callsOf(1);
    const called: string[] = [];
    const { team } = world.runtime;
    const model = team.agents.get('pm')?.model;
    if (!model) throw new Error('no model');
    const renewed: typeof model = {
      call: (request, options) => {
        called.push(request.agent);
        return model.call(request, options);
      },
    };
    world.replaceTeam(changed(() => ({ model: renewed })));
    world.runtime.definitions.current('pm', world.runtime.team);
    first.answer(null, [{ id: 'c1', name: 'nothing', arguments: '{}' }]);
    await callsOf(2);
    expect(called).toEqual(['pm']);
  });
});
