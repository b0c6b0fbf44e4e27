import { describe, expect, it } from 'vitest';
import { checkLaws } from '../../../src/conversation/index.ts';
import { kinds, PERSON, Team } from './team.ts';
import { openQuestions } from './team-life.ts';
import { expectCursors } from './world.ts';

const ask = (question = 'which one?') => ['ask', { question }] as const;
const to = (agent: string) => ['delegate', { to: agent, request: 'please' }] as const;

describe('a question to a person', () => {
  it('a question ends the turn as waiting; the next message is its result, appears only after the call, and resumes the turn', () => {
    const team = new Team().posted('go');
    const { entries, effects } = team.act('pm', 'I need to know.', ask());
    expect(kinds(entries)).toEqual(['assistant pm', 'turn-ended pm waiting']);
    expect(effects).toEqual([]);
    const answered = team.post('the red one');
    expect(answered.reply).toMatchObject({ agents: ['pm'] });
    expect(kinds(answered.entries)).toEqual(['user alice', 'tool pm', 'turn-started pm']);
    const index = answered.entries[0]?.index;
    expect(answered.entries[1]).toMatchObject({ content: 'the red one', answers: [index] });
    expect(answered.entries[2]).toMatchObject({ resumed: true, trigger: [index] });
    expect(team.request('pm')).toEqual([
      ['user', 'go'],
      ['assistant', 'I need to know.'],
      ['tool', 'the red one'],
    ]);
    team.act('pm', 'thanks');
    expect(team.outcomes('pm')).toEqual(['waiting', 'completed']);
    expectCursors(team.entries);
  });

  it('the answer to a question sets the session of the turn that asked, in the append of the result; no agent passes on its own', () => {
    const team = new Team();
    const session = (agent: string) => team.turn(agent)?.session?.id ?? null;
    team.post('go', { sessionId: 's1', setsSession: true });
    team.act('pm', null, to('dev'), ask());
    expect([session('pm'), session('dev')]).toEqual(['s1', null]);
    const { entries } = team.post('the red one', { to: ['pm'], sessionId: 's2', setsSession: true });
    expect(kinds(entries)).toEqual(['user alice', 'session-set', 'tool pm']);
    expect([session('pm'), session('dev')]).toEqual(['s2', null]);
    team.act('dev', 'done');
    expect(session('pm')).toBe('s2');
    expect(checkLaws(team.entries)).toEqual([]);
  });

  it('a question that is asked again in the same turn is answered only by its own answer', () => {
    const team = new Team().posted('go');
    team.act('pm', null, ask('a?'));
    team.post('to a');
    team.act('pm', null, ask('b?'));
    const { entries } = team.post('to b');
    expect(team.last('turn-started').trigger).toEqual([entries[0]?.index]);
  });

  it('TURNS-3: a repeated answer of the model changes nothing while its turn waits or continues', () => {
    const team = new Team().posted('go');
    const { turnId } = team.callOf('pm');
    const upTo = team.entries.length;
    team.act('pm', null, ask(), ['look']);
    const again = (length: number) => {
      const answer = { content: 'again', toolCalls: [] };
      const report = { agent: 'pm', turnId, duration: 1, requestHash: '', upTo: length };
      expect(team.do({ type: 'model-answered', answer, ...report }).reply.kind).toBe('stale');
    };
    again(team.entries.length); // Its tool runs.
    team.finish(team.tools[0] ?? expect.unreachable());
    again(team.entries.length); // The turn waits.
    team.post('the red one');
    again(upTo); // The next model call is running.
    expect(team.calls).toMatchObject([{ agent: 'pm' }]);
  });

  it('a question survives a restart and starts nothing during the wait', () => {
    const team = new Team().posted('go');
    team.act('pm', null, ask());
    const length = team.entries.length;
    team.crash();
    expect(team.entries).toHaveLength(length);
    expect(team.calls).toEqual([]);
    team.post('the red one');
    expect(team.result('ask')).toBe('the red one');
    expect(team.calls).toMatchObject([{ agent: 'pm' }]);
  });

  it('a question gets the next message before mode run and the active agent, while others can be addressed by name', () => {
    const team = new Team().posted('@dev go');
    team.act('dev', null, ask());
    team.do({ type: 'set-mode', mode: 'agent', agent: 'qa', by: PERSON });
    expect(team.post('@pm what do you think?').reply).toMatchObject({ agents: ['pm'] });
    expect(team.turn('dev')?.status).toBe('waiting');
    expect(team.post('the red one').reply).toMatchObject({ agents: ['dev'] });
    expect(team.result('ask')).toBe('the red one');
    expect(team.post('and now').reply).toMatchObject({ agents: ['qa'] });
  });

  it('V18: an explicit `to` and a mention answer a question too, with any delivery', () => {
    for (const [words, more] of [
      ['red', { to: ['dev'] }],
      ['@dev red', {}],
      ['@dev red', { delivery: 'interrupt' }],
      ['@dev red', { delivery: 'queue' }],
    ] as const) {
      const team = new Team().posted('@dev go');
      team.act('dev', null, ask());
      team.post(words, more);
      expect(team.result('ask')).toBe(words);
      expect(team.turn('dev')?.status).toBe('running');
    }
  });

  it('V18: of several questions of one agent the oldest is answered, or the one that replyTo names; the turn resumes after all', () => {
    const team = new Team().posted('go');
    const { entries } = team.act('pm', null, ask('a?'), ask('b?'), ask('c?'));
    const call = entries[0]?.index ?? -1;
    team.post('to b', { replyTo: `c${call}_1` });
    team.post('to a', { replyTo: 'no such entry' });
    expect(team.turn('pm')?.status).toBe('waiting');
    team.post('to c');
    expect(team.resultsAt(call)).toEqual(['to a', 'to b', 'to c']);
    expect(team.last('turn-started').trigger).toHaveLength(3);
    expect(team.calls).toMatchObject([{ agent: 'pm' }]);
  });

  it('V18: a late answer, to a question that is over, answers no other question', () => {
    const team = new Team().posted('go');
    const { entries } = team.act('pm', null, ask('which colour?'));
    const replyTo = `c${entries[0]?.index}_0`;
    team.post('red', { replyTo });
    team.act('pm', null, ask('delete it?'));
    for (const more of [{ replyTo }, { replyTo, to: ['pm'] }])
      expect(team.post('blue', more).reply).toMatchObject({ kind: 'posted', agents: ['pm'] });
    expect(openQuestions(team)).toHaveLength(1);
    team.post('no');
    expect(team.result('ask')).toBe('no');
    expect(team.calls).toMatchObject([{ agent: 'pm' }]);
  });

  it.each(['entry', 'call', 'call, whose id a message has'])(
    'V18: a late answer, by the id of the %s, answers no other question of any agent',
    (by) => {
      const team = new Team();
      if (by.includes('message')) team.post('I know what comes', { id: 'c3_0', includeInContext: false });
      team.post('go');
      const { entries } = team.act('pm', null, ask('delete the branch?'));
      const replyTo = by === 'entry' ? (entries[0]?.id ?? '') : `c${entries[0]?.index}_0`;
      if (by.includes('message')) expect(replyTo).toBe('c3_0');
      team.post('yes', { replyTo });
      team.act('pm', null, ask('delete the database?'));
      for (const more of [{ replyTo }, { replyTo, to: ['pm'] }]) team.post('yes, now', more);
      expect(openQuestions(team)).toHaveLength(1);
    },
  );

  it.each(['entry', 'call'])(
    'V18: of the questions of several agents the oldest is answered, or the one named by %s',
    (by) => {
      const team = new Team().posted('@dev @qa go');
      team.act('qa', null, ask('first?'));
      const { entries } = team.act('dev', null, ask('second?'));
      const replyTo = by === 'entry' ? entries[0]?.id : `c${entries[0]?.index}_0`;
      expect(team.post('to dev', { replyTo: replyTo ?? '' }).reply).toMatchObject({ agents: ['dev'] });
      expect(team.post('to qa').reply).toMatchObject({ agents: ['qa'] });
      expect(openQuestions(team)).toEqual([]);
      team.act('qa', null, ask('third?'));
      team.act('dev', null, ask('fourth?'));
      expect(team.post('to qa').reply).toMatchObject({ agents: ['qa'] });
    },
  );

  it('a message that no agent is shown does not answer a question', () => {
    const team = new Team().posted('go');
    team.act('pm', null, ask());
    team.post('psst', { includeInContext: false });
    expect(team.turn('pm')?.status).toBe('waiting');
  });

  it('a question with wrong arguments is refused and asks no person', () => {
    const team = new Team().posted('go');
    team.act('pm', null, ['ask', { question: '' }]);
    expect(team.result('ask')).toContain('INVALID_ARGUMENTS');
    expect(team.calls).toMatchObject([{ agent: 'pm' }]);
  });

  it("a delegate's question is answered while its asker still waits, also after a restart", () => {
    const team = new Team().posted('go');
    team.act('pm', null, to('dev'), to('qa'));
    team.act('dev', null, ask());
    team.act('qa', 'fine');
    team.crash();
    expect(team.calls).toEqual([]);
    team.post('red');
    team.act('dev', 'red it is');
    expect(team.request('pm')).toEqual([
      ['user', 'go'],
      ['assistant', null],
      ['tool', 'red it is'],
      ['tool', 'fine'],
    ]);
  });
});

