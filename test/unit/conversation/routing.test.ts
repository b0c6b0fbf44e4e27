import { describe, expect, it, vi } from 'vitest';
import {
  type ConversationState,
  createRoster,
  EMPTY_STATE,
  mentions,
  route,
} from '../../../src/conversation/index.ts';
import { card, World } from './world.ts';

// The number of runs bounds the work, so a slow machine may take long.
vi.setConfig({ testTimeout: 120_000 });

const roster = createRoster(
  [
    card('pm', { phases: ['chat', 'plan'], modes: ['chat'] }),
    card('dev', { phases: ['execute'], modes: ['agent'] }),
    card('dev-ops', { phases: ['execute', 'chores'] }),
    card('qa', { phases: ['execute', 'chat'], modes: ['chat'] }),
  ],
  'pm',
);

function state(more: Partial<ConversationState>): ConversationState {
  return { ...EMPTY_STATE, ...more };
}

function to(content: string, more: Partial<ConversationState> = {}, explicit?: string[], people = roster) {
  const routed = route(explicit ? { content, to: explicit } : { content }, state(more), people);
  return routed.ok ? routed.to : routed.refusal.code;
}

describe('the first routing rule that applies', () => {
  it.each<[string, unknown, unknown]>([
    ["the message's `to` comes before a mention", to('@dev please', {}, ['qa']), ['qa']],
    ['several in `to` all answer, each once', to('x', {}, ['qa', 'dev', 'qa']), ['qa', 'dev']],
    ['an empty `to` is ignored', to('@dev please', {}, []), ['dev']],
    ['an unknown `to` is an error', to('x', {}, ['dev', 'nobody']), 'UNKNOWN_AGENT'],
    ['a mention comes before the active agent', to('@dev please', { activeAgent: 'qa' }), ['dev']],
    [
      'the active agent in mode agent comes before the phase',
      to('x', { activeAgent: 'qa', phase: 'plan' }),
      ['qa'],
    ],
    [
      'the active agent in mode chat comes after the phase',
      to('x', { activeAgent: 'dev', mode: 'chat' }),
      ['pm'],
    ],
    [
      'an active agent that was removed is ignored',
      to('x', { activeAgent: 'gone', phase: 'chores' }),
      ['dev-ops'],
    ],
    ['the only agent with the phase answers', to('x', { phase: 'plan' }), ['pm']],
    [
      'of several agents with the phase the active one answers',
      to('x', { phase: 'execute', mode: 'chat', activeAgent: 'qa' }),
      ['qa'],
    ],
    [
      'of several agents with the phase the active one answers before the default one',
      to('x', { phase: 'chat', mode: 'chat', activeAgent: 'qa' }),
      ['qa'],
    ],
    ['of several agents with the phase the default one answers', to('x', { phase: 'chat' }), ['pm']],
    ['of several agents with the phase the first slug answers', to('x', { phase: 'execute' }), ['dev']],
    ['no agent has the phase: the agent with the mode answers', to('x', { phase: 'reflection' }), ['dev']],
    [
      'no agent has the phase: of several agents with the mode the default one answers',
      to('x', { phase: 'reflection', mode: 'chat' }),
      ['pm'],
    ],
    [
      'no agent has the phase or the mode: the default agent answers',
      to('x', { phase: 'reflection', mode: 'run' }),
      ['pm'],
    ],
  ])('a post is routed by the first rule that applies: %s', (_, got, expected) => {
    expect(got).toEqual(expected);
  });

  it('an unknown `to` is refused with the list of known agents, and nothing is appended', () => {
    const world = new World();
    const { reply, entries, effects } = world.post('x', { to: ['nobody'] });
    expect(reply).toEqual({
      kind: 'refused',
      refusal: {
        code: 'UNKNOWN_AGENT',
        message: 'there is no agent "nobody"',
        hint: 'known agents: dev, dev-ops, pm, qa',
      },
    });
    expect([entries, effects, world.entries]).toEqual([[], [], []]);
  });

  it('several agents that a message mentions answer side by side', () => {
    const world = new World();
    const { effects, reply } = world.post('@dev and @qa: look');
    expect(reply).toMatchObject({ agents: ['dev', 'qa'] });
    expect(effects.map((effect) => [effect.type, effect.agent])).toEqual([
      ['call-model', 'dev'],
      ['call-model', 'qa'],
    ]);
  });

  it("L14: a mention in an agent's text starts no turn", () => {
    const world = new World();
    world.post('hello', { to: ['pm'] });
    const { effects } = world.answer(world.callOf('pm'), 'I think @dev should do this');
    expect(effects).toEqual([]);
    expect(world.calls).toEqual([]);
  });

  it('V1: a message outside the context is routed to no agent, even if it names one', () => {
    const world = new World();
    expect(world.post('@dev', { includeInContext: false }).effects).toEqual([]);
    expect(world.post('@dev', { isCollapsed: true, to: ['dev'] }).effects).toEqual([]);
    expect(world.entries.map((entry) => entry.type)).toEqual(['message', 'message']);
  });
});

describe('a mention', () => {
  it.each<[string, string[]]>([
    ['@dev', ['dev']],
    ['@Dev', ['dev']],
    ['@DEV!', ['dev']],
    ['@dev.', ['dev']],
    ['(@dev)', ['dev']],
    ['@dev, @qa; @dev', ['dev', 'qa']],
    ['`@dev`', ['dev']],
    ['```\n@dev\n```', ['dev']],
    ["@dev's idea", ['dev']],
    ['@dev@qa', ['dev']],
    ['@dev-ops', ['dev-ops']],
    ['@Dev-Ops-', ['dev-ops']],
    ['@dev-opsx', ['dev']],
    ['@dev-sec-ops', ['dev']],
    ['@dev-', ['dev']],
    ['@developer', []],
    ['@dev_x', []],
    ['@devé', []],
    ['bob@dev.example', []],
    ['é@dev', []],
    ['_@dev', []],
    ['9@dev', []],
    ['@ dev', []],
    ['@nobody', []],
    ['@@dev', ['dev']],
    ['/@dev', ['dev']],
    ['dev', []],
    ['@-dev', []],
  ])('the text %j mentions %j', (content, expected) => {
    expect(mentions(content, roster)).toEqual(expected);
  });

  it('mentions are found in linear time in text of any shape', () => {
    expect(mentions(`@${'a-'.repeat(500_000)}`, roster)).toEqual([]);
    expect(mentions(`@dev-${'a-'.repeat(200_000)}`, roster)).toEqual(['dev']);
    expect(mentions('@'.repeat(500_000), roster)).toEqual([]);
  });
});
