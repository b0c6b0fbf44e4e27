import { describe, expect, it, vi } from 'vitest';
import {
  type ConversationState,
  createRoster,
  EMPTY_STATE,
  mentions,
  route,
} from '../../../src/conversation/index.ts';
import { card, World } from './world.ts';

// Work that is bounded by its runs, not by a clock: a busy machine may take its time.
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

describe('who answers: the first rule that applies', () => {
  it.each<[string, unknown, unknown]>([
    ["the message's `to` comes before a mention", to('@dev please', {}, ['qa']), ['qa']],
    ['several in `to` all answer, each once', to('x', {}, ['qa', 'dev', 'qa']), ['qa', 'dev']],
    ['an empty `to` is none', to('@dev please', {}, []), ['dev']],
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
      'an active agent that is gone is passed over',
      to('x', { activeAgent: 'gone', phase: 'chores' }),
      ['dev-ops'],
    ],
    ['the one agent with the phase', to('x', { phase: 'plan' }), ['pm']],
    [
      'of several with the phase the active one',
      to('x', { phase: 'execute', mode: 'chat', activeAgent: 'qa' }),
      ['qa'],
    ],
    [
      'of several with the phase the active one before the default one',
      to('x', { phase: 'chat', mode: 'chat', activeAgent: 'qa' }),
      ['qa'],
    ],
    ['of several with the phase the default one', to('x', { phase: 'chat' }), ['pm']],
    ['of several with the phase the first slug', to('x', { phase: 'execute' }), ['dev']],
    ['no phase: the agent with the mode', to('x', { phase: 'reflection' }), ['dev']],
    [
      'no phase: of several with the mode the default one',
      to('x', { phase: 'reflection', mode: 'chat' }),
      ['pm'],
    ],
    ['neither phase nor mode: the default agent', to('x', { phase: 'reflection', mode: 'run' }), ['pm']],
  ])('%s', (_, got, expected) => {
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

  it('V1: a message that is not to be in the context is routed to no agent, even if it names one', () => {
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
  ])('in %j is of %j', (content, expected) => {
    expect(mentions(content, roster)).toEqual(expected);
  });

  it('is found in linear time in text of any shape', () => {
    expect(mentions(`@${'a-'.repeat(500_000)}`, roster)).toEqual([]);
    expect(mentions(`@dev-${'a-'.repeat(200_000)}`, roster)).toEqual(['dev']);
    expect(mentions('@'.repeat(500_000), roster)).toEqual([]);
  });
});
