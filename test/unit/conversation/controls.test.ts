import { describe, expect, it } from 'vitest';
import { type Entry, evolve, isStopped } from '../../../src/conversation/index.ts';
import { OPERATOR } from './random-steps.ts';
import { World } from './world.ts';

function typesOf(entries: readonly Entry[]): string[] {
  return entries.map((entry) => (entry.type === 'message' ? entry.role : entry.type));
}

function last<T extends Entry['type']>(world: World, type: T): Extract<Entry, { type: T }> {
  const found = world.entries.findLast((entry) => entry.type === type);
  if (!found) throw new Error(`no ${type}`);
  return found as Extract<Entry, { type: T }>;
}

describe('stop and resume', () => {
  it('a resume makes all posts during a stop one trigger', () => {
    const world = new World();
    world.do({ type: 'stop', agent: null, by: OPERATOR });
    expect(world.post('one').effects).toEqual([]);
    expect(world.post('two').effects).toEqual([]);
    world.do({ type: 'resume', agent: null, by: OPERATOR });
    expect(last(world, 'turn-started').trigger).toEqual([1, 2]);
  });

  it('a stop aborts running turns, keeps their text, and starts nothing', () => {
    const world = new World();
    world.post('one');
    const call = world.callOf('pm');
    expect(world.do({ type: 'stop', agent: 'pm', by: OPERATOR }).effects).toMatchObject([
      { type: 'abort-turn' },
    ]);
    world.post('two');
    world.abort(call, 'half');
    expect(world.calls).toEqual([]);
    world.crash();
    expect(world.calls).toEqual([]);
  });

  it('recovery aborts the turn and does not resume it after a crash between the stop and its effect', () => {
    const world = new World();
    world.post('one');
    world.do({ type: 'stop', agent: null, by: OPERATOR });
    world.crash();
    expect(last(world, 'turn-ended').outcome).toBe('aborted');
    expect(world.calls).toEqual([]);
  });

  it('a message that addresses a stopped agent by name resumes that agent and no other', () => {
    const world = new World();
    world.do({ type: 'stop', agent: null, by: OPERATOR });
    world.post('quiet');
    const { entries, effects } = world.post('@dev wake up');
    expect(typesOf(entries)).toEqual(['agent-resumed', 'user', 'turn-started']);
    expect(effects).toMatchObject([{ type: 'call-model', agent: 'dev' }]);
    expect(isStopped(world.conversation.state, 'dev')).toBe(false);
    expect(isStopped(world.conversation.state, 'pm')).toBe(true);
  });

  it('a resume without a stop writes nothing, and an unknown agent is refused', () => {
    const world = new World();
    expect(world.do({ type: 'resume', agent: null, by: OPERATOR }).entries).toEqual([]);
    for (const type of ['stop', 'resume'] as const)
      expect(world.do({ type, agent: 'nobody', by: OPERATOR }).reply).toMatchObject({
        kind: 'refused',
        refusal: { code: 'UNKNOWN_AGENT', message: 'there is no agent nobody' },
      });
  });

  it.each<[string, string | null, number]>([
    ['a later stop of that agent', 'dev', 0],
    ['a later stop of everybody', null, 0],
    ['a stop of another agent', 'pm', 1],
  ])('a resume that names the stop it undoes, after %s (of %s), writes %i entries', (_, later, written) => {
    const world = new World();
    const own = world.do({ type: 'stop', agent: 'dev', by: OPERATOR }).entries[0]?.index;
    world.do({ type: 'stop', agent: later, by: OPERATOR });
    const { entries } = world.do({ type: 'resume', agent: 'dev', stop: own, by: OPERATOR });
    expect(entries.length).toBe(written);
  });

  it('a resume of all agents also ends the stop of a single agent', () => {
    const world = new World();
    world.post('one', { to: ['dev'] });
    world.drain();
    world.do({ type: 'stop', agent: 'dev', by: OPERATOR });
    world.do({ type: 'resume', agent: null, by: OPERATOR });
    expect(isStopped(world.conversation.state, 'dev')).toBe(false);
  });
});

