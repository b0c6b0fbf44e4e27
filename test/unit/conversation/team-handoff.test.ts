import { describe, expect, it } from 'vitest';
import { BUILT_IN_PHASES } from '../../../src/conversation/index.ts';
import { card, expectCursors } from './core.ts';
import { kinds, PERSON, TeamCore } from './team-core.ts';

const over = (to: string, phase?: string) => ['handoff', { to, summary: 'go on with it', phase }] as const;
const phase = (name: string) => ['set_phase', { phase: name, reason: 'so' }] as const;
const NEXT: Record<string, string[]> = {
  chat: ['execute', 'plan', 'brainstorm'],
  brainstorm: ['chat', 'plan', 'execute'],
  plan: ['execute'],
  execute: ['verification', 'chat'],
  verification: ['chores', 'execute', 'chat'],
  chores: ['reflection'],
  reflection: ['chat'],
};
const NAMES = Object.keys(NEXT);

describe('phases', () => {
  it.each(NAMES.flatMap((from) => NAMES.map((to) => [from, to] as const)))(
    'an agent may change the phase from %s to %s if the table says so, and a person always may',
    (from, to) => {
      const legal = from === to || (NEXT[from] ?? []).includes(to);
      const core = new TeamCore({}, false);
      core.do({ type: 'set-phase', phase: from, by: PERSON });
      core.post('go');
      const { entries, effects } = core.act('pm', null, phase(to));
      expect(effects).toMatchObject([{ type: 'call-model' }]);
      expect(kinds(entries)).toEqual(
        legal ? ['assistant pm', 'phase-entered', 'tool pm'] : ['assistant pm', 'tool pm'],
      );
      if (legal) {
        expect(entries[1]).toMatchObject({ from, to, by: 'Pm', reason: 'so' });
      } else {
        const named = [...(NEXT[from] ?? []), from].join(', ');
        expect(JSON.parse(core.result('set_phase'))).toEqual({
          error: { code: 'ILLEGAL_PHASE', message: `from phase ${from} you may enter ${named}; not ${to}` },
        });
      }
      core.do({ type: 'set-phase', phase: from, by: PERSON });
      const forced = core.do({ type: 'set-phase', phase: to, by: PERSON, reason: 'I say so' });
      expect(forced.entries).toMatchObject([{ from, to, by: 'Operator', reason: 'I say so' }]);
      expect('forced' in (forced.entries[0] ?? {})).toBe(!legal);
    },
  );

  it('the phases of a configured table replace rows and add phases', () => {
    const review = { description: 'look again', next: ['chat'] };
    const chat = { ...BUILT_IN_PHASES.chat, next: ['review'] };
    const core = new TeamCore({ phases: { ...BUILT_IN_PHASES, chat, review } }).posted('go');
    core.act('pm', null, phase('plan'));
    expect(core.result('set_phase')).toContain('you may enter review, chat');
    core.act('pm', null, phase('review'));
    expect(core.conversation.state.phase).toBe('review');
  });

  it.each(['constructor', '__proto__', 'nonsense'])('the unknown phase %s is illegal', (name) => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, phase(name));
    expect(core.result('set_phase')).toContain('ILLEGAL_PHASE');
  });

  it('a new phase chooses its agent from the next request on', () => {
    const cards = [
      card('pm', { phases: ['chat'], tools: ['set_phase'] }),
      card('dev', { phases: ['execute'] }),
    ];
    const core = new TeamCore({ cards, slugs: ['pm', 'dev'] }).posted('go');
    core.do({ type: 'set-mode', mode: 'agent', agent: 'pm', by: PERSON }); // The phase clears the active agent.
    core.act('pm', null, phase('execute'));
    core.act('pm', 'now dev');
    expect(core.post('do it').reply).toMatchObject({ agents: ['dev'] });
  });

  it('an answer that enters two phases enters them in order, the second from the first', () => {
    const core = new TeamCore().posted('go');
    const { entries } = core.act('pm', null, phase('plan'), phase('chat'), phase('execute'));
    expect(kinds(entries)).toEqual([
      'assistant pm',
      'phase-entered',
      'tool pm',
      'tool pm',
      'phase-entered',
      'tool pm',
    ]);
    expect(core.conversation.state.phase).toBe('execute');
  });
});

