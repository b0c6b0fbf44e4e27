import { describe, expect, it } from 'vitest';
import { type Author, evolve, feedbackIn, isStopped } from '../../../src/conversation/index.ts';
import { Core, typesOf } from './core.ts';
import { OPERATOR } from './random-steps.ts';

describe('stop and resume', () => {
  it('a resume makes all posts during a stop one trigger', () => {
    const core = new Core();
    core.do({ type: 'stop', agent: null, by: OPERATOR });
    expect(core.post('one').effects).toEqual([]);
    expect(core.post('two').effects).toEqual([]);
    core.do({ type: 'resume', agent: null, by: OPERATOR });
    expect(core.last('turn-started').trigger).toEqual([1, 2]);
  });

  it('a stop aborts running turns, keeps their text, and starts nothing', () => {
    const core = new Core().posted('one');
    const call = core.callOf('pm');
    expect(core.do({ type: 'stop', agent: 'pm', by: OPERATOR }).effects).toMatchObject([
      { type: 'abort-turn' },
    ]);
    core.post('two');
    core.abort(call, 'half');
    expect(core.calls).toEqual([]);
    core.crash();
    expect(core.calls).toEqual([]);
  });

  it('recovery aborts the turn and does not resume it after a crash between the stop and its effect', () => {
    const core = new Core().posted('one');
    core.do({ type: 'stop', agent: null, by: OPERATOR });
    core.crash();
    expect(core.last('turn-ended').outcome).toBe('aborted');
    expect(core.calls).toEqual([]);
  });

  it('a message that addresses a stopped agent by name resumes that agent and no other', () => {
    const core = new Core();
    core.do({ type: 'stop', agent: null, by: OPERATOR });
    core.post('quiet');
    const { entries, effects } = core.post('@dev wake up');
    expect(typesOf(entries)).toEqual(['agent-resumed', 'user', 'turn-started']);
    expect(effects).toMatchObject([{ type: 'call-model', agent: 'dev' }]);
    expect(isStopped(core.conversation.state, 'dev')).toBe(false);
    expect(isStopped(core.conversation.state, 'pm')).toBe(true);
  });

  it('a resume without a stop writes nothing, and an unknown agent is refused', () => {
    const core = new Core();
    expect(core.do({ type: 'resume', agent: null, by: OPERATOR }).entries).toEqual([]);
    for (const type of ['stop', 'resume'] as const)
      expect(core.do({ type, agent: 'nobody', by: OPERATOR }).reply).toMatchObject({
        kind: 'refused',
        refusal: { code: 'UNKNOWN_AGENT', message: 'there is no agent nobody' },
      });
  });

  it.each<[string, string | null, number]>([
    ['a later stop of that agent', 'dev', 0],
    ['a later stop of everybody', null, 0],
    ['a stop of another agent', 'pm', 1],
  ])('a resume that names the stop it undoes, after %s (of %s), writes %i entries', (_, later, written) => {
    const core = new Core();
    const own = core.do({ type: 'stop', agent: 'dev', by: OPERATOR }).entries[0]?.index;
    core.do({ type: 'stop', agent: later, by: OPERATOR });
    const { entries } = core.do({ type: 'resume', agent: 'dev', stop: own, by: OPERATOR });
    expect(entries.length).toBe(written);
  });

  it('a resume of all agents also ends the stop of a single agent', () => {
    const core = new Core().posted('one', { to: ['dev'] });
    core.drain();
    core.do({ type: 'stop', agent: 'dev', by: OPERATOR });
    core.do({ type: 'resume', agent: null, by: OPERATOR });
    expect(isStopped(core.conversation.state, 'dev')).toBe(false);
  });
});