describe('stop, interrupt and steer', () => {
  it('a stop ends a waiting turn at once, and a message after it is no answer', () => {
    const team = new Team().posted('go');
    team.act('pm', null, ask());
    const { entries } = team.do({ type: 'stop', agent: null, by: PERSON });
    expect(kinds(entries)).toEqual(['agent-stopped', 'tool pm', 'turn-ended pm aborted']);
    expect(team.result('ask')).toBe('[no answer: the turn was aborted]');
    expect(team.post('the red one').effects).toEqual([]);
    team.do({ type: 'resume', agent: null, by: PERSON });
    expect(team.request('pm').at(-1)).toEqual(['user', 'the red one']);
  });

  it('TURNS-4: a stopped turn does not begin to wait when its last tool ends', () => {
    const team = new Team().posted('go');
    team.act('pm', null, ask(), ['look']);
    team.do({ type: 'stop', agent: 'pm', by: PERSON });
    team.finish(team.tools[0] ?? expect.unreachable());
    expect(team.outcomes('pm')).toEqual(['aborted']);
  });

  it('an interruption also aborts what the agent delegated, over several hops, and is answered next', () => {
    const team = new Team().posted('go');
    team.act('pm', null, to('dev'));
    team.act('dev', null, to('qa'));
    const qa = team.callOf('qa');
    const { effects } = team.post('@pm forget it', { delivery: 'interrupt' });
    expect(effects.map((effect) => [effect.type, effect.agent]).sort()).toEqual([
      ['abort-turn', 'qa'],
      ['call-model', 'pm'],
    ]);
    expect([team.outcomes('pm'), team.outcomes('dev')]).toEqual([
      ['waiting', 'aborted'],
      ['waiting', 'aborted'],
    ]);
    team.abort(qa);
    expect(team.last('delegation-answered').late).toBe(true);
    expect(team.calls.map((call) => call.agent)).toEqual(['pm']);
  });

  it('V8: a message steered to an agent that waits for a delegate is delivered with the answer; a queued one comes after', () => {
    const team = new Team().posted('go');
    team.act('pm', null, to('dev'));
    team.post('@pm later', { delivery: 'queue' });
    team.post('@pm quickly');
    expect(team.turn('pm')?.status).toBe('waiting');
    const { entries } = team.act('dev', 'done');
    expect(kinds(entries).slice(-3)).toEqual(['tool pm', 'turn-started pm', 'message-delivered']);
    expect(team.request('pm').at(-1)).toEqual(['user', '@pm quickly']);
    team.act('pm', 'both');
    expect(team.request('pm').at(-1)).toEqual(['user', '@pm later']);
  });

  it('three messages within 6 ms to an idle agent make one turn at a time, in order, each answered once', () => {
    const team = new Team();
    for (const words of ['one', 'two', 'three']) {
      team.post(words);
      team.now += 3;
    }
    expect(team.calls).toHaveLength(1);
    team.drain();
    const started = team.entries.filter((entry) => entry.type === 'turn-started');
    expect(started.map((entry) => entry.type === 'turn-started' && entry.trigger)).toEqual([[0], [2, 3]]);
    expect(team.outcomes('pm')).toEqual(['completed', 'completed']);
  });
});