describe('phases, modes, sessions', () => {
  it.each([
    ['chat', 'plan', undefined],
    ['chat', 'chat', undefined],
    ['chat', 'verification', true],
  ])("a person's change from phase %s to %s is marked as forced: %s", (_, phase, forced) => {
    const world = new World();
    world.do({ type: 'set-phase', phase, by: OPERATOR, reason: 'so' });
    expect(last(world, 'phase-entered').forced).toBe(forced);
    expect(world.conversation.state.phase).toBe(phase);
  });

  it('entering a phase clears the active agent, and a mode may name one', () => {
    const world = new World();
    world.do({ type: 'set-mode', mode: 'agent', agent: 'dev', by: OPERATOR });
    expect(world.conversation.state.activeAgent).toBe('dev');
    world.do({ type: 'set-mode', mode: 'chat', by: OPERATOR });
    expect(world.conversation.state).toMatchObject({ activeAgent: 'dev', mode: 'chat' });
    world.do({ type: 'set-phase', phase: 'chat', by: OPERATOR });
    expect(world.conversation.state.activeAgent).toBeNull();
  });

  it.each(['nonsense', 'constructor', '__proto__'])(
    'the unknown phase %s is refused with the known ones',
    (phase) => {
      const world = new World();
      expect(world.do({ type: 'set-phase', phase, by: OPERATOR })).toMatchObject({
        entries: [],
        reply: {
          kind: 'refused',
          refusal: { code: 'UNKNOWN_PHASE', hint: expect.stringContaining('chat, brainstorm') },
        },
      });
    },
  );

  it('a mode with an unknown agent is refused', () => {
    expect(new World().do({ type: 'set-mode', mode: 'agent', agent: 'nobody', by: OPERATOR })).toMatchObject({
      entries: [],
      reply: { kind: 'refused', refusal: { code: 'UNKNOWN_AGENT' } },
    });
  });

  it('the entry of a post keeps its session, which sets it for no agent', () => {
    const world = new World();
    const { entries } = world.post('one', { to: ['dev', 'qa'], sessionId: 's1' });
    expect(typesOf(entries)).toEqual(['user', 'turn-started', 'turn-started']);
    expect(entries[0]).toMatchObject({ sessionId: 's1' });
    world.drain();
    const { dev, qa } = world.conversation.state.agents;
    expect([dev?.sessionId, qa?.sessionId]).toEqual([null, null]);
  });

  it('each later turn of an agent uses the session that it returned, also after a crash', () => {
    const world = new World();
    world.post('one', { to: ['dev'] });
    const { turnId } = world.callOf('dev');
    const report = { agent: 'dev', turnId, duration: 0, requestHash: 'h', upTo: world.entries.length };
    const answer = { content: 'a', toolCalls: [], sessionId: 'own-1' };
    world.do({ type: 'model-answered', ...report, answer });
    world.drain();
    world.post('two', { to: ['dev'], sessionId: 's2' });
    const turn = () => world.conversation.state.agents.dev?.turn?.sessionId;
    expect(turn()).toBe('own-1');
    world.crash();
    expect(turn()).toBe('own-1');
  });
});
describe('titles and the archive', () => {
  const state = (world: World) => world.conversation.state;

  it('a person renames and archives a conversation, and each keeps the other', () => {
    const world = new World();
    world.post('Rename photos by date');
    world.do({ type: 'label', archived: true, by: OPERATOR });
    expect(state(world)).toMatchObject({ title: 'Rename photos by date', archived: true });
    world.do({ type: 'label', title: ' Photos\n again ', by: OPERATOR });
    expect(state(world)).toMatchObject({ title: 'Photos again', archived: true });
    expect(last(world, 'title-set')).toMatchObject({
      author: OPERATOR,
      title: 'Photos again',
      archived: true,
    });
    expect(world.do({ type: 'label', title: 'Photos again', by: OPERATOR }).entries).toEqual([]);
    world.do({ type: 'label', archived: false, by: OPERATOR });
    expect(state(world)).toMatchObject({ title: 'Photos again', archived: false });
  });

  it('a fork of an archived conversation is not archived, and keeps the title', () => {
    const world = new World();
    world.post('Rename photos');
    world.do({ type: 'label', archived: true, by: OPERATOR });
    const index = world.entries.length;
    const common = { id: 'f', index, createdAt: '', author: OPERATOR };
    const forked = evolve(state(world), { ...common, type: 'forked', from: 'origin', at: index - 1 });
    expect(forked).toMatchObject({ title: 'Rename photos', archived: false });
  });

  it('the state names each person who wrote once', () => {
    const world = new World();
    for (const by of ['ann', 'bob', 'ann']) world.post('Hello', { by });
    expect(state(world).people).toHaveLength(2);
  });

  it('a title of a person is not replaced by the first answer', () => {
    const world = new World();
    world.do({ type: 'label', title: 'Mine', by: OPERATOR });
    world.post('Hello');
    expect(state(world).title).toBe('Mine');
  });

  it('a conversation without a message cannot be archived without a title', () => {
    expect(new World().do({ type: 'label', archived: true, by: OPERATOR })).toMatchObject({
      entries: [],
      reply: { kind: 'refused', refusal: { code: 'NO_TITLE' } },
    });
  });
});