describe('phases, modes, sessions', () => {
  it.each([
    ['chat', 'plan', undefined],
    ['chat', 'chat', undefined],
    ['chat', 'verification', true],
  ])("a person's change from phase %s to %s is marked as forced: %s", (_, phase, forced) => {
    const core = new Core();
    core.do({ type: 'set-phase', phase, by: OPERATOR, reason: 'so' });
    expect(core.last('phase-entered').forced).toBe(forced);
    expect(core.conversation.state.phase).toBe(phase);
  });

  it('entering a phase clears the active agent, and a mode may name one', () => {
    const core = new Core();
    core.do({ type: 'set-mode', mode: 'agent', agent: 'dev', by: OPERATOR });
    expect(core.conversation.state.activeAgent).toBe('dev');
    core.do({ type: 'set-mode', mode: 'chat', by: OPERATOR });
    expect(core.conversation.state).toMatchObject({ activeAgent: 'dev', mode: 'chat' });
    core.do({ type: 'set-phase', phase: 'chat', by: OPERATOR });
    expect(core.conversation.state.activeAgent).toBeNull();
    core.do({ type: 'set-mode', mode: 'agent', agent: 'dev', by: OPERATOR });
    core.do({ type: 'set-mode', mode: 'agent', agent: null, by: OPERATOR });
    expect(core.conversation.state).toMatchObject({ activeAgent: null, mode: 'agent' });
  });

  it.each(['nonsense', 'constructor', '__proto__'])(
    'the unknown phase %s is refused with the known ones',
    (phase) => {
      const core = new Core();
      expect(core.do({ type: 'set-phase', phase, by: OPERATOR })).toMatchObject({
        entries: [],
        reply: {
          kind: 'refused',
          refusal: { code: 'UNKNOWN_PHASE', hint: expect.stringContaining('chat, brainstorm') },
        },
      });
    },
  );

  it('a mode with an unknown agent is refused', () => {
    expect(new Core().do({ type: 'set-mode', mode: 'agent', agent: 'nobody', by: OPERATOR })).toMatchObject({
      entries: [],
      reply: { kind: 'refused', refusal: { code: 'UNKNOWN_AGENT' } },
    });
  });
});

