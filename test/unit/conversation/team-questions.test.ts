import { describe, expect, it } from 'vitest';
import { checkLaws } from '../../../src/conversation/index.ts';
import { expectCursors } from './core.ts';
import { kinds, PERSON, TeamCore } from './team-core.ts';
import { openQuestions } from './team-life.ts';

const ask = (question = 'which one?') => ['ask', { question }] as const;
const to = (agent: string) => ['delegate', { to: agent, request: 'please' }] as const;

describe('a question to a person', () => {
  it('a question ends the turn as waiting; the next message is its result, appears only after the call, and resumes the turn', () => {
    const core = new TeamCore().posted('go');
    const { entries, effects } = core.act('pm', 'I need to know.', ask());
    expect(kinds(entries)).toEqual(['assistant pm', 'turn-ended pm waiting']);
    expect(effects).toEqual([]);
    const answered = core.post('the red one');
    expect(answered.reply).toMatchObject({ agents: ['pm'] });
    expect(kinds(answered.entries)).toEqual(['user alice', 'tool pm', 'turn-started pm']);
    const index = answered.entries[0]?.index;
    expect(answered.entries[1]).toMatchObject({ content: 'the red one', answers: [index] });
    expect(answered.entries[2]).toMatchObject({ resumed: true, trigger: [index] });
    expect(core.request('pm')).toEqual([
      ['user', 'go'],
      ['assistant', 'I need to know.'],
      ['tool', 'the red one'],
    ]);
    core.act('pm', 'thanks');
    expect(core.outcomes('pm')).toEqual(['waiting', 'completed']);
    expectCursors(core.entries);
  });

  it('the answer to a question sets the session of the turn that asked, in the append of the result; no agent passes on its own', () => {
    const core = new TeamCore();
    const session = (agent: string) => core.turn(agent)?.session?.id ?? null;
    core.post('go', { sessionId: 's1', setsSession: true });
    core.act('pm', null, to('dev'), ask());
    expect([session('pm'), session('dev')]).toEqual(['s1', null]);
    const { entries } = core.post('the red one', { to: ['pm'], sessionId: 's2', setsSession: true });
    expect(kinds(entries)).toEqual(['user alice', 'session-set', 'tool pm']);
    expect([session('pm'), session('dev')]).toEqual(['s2', null]);
    core.act('dev', 'done');
    expect(session('pm')).toBe('s2');
    expect(checkLaws(core.entries)).toEqual([]);
  });

  it('an answer to a question with a schema that its turn has not is refused, and the question stays open', () => {
    const schema = { type: 'object' };
    const core = new TeamCore().posted('go');
    core.act('pm', null, ask());
    const { reply, entries } = core.post('the red one', { schema, delivery: 'queue' });
    expect(reply).toMatchObject({ kind: 'refused', refusal: { code: 'INVALID_FIELD' } });
    expect(JSON.stringify(reply)).toContain('field schema: this would answer the question of pm');
    expect(entries).toEqual([]);
    expect(core.post('@dev go', { schema, delivery: 'queue' }).reply).toMatchObject({ agents: ['dev'] });
    expect(core.post('the red one').reply).toMatchObject({ agents: ['pm'] });
    expect(core.result('ask')).toBe('the red one');

    const typed = new TeamCore();
    typed.post('go', { schema, delivery: 'queue' });
    typed.act('pm', null, ask());
    typed.post('the red one', { schema, delivery: 'queue' }); // a client that sends it with each message
    expect(typed.result('ask')).toBe('the red one');
  });

  it('a question that is asked again in the same turn is answered only by its own answer', () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, ask('a?'));
    core.post('to a');
    core.act('pm', null, ask('b?'));
    const { entries } = core.post('to b');
    expect(core.last('turn-started').trigger).toEqual([entries[0]?.index]);
  });

  it('TURNS-3: a repeated answer of the model changes nothing while its turn waits or continues', () => {
    const core = new TeamCore().posted('go');
    const { turnId } = core.callOf('pm');
    const upTo = core.entries.length;
    core.act('pm', null, ask(), ['look']);
    const again = (length: number) => {
      const answer = { content: 'again', toolCalls: [] };
      const report = { agent: 'pm', turnId, duration: 1, requestHash: '', upTo: length };
      expect(core.do({ type: 'model-answered', answer, ...report }).reply.kind).toBe('stale');
    };
    again(core.entries.length); // Its tool runs.
    core.finish(core.tools[0] ?? expect.unreachable());
    again(core.entries.length); // The turn waits.
    core.post('the red one');
    again(upTo); // The next model call is running.
    expect(core.calls).toMatchObject([{ agent: 'pm' }]);
  });

  it('a question survives a restart and starts nothing during the wait', () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, ask());
    const length = core.entries.length;
    core.crash();
    expect(core.entries).toHaveLength(length);
    expect(core.calls).toEqual([]);
    core.post('the red one');
    expect(core.result('ask')).toBe('the red one');
    expect(core.calls).toMatchObject([{ agent: 'pm' }]);
  });

  it('a question gets the next message before mode run and the active agent, while others can be addressed by name', () => {
    const core = new TeamCore().posted('@dev go');
    core.act('dev', null, ask());
    core.do({ type: 'set-mode', mode: 'agent', agent: 'qa', by: PERSON });
    expect(core.post('@pm what do you think?').reply).toMatchObject({ agents: ['pm'] });
    expect(core.turn('dev')?.status).toBe('waiting');
    expect(core.post('the red one').reply).toMatchObject({ agents: ['dev'] });
    expect(core.result('ask')).toBe('the red one');
    expect(core.post('and now').reply).toMatchObject({ agents: ['qa'] });
  });

  it('V18: an explicit `to` and a mention answer a question too, with any delivery', () => {
    for (const [words, more] of [
      ['red', { to: ['dev'] }],
      ['@dev red', {}],
      ['@dev red', { delivery: 'interrupt' }],
      ['@dev red', { delivery: 'queue' }],
    ] as const) {
      const core = new TeamCore().posted('@dev go');
      core.act('dev', null, ask());
      core.post(words, more);
      expect(core.result('ask')).toBe(words);
      expect(core.turn('dev')?.status).toBe('running');
    }
  });

  it('V18: of several questions of one agent the oldest is answered, or the one that replyTo names; the turn resumes after all', () => {
    const core = new TeamCore().posted('go');
    const { entries } = core.act('pm', null, ask('a?'), ask('b?'), ask('c?'));
    const call = entries[0]?.index ?? -1;
    core.post('to b', { replyTo: `c${call}_1` });
    core.post('to a', { replyTo: 'no such entry' });
    expect(core.turn('pm')?.status).toBe('waiting');
    core.post('to c');
    expect(core.resultsAt(call)).toEqual(['to a', 'to b', 'to c']);
    expect(core.last('turn-started').trigger).toHaveLength(3);
    expect(core.calls).toMatchObject([{ agent: 'pm' }]);
  });

  it('V18: a late answer, to a question that is over, answers no other question', () => {
    const core = new TeamCore().posted('go');
    const { entries } = core.act('pm', null, ask('which colour?'));
    const replyTo = `c${entries[0]?.index}_0`;
    core.post('red', { replyTo });
    core.act('pm', null, ask('delete it?'));
    for (const more of [{ replyTo }, { replyTo, to: ['pm'] }])
      expect(core.post('blue', more).reply).toMatchObject({ kind: 'posted', agents: ['pm'] });
    expect(openQuestions(core)).toHaveLength(1);
    core.post('no');
    expect(core.result('ask')).toBe('no');
    expect(core.calls).toMatchObject([{ agent: 'pm' }]);
  });

  it.each(['entry', 'call', 'call, whose id a message has'])(
    'V18: a late answer, by the id of the %s, answers no other question of any agent',
    (by) => {
      const core = new TeamCore();
      if (by.includes('message')) core.post('I know what comes', { id: 'c3_0', includeInContext: false });
      core.post('go');
      const { entries } = core.act('pm', null, ask('delete the branch?'));
      const replyTo = by === 'entry' ? (entries[0]?.id ?? '') : `c${entries[0]?.index}_0`;
      if (by.includes('message')) expect(replyTo).toBe('c3_0');
      core.post('yes', { replyTo });
      core.act('pm', null, ask('delete the database?'));
      for (const more of [{ replyTo }, { replyTo, to: ['pm'] }]) core.post('yes, now', more);
      expect(openQuestions(core)).toHaveLength(1);
    },
  );

  it.each(['entry', 'call'])(
    'V18: of the questions of several agents the oldest is answered, or the one named by %s',
    (by) => {
      const core = new TeamCore().posted('@dev @qa go');
      core.act('qa', null, ask('first?'));
      const { entries } = core.act('dev', null, ask('second?'));
      const replyTo = by === 'entry' ? entries[0]?.id : `c${entries[0]?.index}_0`;
      expect(core.post('to dev', { replyTo: replyTo ?? '' }).reply).toMatchObject({ agents: ['dev'] });
      expect(core.post('to qa').reply).toMatchObject({ agents: ['qa'] });
      expect(openQuestions(core)).toEqual([]);
      core.act('qa', null, ask('third?'));
      core.act('dev', null, ask('fourth?'));
      expect(core.post('to qa').reply).toMatchObject({ agents: ['qa'] });
    },
  );

  it('a message that no agent is shown does not answer a question', () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, ask());
    core.post('psst', { includeInContext: false });
    expect(core.turn('pm')?.status).toBe('waiting');
  });

  it('a question with wrong arguments is refused and asks no person', () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, ['ask', { question: '' }]);
    expect(core.result('ask')).toContain('INVALID_ARGUMENTS');
    expect(core.calls).toMatchObject([{ agent: 'pm' }]);
  });

  it("a delegate's question is answered while its asker still waits, also after a restart", () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, to('dev'), to('qa'));
    core.act('dev', null, ask());
    core.act('qa', 'fine');
    core.crash();
    expect(core.calls).toEqual([]);
    core.post('red');
    core.act('dev', 'red it is');
    expect(core.request('pm')).toEqual([
      ['user', 'go'],
      ['assistant', null],
      ['tool', 'red it is'],
      ['tool', 'fine'],
    ]);
  });
});

