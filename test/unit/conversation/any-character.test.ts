import { describe, it, vi } from 'vitest';
import { CHARACTER_TEXTS } from '../../support/characters.ts';
import { expectEqual } from '../../support/expect-equal.ts';
import { card } from './core.ts';
import { type Called, expectGuarded, SHIP_IT, TeamCore } from './team-core.ts';

// The number of rounds bounds the work, so a slow machine may take long.
vi.setConfig({ testTimeout: 120_000 });

const TOOLS = ['handoff', 'delegate', 'ask', 'set_phase'];

const calls: Readonly<Record<string, (text: string) => Called[]>> = {
  handoff: (text) => [
    ['handoff', { to: text, summary: text }],
    ['handoff', { to: 'dev', summary: text, phase: text }],
    ['handoff', { to: 'dev', summary: text }],
  ],
  delegate: (text) => [
    ['delegate', { to: text, request: text }],
    ['delegate', { to: 'dev', request: text }],
  ],
  ask: (text) => [
    ['ask', { question: text }],
    ['ask', { question: text, options: [text, text] }],
  ],
  set_phase: (text) => [
    ['set_phase', { phase: text, reason: text }],
    ['set_phase', { phase: 'plan', reason: text }],
  ],
  complete_node: (text) => [
    ['complete_node', { outcome: text, summary: text }],
    ['complete_node', { outcome: 'planned', summary: text }],
  ],
  'no JSON': (text) => [...TOOLS, 'complete_node'].map((name): Called => [name, text]),
};

/** Ends every turn: each call gets an answer. */
function carryOut(called: Called, text: string): TeamCore {
  const core = new TeamCore({ cards: ['pm', 'dev', 'qa'].map((slug) => card(slug, { tools: TOOLS })) });
  core.do({
    type: 'set-mode',
    mode: 'run',
    workflow: SHIP_IT.id,
    by: { kind: 'person', id: 'operator', name: 'Operator' },
  });
  core.post('begin'); // A run without input waits for the first message.
  core.act('pm', text, called);
  expectGuarded(core);
  core.post('and so', { to: ['pm'] });
  for (let step = 0; core.calls.length > 0 && step < 20; step++) {
    expectGuarded(core);
    core.act(core.calls[0]?.agent ?? '', text);
  }
  return core;
}

describe('any character in an argument of a tool about the conversation', () => {
  it.each(Object.keys(calls))('a call of %s with any character gets a result, and its turn ends', (name) => {
    for (const text of CHARACTER_TEXTS) {
      for (const called of calls[name]?.(text) ?? []) {
        const core = carryOut(called, text);
        const [tool] = called;
        expectEqual([called, core.result(tool) === `no result of ${tool}`], [called, false]);
        expectEqual([called, core.turn('pm')], [called, null]);
      }
    }
  });
});