describe('the session of an agent', () => {
  const sessions = (core: Core) =>
    Object.entries(core.conversation.state.agents).flatMap(([slug, { session, turn }]) =>
      session || turn?.session ? [[slug, session?.id, turn && (turn.session?.id ?? null)]] : [],
    );
  const granted = (sessionId: string) => ({ sessionId, setsSession: true }) as const;

  it('PERSON-7: a session that the sender has no right to stays in the entry, sets nothing, and the reply says so', () => {
    const core = new Core();
    const { entries, reply } = core.post('one', { id: 'one', to: ['dev', 'qa'], sessionId: 's1' });
    expect(typesOf(entries)).toEqual(['user', 'turn-started', 'turn-started']);
    expect(entries[0]).toMatchObject({ sessionId: 's1' });
    expect(entries[0]).not.toHaveProperty('setsSession');
    expect(reply).toMatchObject({ ignored: ['sessionId'] });
    const again = core.post('one', { id: 'one', to: ['dev', 'qa'], ...granted('s1') });
    expect(again.reply).toMatchObject({ duplicate: true, ignored: ['sessionId'] });
    core.drain();
    expect(sessions(core)).toEqual([]);
  });

  it('the session of a message is set for each agent that it wakes, in the append of the turn', () => {
    const core = new Core();
    const { entries, reply } = core.post('one', { to: ['dev', 'qa'], ...granted('s1') });
    expect(typesOf(entries)).toEqual(['user', 'session-set', 'turn-started', 'session-set', 'turn-started']);
    expect(entries[1]).toMatchObject({ agent: 'dev', sessionId: 's1', from: 0 });
    expect(reply).not.toHaveProperty('ignored');
    expect(sessions(core)).toEqual([
      ['dev', 's1', 's1'],
      ['qa', 's1', 's1'],
    ]);
  });

  it('it is kept for later turns, also after a crash, until a later message names another', () => {
    const core = new Core().posted('one', { to: ['dev'], ...granted('s1') });
    core.drain();
    core.post('two', { to: ['dev'] });
    core.crash();
    expect(sessions(core)).toEqual([['dev', 's1', 's1']]);
    core.drain();
    expect(typesOf(core.post('three', { to: ['dev'], ...granted('s1') }).entries)).toEqual([
      'user',
      'turn-started',
    ]);
    core.drain();
    core.post('four', { to: ['dev'], ...granted('s2') });
    expect(sessions(core)).toEqual([['dev', 's2', 's2']]);
  });

  it('a message that waits for its turn sets the session when that begins, not earlier', () => {
    const core = new Core().posted('one', { to: ['dev'], ...granted('s1') });
    core.post('two', { to: ['dev'], delivery: 'queue', ...granted('s2') });
    expect(sessions(core)).toEqual([['dev', 's1', 's1']]);
    const { entries } = core.answer(core.callOf('dev'));
    expect(typesOf(entries)).toEqual(['assistant', 'title-set', 'turn-ended', 'session-set', 'turn-started']);
    expect(entries[0]).toMatchObject({ sessionId: 's1' });
    expect(sessions(core)).toEqual([['dev', 's2', 's2']]);
  });

  it('of several messages that one turn answers, the newest that names a session counts', () => {
    const core = new Core();
    core.do({ type: 'stop', agent: null, by: OPERATOR });
    core.post('one', granted('s1'));
    core.post('two', granted('s2'));
    core.post('three');
    core.post('four', { sessionId: 'forged' });
    core.do({ type: 'resume', agent: null, by: OPERATOR });
    expect(core.last('session-set')).toMatchObject({ agent: 'pm', sessionId: 's2', from: 2 });
    expect(core.entries.filter(({ type }) => type === 'session-set')).toHaveLength(1);
  });

  it('a message that reaches a running turn sets the session of its next request, in the append of the delivery', () => {
    const core = new Core().posted('one', { to: ['dev'] });
    core.answer(core.callOf('dev'), null, ['look']);
    core.post('two', { to: ['dev'], ...granted('s2') });
    expect(sessions(core)).toEqual([]);
    const [tool] = core.tools;
    if (!tool) throw new Error('no tool runs');
    expect(typesOf(core.finish(tool).entries)).toEqual(['tool', 'session-set', 'message-delivered']);
    expect(sessions(core)).toEqual([['dev', 's2', 's2']]);
  });

  it('each later turn of an agent uses the session that it returned, until a message names another', () => {
    const core = new Core();
    const answer = (sessionId: string) => {
      const { turnId } = core.callOf('dev');
      const report = { agent: 'dev', turnId, duration: 0, requestHash: 'h', upTo: core.entries.length };
      core.do({ type: 'model-answered', ...report, answer: { content: 'a', toolCalls: [], sessionId } });
    };
    core.post('one', { to: ['dev'] });
    answer('own-1');
    core.post('two', { to: ['dev'], sessionId: 'no right' });
    const turn = () => core.conversation.state.agents.dev?.turn?.session;
    expect(turn()).toEqual({ id: 'own-1', by: 'agent', from: 2 });
    core.crash();
    expect(turn()?.id).toBe('own-1');
    core.drain();
    core.post('three', { to: ['dev'], ...granted('own-1') });
    expect(turn()?.by).toBe('person');
    answer('own-1');
    expect(core.conversation.state.agents.dev?.session?.by).toBe('person');
    core.post('four', { to: ['dev'], ...granted('s2') });
    expect(turn()?.id).toBe('s2');
    answer('own-2');
    core.post('five', { to: ['dev'] });
    expect(turn()).toMatchObject({ id: 'own-2', by: 'agent' });
  });
});

