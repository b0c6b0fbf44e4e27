import fc from 'fast-check';
import { describe, expect, expectTypeOf, it, vi } from 'vitest';
import type { z } from 'zod';
import {
  ENTRY_TRAITS,
  type Entry,
  type EntryType,
  type entrySchema,
  Knowledge,
  routedTo,
  traitsOf,
  usedFor,
} from '../../../src/conversation/index.ts';
import { evolve } from '../../../src/conversation/state/evolve.ts';
import { EMPTY_STATE } from '../../../src/conversation/state/state.ts';
import { runs } from '../../support/runs.ts';
import { HandMade } from './hand-made.ts';
import { frozen } from './life.ts';

vi.setConfig({ testTimeout: 120_000 });

/** What the entries of a real log do to a state, and what foreign entries may add to it. */
function settings(log: readonly Entry[]): Entry[] {
  const common = {
    id: 'set',
    createdAt: '',
    author: { kind: 'system', id: 'parley', name: 'Parley' },
  } as const;
  const more: readonly object[] = [
    { type: 'mode-entered', from: 'agent', to: 'run', by: 'ann', activeAgent: 'dev' },
    { type: 'run-started', runId: 'r', workflowId: 'w' },
    { type: 'node-entered', runId: 'r', node: 'n', to: ['qa'], brief: '' },
    { type: 'limit-reached', agent: 'pm', limit: 'modelCalls', content: '' },
    { type: 'agent-stopped', agent: null, by: 'ann' },
    { type: 'agent-resumed', agent: 'pm', by: 'ann' },
    { type: 'run-ended', runId: 'r', outcome: 'done' },
    { type: 'phase-entered', from: 'chat', to: 'plan', by: 'ann' },
    { type: 'title-set', title: 'T' },
    { type: 'session-set', agent: 'dev', sessionId: 's', from: 0 },
  ];
  return more.map((one, at) => ({ ...common, index: log.length + at, ...one }) as Entry);
}

describe('the fold of a log', () => {
  it('the fold never changes a state that it returned', () => {
    const dice = fc.array(fc.nat({ max: 4_799 }), { minLength: 20, maxLength: 200, size: 'max' });
    fc.assert(
      fc.property(dice, (numbers) => {
        const { log } = new HandMade(numbers, true);
        const all = [...log, ...settings(log)];
        // Code that changes a frozen value throws.
        const last = all.reduce((state, entry) => frozen(evolve(state, entry)), EMPTY_STATE);
        expect(last.length).toBe(all.length);
      }),
      { numRuns: runs(40) },
    );
  });

  it('the fold counts how long a turn worked since it started or last resumed after a wait', () => {
    const author = { kind: 'agent', id: 'pm', name: 'PM' } as const;
    const common = { author, turnId: 't', agent: 'pm' };
    const start = (resumed: boolean) => ({ type: 'turn-started', trigger: [], resumed, ...common });
    const calls = ['look', 'see', 'write'].map((name) => ({
      ...{ id: 'x', type: 'function', function: { name, arguments: '{}' } },
    }));
    const answer = { type: 'message', role: 'assistant', content: '', duration: 100, ...common };
    const begin = (position: number) => ({ type: 'tool-started', call: { index: 1, position }, ...common });
    const result = (position: number, duration: number) => ({
      ...{ type: 'message', role: 'tool', content: 'x', call: { index: 1, position }, duration, ...common },
    });
    const log: [object, number][] = [
      [start(false), 0],
      [{ ...answer, tool_calls: calls }, 100],
      [begin(0), 100],
      [begin(1), 100],
      [result(1, 30), 130],
      [result(0, 50), 150], // At the same time as the other turn.
      [begin(2), 150],
      [start(true), 150], // After a crash.
      [result(2, 7), 157],
      [answer, 257],
      [{ type: 'turn-ended', outcome: 'waiting', lastProcessedMessageIndex: 0, ...common }, 257],
      [start(true), 0],
      [answer, 100],
    ];
    let state = EMPTY_STATE;
    for (const [index, [entry, workedMs]] of log.entries()) {
      state = evolve(state, { index, id: `e${index}`, createdAt: '', ...entry } as Entry);
      expect([index, state.agents.pm?.turn?.workedMs]).toEqual([index, workedMs]);
    }
  });

  it('usage that an agent in another process reports counts against the limits of that agent alone', () => {
    const usage = { inputTokens: 900, outputTokens: 100, usd: 2 };
    const answer = (id: string, more: object) => ({
      ...{ type: 'message', role: 'assistant', content: 'x', author: { kind: 'agent', id, name: id } },
      usage: { ...usage, ...more },
    });
    const log = [answer('pm', {}), answer('critic', { byAgent: true }), answer('critic', { byAgent: true })];
    const entries = log.map((entry, index) => ({ index, id: `e${index}`, createdAt: '', ...entry }) as Entry);
    const state = entries.reduce(evolve, EMPTY_STATE);
    expect(state).toMatchObject({ tokens: 3_000, usd: 6 });
    expect(['pm', 'qa', 'critic'].map((slug) => usedFor(state, slug))).toEqual([
      { tokens: 1_000, usd: 2 },
      { tokens: 1_000, usd: 2 },
      { tokens: 3_000, usd: 6 },
    ]);
  });

  it('the fold keeps the setting that was set last', () => {
    const last = settings([]).reduce(evolve, EMPTY_STATE);
    expect(last).toMatchObject({ mode: 'run', run: null, phase: 'plan', title: 'T', stopped: true });
    expect(last.settings.map(({ mode, run }) => [mode, run?.node])).toEqual([
      ['agent', undefined],
      ['run', undefined],
      ['run', ''],
      ['run', 'n'],
      ['run', undefined],
    ]);
    expect(last.agents.dev?.session).toEqual({ id: 's', by: 'person', from: 0 });
    expect(last.agents.qa?.stopped).toBeNull();
    expect(last.agents.pm).toMatchObject({ stopped: false, limitedBy: null });
    expect(last.agents.pm?.waiting.map((item) => item.index)).toEqual([3]);
    expect(last.activeAgent).toBeNull();
  });
});

it('every entry type has a schema: the union that reads logs covers the table of traits', () => {
  expectTypeOf<z.infer<typeof entrySchema>['type']>().toEqualTypeOf<EntryType>();
  expect(Object.keys(ENTRY_TRAITS)).toHaveLength(29);
});

describe('an entry type of a newer version', () => {
  const author = { kind: 'person', id: 'alice', name: 'Alice' } as const;

  it.each(['colour-set', 'constructor', '__proto__'])(
    'the unknown type %s is shown to no agent, routed to none, and skipped by the fold',
    (type) => {
      const entry = { index: 0, id: 'a', createdAt: '', author, to: ['pm'], content: 'hi', type };
      const unknown = entry as unknown as Entry;
      expect(traitsOf(unknown)).toEqual({
        shownTo: 'none',
        isRouted: false,
        isInAwayBlock: false,
        isProgress: true,
        isMachinery: false,
      });
      expect(routedTo(unknown)).toEqual([]);
      expect(evolve(EMPTY_STATE, unknown)).toEqual({ ...EMPTY_STATE, length: 1, updatedAt: '' });
      const knowledge = new Knowledge('pm', { includeCollapsed: false });
      knowledge.catchUp([unknown]);
      expect(knowledge.history).toEqual([]);
    },
  );
});