describe('stop, interrupt and steer', () => {
  it('a stop ends a waiting turn at once, and a message after it is no answer', () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, ask());
    const { entries } = core.do({ type: 'stop', agent: null, by: PERSON });
    expect(kinds(entries)).toEqual(['agent-stopped', 'tool pm', 'turn-ended pm aborted']);
    expect(core.result('ask')).toBe('[no answer: the turn was aborted]');
    expect(core.post('the red one').effects).toEqual([]);
    core.do({ type: 'resume', agent: null, by: PERSON });
    expect(core.request('pm').at(-1)).toEqual(['user', 'the red one']);
  });

  it('TURNS-4: a stopped turn does not begin to wait when its last tool ends', () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, ask(), ['look']);
    core.do({ type: 'stop', agent: 'pm', by: PERSON });
    core.finish(core.tools[0] ?? expect.unreachable());
    expect(core.outcomes('pm')).toEqual(['aborted']);
  });

  it('an interruption also aborts what the agent delegated, over several hops, and is answered next', () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, to('dev'));
    core.act('dev', null, to('qa'));
    const qa = core.callOf('qa');
    const { effects } = core.post('@pm forget it', { delivery: 'interrupt' });
    expect(effects.map((effect) => [effect.type, effect.agent]).sort()).toEqual([
      ['abort-turn', 'qa'],
      ['call-model', 'pm'],
    ]);
    expect([core.outcomes('pm'), core.outcomes('dev')]).toEqual([
      ['waiting', 'aborted'],
      ['waiting', 'aborted'],
    ]);
    core.abort(qa);
    expect(core.last('delegation-answered').late).toBe(true);
    expect(core.calls.map((call) => call.agent)).toEqual(['pm']);
  });

  it('V8: a message steered to an agent that waits for a delegate is delivered with the answer; a queued one comes after', () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, to('dev'));
    core.post('@pm later', { delivery: 'queue' });
    core.post('@pm quickly');
    expect(core.turn('pm')?.status).toBe('waiting');
    const { entries } = core.act('dev', 'done');
    expect(kinds(entries).slice(-3)).toEqual(['tool pm', 'turn-started pm', 'message-delivered']);
    expect(core.request('pm').at(-1)).toEqual(['user', '@pm quickly']);
    core.act('pm', 'both');
    expect(core.request('pm').at(-1)).toEqual(['user', '@pm later']);
  });

  it('three messages within 6 ms to an idle agent make one turn at a time, in order, each answered once', () => {
    const core = new TeamCore();
    for (const words of ['one', 'two', 'three']) {
      core.post(words);
      core.now += 3;
    }
    expect(core.calls).toHaveLength(1);
    core.drain();
    const started = core.entries.filter((entry) => entry.type === 'turn-started');
    expect(started.map((entry) => entry.type === 'turn-started' && entry.trigger)).toEqual([[0], [2, 3]]);
    expect(core.outcomes('pm')).toEqual(['completed', 'completed']);
  });
});