describe('titles and the archive', () => {
  const state = (core: Core) => core.conversation.state;

  it('a person renames and archives a conversation, and each keeps the other', () => {
    const core = new Core().posted('Rename photos by date');
    core.do({ type: 'label', archived: true, by: OPERATOR });
    expect(state(core)).toMatchObject({ title: 'Rename photos by date', archived: true });
    core.do({ type: 'label', title: ' Photos\n again ', by: OPERATOR });
    expect(state(core)).toMatchObject({ title: 'Photos again', archived: true });
    expect(core.last('title-set')).toMatchObject({
      author: OPERATOR,
      title: 'Photos again',
      archived: true,
    });
    expect(core.do({ type: 'label', title: 'Photos again', by: OPERATOR }).entries).toEqual([]);
    core.do({ type: 'label', archived: false, by: OPERATOR });
    expect(state(core)).toMatchObject({ title: 'Photos again', archived: false });
  });

  it('a conversation that begins with files alone has their names as its title', () => {
    const core = new Core();
    const file = { type: 'file', sha256: 'ab'.repeat(32), mediaType: 'image/png', size: 7 } as const;
    core.post('', { parts: [{ ...file, name: 'plan.png' }, file], includeInContext: false });
    core.do({ type: 'label', archived: true, by: OPERATOR });
    expect(state(core)).toMatchObject({ title: 'plan.png, image/png' });
  });

  it('a fork of an archived conversation is not archived, and keeps the title', () => {
    const core = new Core().posted('Rename photos');
    core.do({ type: 'label', archived: true, by: OPERATOR });
    const index = core.entries.length;
    const common = { id: 'f', index, createdAt: '', author: OPERATOR };
    const forked = evolve(state(core), { ...common, type: 'forked', from: 'origin', at: index - 1 });
    expect(forked).toMatchObject({ title: 'Rename photos', archived: false });
  });

  it('the state names each person who wrote once', () => {
    const core = new Core();
    for (const by of ['ann', 'bob', 'ann']) core.post('Hello', { by });
    expect(state(core).people).toHaveLength(2);
  });

  it('a title of a person is not replaced by the first answer', () => {
    const core = new Core();
    core.do({ type: 'label', title: 'Mine', by: OPERATOR });
    core.post('Hello');
    expect(state(core).title).toBe('Mine');
  });

  it('a conversation without a message cannot be archived without a title', () => {
    expect(new Core().do({ type: 'label', archived: true, by: OPERATOR })).toMatchObject({
      entries: [],
      reply: { kind: 'refused', refusal: { code: 'NO_TITLE' } },
    });
  });
});

describe('feedback on an answer', () => {
  const ALICE = { kind: 'person', id: 'alice', name: 'Alice' } as const;

  it('the newest feedback of each person counts, and what was said already adds no entry', () => {
    const core = new Core().posted('Hello');
    core.answer(core.callOf('pm'), 'Good day');
    const on = core.entries.findIndex((entry) => entry.type === 'message' && entry.role === 'assistant');
    const rate = (value: 'up' | 'down' | 'none', by: Author = OPERATOR, note?: string) =>
      core.do({ type: 'feedback', on, value, note, by });
    expect(rate('none').entries).toEqual([]);
    expect(rate('up').entries).toMatchObject([{ type: 'feedback', author: OPERATOR, on, value: 'up' }]);
    expect(rate('up')).toMatchObject({ entries: [], effects: [] });
    expect(rate('down', OPERATOR, 'too short')).toMatchObject({ entries: [{}], effects: [] });
    rate('up', ALICE);
    const counted = () =>
      feedbackIn(core.entries)
        .get(on)
        ?.map(({ author, value }) => [author.id, value]);
    expect(counted()).toEqual([
      ['operator', 'down'],
      ['alice', 'up'],
    ]);
    rate('none', OPERATOR);
    expect(counted()).toEqual([['alice', 'up']]);
  });

  it.each([0, 99])('feedback is refused on entry %i, which is no answer', (on) => {
    const core = new Core().posted('Hello');
    expect(core.do({ type: 'feedback', on, value: 'up', by: OPERATOR })).toMatchObject({
      entries: [],
      reply: { kind: 'refused', refusal: { code: 'NO_SUCH_ENTRY' } },
    });
  });
});