describe('a handoff', () => {
  it("a handoff is appended with its result and the end of the turn, and is the receiver's trigger", () => {
    const core = new TeamCore().posted('go');
    const { entries, effects } = core.act('pm', 'Dev does it.', over('dev'));
    expect(kinds(entries)).toEqual([
      'assistant pm',
      'handoff',
      'tool pm',
      'title-set',
      'turn-ended pm completed',
      'turn-started dev',
    ]);
    expect(entries[1]).toMatchObject({ from: 'pm', to: 'dev', summary: 'go on with it', hops: 1 });
    expect(effects).toMatchObject([{ type: 'call-model', agent: 'dev' }]);
    expect(core.request('dev')).toEqual([
      ['user', 'go'],
      ['system', '[Pm]: Dev does it.'],
      ['system', '[Pm]: go on with it'],
    ]);
    expect(core.conversation.state.activeAgent).toBe('dev');
    core.act('dev', 'done');
    expect(core.post('and now').reply).toMatchObject({ agents: ['dev'] });
    expectCursors(core.entries);
  });

  it('a handoff with a phase enters it first, in the same append, and the receiver becomes the active agent', () => {
    const core = new TeamCore().posted('go');
    const { entries } = core.act('pm', null, over('dev', 'execute'));
    expect(kinds(entries).slice(0, 3)).toEqual(['assistant pm', 'phase-entered', 'handoff']);
    expect(entries[2]).toMatchObject({ phase: 'execute' });
    expect(core.conversation.state).toMatchObject({ phase: 'execute', activeAgent: 'dev' });
  });

  it.each([
    ['to itself', over('pm'), 'TO_YOURSELF'],
    ['to an unknown agent', over('nobody'), 'UNKNOWN_AGENT'],
    ['with an illegal phase', over('dev', 'verification'), 'ILLEGAL_PHASE'],
    ['with no summary', ['handoff', { to: 'dev' }], 'INVALID_ARGUMENTS'],
  ] as const)(
    'a handoff %s is refused: the active agent stays, and the model is called again',
    (_, call, code) => {
      const core = new TeamCore().posted('go');
      const { entries, effects } = core.act('pm', null, call);
      expect(kinds(entries)).toEqual(['assistant pm', 'tool pm']);
      expect(core.result('handoff')).toContain(code);
      expect(effects).toMatchObject([{ type: 'call-model', agent: 'pm' }]);
      expect(core.conversation.state).toMatchObject({ activeAgent: null, phase: 'chat' });
    },
  );

  it('V13: a handoff in a delegated turn is refused, and the turn can still answer', () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, ['delegate', { to: 'dev', request: 'x' }]);
    core.act('dev', null, over('qa'));
    expect(core.result('handoff')).toContain('DELEGATED');
    core.act('dev', 'well then');
    expect(core.result('delegate')).toBe('well then');
  });

  it('handoffs may repeat up to the limit, and then people see that it was reached', () => {
    const core = new TeamCore({ hopsPerTrigger: 3 }).posted('go');
    for (const [from, to] of [
      ['pm', 'dev'],
      ['dev', 'pm'],
      ['pm', 'dev'],
    ] as const)
      core.act(from, null, over(to));
    const { entries, effects } = core.act('dev', null, over('pm'));
    expect(kinds(entries)).toEqual(['assistant dev', 'limit-reached', 'tool dev']);
    expect(entries[1]).toMatchObject({ limit: 'hopsPerTrigger', agent: 'dev', author: { kind: 'system' } });
    expect(core.result('handoff')).toContain('HOP_LIMIT');
    expect(effects).toMatchObject([{ agent: 'dev' }]);
    expect(core.conversation.state.activeAgent).toBe('dev');
    core.act('dev', 'this is as far as we came');
    core.post('go on'); // A message of a person begins a new chain.
    core.act('dev', null, over('pm'));
    expect(core.last('handoff').hops).toBe(1);
  });

  it('a handoff waits for the other calls of its answer, and their results come before it', () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, over('dev'), ['look'], ['ask', { question: 'sure?' }]);
    core.finish(core.tools[0] ?? expect.unreachable(), 'seen');
    expect(core.outcomes('pm')).toEqual(['waiting']);
    const { entries } = core.post('yes');
    expect(kinds(entries)).toEqual([
      'user alice',
      'tool pm',
      'turn-started pm',
      'handoff',
      'tool pm',
      'title-set',
      'turn-ended pm completed',
      'turn-started dev',
    ]);
    expect(core.calls.map((call) => call.agent)).toEqual(['dev']);
  });

  it('of two handoffs in one answer the first is carried out, and the second gets an error that the turn has ended', () => {
    const core = new TeamCore().posted('go');
    const { entries } = core.act('pm', null, over('nobody'), over('dev'), over('qa'));
    expect(core.resultsAt(entries[0]?.index ?? -1)).toEqual([
      expect.stringContaining('UNKNOWN_AGENT'),
      'dev has the floor.',
      expect.stringContaining('TURN_OVER'),
    ]);
    expect(core.calls.map((call) => call.agent)).toEqual(['dev']);
  });

  it('a handoff to a busy agent is queued: it starts a turn of its own and is not delivered into the running one', () => {
    const core = new TeamCore().posted('@pm @dev: go');
    core.act('pm', null, over('dev'));
    core.act('dev', null, ['look']);
    core.finish(core.tools[0] ?? expect.unreachable());
    expect(core.request('dev').some(([, content]) => content === '[Pm]: go on with it')).toBe(false);
    core.act('dev', 'first thing done');
    expect(core.request('dev').at(-1)).toEqual(['system', '[Pm]: go on with it']);
  });
});
