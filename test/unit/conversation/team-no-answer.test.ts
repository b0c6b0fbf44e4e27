import { describe, expect, it } from 'vitest';
import { Conversation } from '../../../src/conversation/index.ts';
import { PERSON, Team } from './team.ts';

const to = (agent: string, request = 'please') => ['delegate', { to: agent, request }] as const;

describe('a delegate that gives no answer', () => {
  it.each([
    ['fails', (team: Team) => team.fail(team.callOf('dev'), 'half'), 'half\n\nLLM_ERROR'],
    [
      'is aborted',
      (team: Team) => team.abort(team.callOf('dev')),
      '[dev gave no answer: its turn was aborted]',
    ],
    [
      'is aborted in mid-sentence',
      (team: Team) => team.abort(team.callOf('dev'), 'half'),
      'half\n\n[dev did not finish: its turn was aborted]',
    ],
    [
      'is out of model calls',
      (team: Team) => team.act('dev', null, ['set_phase', { phase: 'chat', reason: 'x' }]),
      '[dev gave no answer: its turn was limited]',
    ],
    [
      'is out of model calls, and had begun to speak',
      (team: Team) => team.act('dev', 'half', ['set_phase', { phase: 'chat', reason: 'x' }]),
      'half\n\n[dev did not finish: its turn was limited]',
    ],
    [
      'is stopped',
      (team: Team) => {
        team.do({ type: 'stop', agent: 'dev', by: PERSON });
        team.abort(team.callOf('dev'));
      },
      '[dev gave no answer: its turn was aborted]',
    ],
    [
      'says what nobody can see',
      (team: Team) => team.act('dev', '\u200b\u2800 '),
      '[dev gave no answer: its turn was completed]',
    ],
    [
      'has nothing to say',
      (team: Team) => team.act('dev', null),
      '[dev gave no answer: its turn was completed]',
    ],
  ])('%s: its asker gets a result all the same and continues', (_, happen, result) => {
    const team = new Team({ modelCallsPerTurn: 1 });
    team.post('go');
    team.act('pm', null, to('dev'));
    happen(team);
    expect(team.result('delegate')).toContain(result);
    expect(team.outcomes('pm').at(-1)).toBe('limited'); // its one call is made: it did go on
    expect(team.last('delegation-answered')).toMatchObject({ from: 'dev', to: 'pm', late: false });
  });

  it('answers late after its asker was stopped, and the answer appears as a message', () => {
    const team = new Team();
    team.post('go');
    team.act('pm', null, to('dev'));
    const dev = team.callOf('dev');
    const { effects } = team.do({ type: 'stop', agent: 'pm', by: PERSON });
    expect(effects).toMatchObject([{ type: 'abort-turn', agent: 'dev' }]);
    expect(team.outcomes('pm')).toEqual(['waiting', 'aborted']);
    expect(team.result('delegate')).toBe('[no answer: the turn was aborted]');
    team.actOn(dev, 'here it is', []);
    expect(team.last('delegation-answered')).toMatchObject({ late: true });
    expect(team.result('delegate')).toBe('[no answer: the turn was aborted]');
    team.post('@pm what now');
    expect(team.request('pm')).toEqual([
      ['user', 'go'],
      ['assistant', null],
      ['tool', '[no answer: the turn was aborted]'],
      ['system', '[Dev]: here it is'],
      ['system', '=== MESSAGES WHILE YOU WERE AWAY ===\n[Dev]: here it is'],
      ['system', '=== NEW INTERACTION ==='],
      ['user', '@pm what now'],
    ]);
  });

  it('TURNS-4: whose asker was stopped starts no tool and makes no further model call', () => {
    const team = new Team();
    team.post('go');
    team.act('pm', null, to('dev'));
    team.do({ type: 'stop', agent: 'pm', by: PERSON });
    const { effects } = team.act('dev', 'I write', ['write']);
    expect(effects).toEqual([]);
    expect(team.outcomes('dev')).toEqual(['aborted']);
  });

  it('TURNS-4: whose asker was stopped is aborted, not resumed, after a crash', () => {
    const team = new Team();
    team.post('go');
    team.act('pm', null, to('dev'));
    team.do({ type: 'stop', agent: 'pm', by: PERSON });
    team.crash();
    expect(team.calls).toEqual([]);
    expect(team.outcomes('dev')).toEqual(['aborted']);
    expect(team.last('delegation-answered').late).toBe(true);
  });

  it.each([
    ['the delegate', ['dev', 'pm']],
    ['the asker', ['pm', 'dev']],
  ])(
    "TURNS-4: does not continue when the crash came before its asker's abort, %s known first",
    (_, first) => {
      const team = new Team();
      for (const slug of first) {
        team.post('hello', { to: [slug] });
        team.drain();
      }
      team.post('go', { to: ['pm'] });
      team.act('pm', null, to('dev'), ['look']);
      team.do({ type: 'stop', agent: 'pm', by: PERSON });
      team.crash();
      expect(team.calls).toEqual([]);
      expect(team.outcomes('dev').at(-1)).toBe('aborted');
      expect(team.outcomes('pm').at(-1)).toBe('aborted');
    },
  );

  it('ends with its asker when a limit ends the asker while a tool runs', () => {
    const team = new Team();
    team.post('go');
    team.act('pm', null, to('dev'), ['look']);
    const turnId = team.turn('pm')?.turnId ?? '';
    const report = { agent: 'pm', turnId, duration: 1, requestHash: '', upTo: team.entries.length };
    const limit = { name: 'turnSeconds', message: 'too long' };
    const { effects } = team.do({ type: 'model-aborted', partial: '', limit, ...report });
    expect(effects).toMatchObject([{ type: 'abort-turn', agent: 'dev' }]);
    expect(team.outcomes('pm')).toEqual(['limited']);
  });

  it('starts and ends without a model call if it is still queued when its asker has ended', () => {
    const team = new Team();
    team.post('@dev first');
    team.post('go', { to: ['pm'] });
    team.act('pm', null, to('dev'));
    team.do({ type: 'stop', agent: 'pm', by: PERSON });
    const { effects } = team.act('dev', 'done');
    expect(effects).toEqual([]);
    expect(team.outcomes('dev')).toEqual(['completed', 'aborted']);
    expect(team.last('delegation-answered')).toMatchObject({ late: true, answers: [] });
  });

  it.each(['delegate', 'handoff'])(
    'a %s to a stopped agent is refused, and the asking agent continues',
    (tool) => {
      const team = new Team();
      team.do({ type: 'stop', agent: 'dev', by: PERSON });
      team.post('go', { to: ['pm'] });
      team.act(
        'pm',
        null,
        tool === 'delegate' ? to('dev') : ['handoff', { to: 'dev', summary: 'all yours' }],
      );
      expect(JSON.parse(team.result(tool)).error).toMatchObject({
        code: 'AGENT_STOPPED',
        message: expect.stringContaining('dev is stopped'),
      });
      expect(team.calls.map((call) => call.agent)).toEqual(['pm']);
      team.do({ type: 'resume', agent: 'dev', by: PERSON });
      team.act('pm', null, to('dev'));
      expect(team.calls.map((call) => call.agent)).toEqual(['dev']);
    },
  );

  it('because it is stopped while the request is queued: its asker continues, and it does nothing on resume', () => {
    const team = new Team();
    team.post('@dev first');
    team.post('go', { to: ['pm'] });
    team.act('pm', null, to('dev'));
    team.do({ type: 'stop', agent: 'dev', by: PERSON });
    team.abort(team.callOf('dev'));
    expect(JSON.parse(team.result('delegate')).error.code).toBe('AGENT_STOPPED');
    expect(team.calls.map((call) => call.agent)).toEqual(['pm']);
    team.act('pm', 'dev is stopped');
    team.do({ type: 'resume', agent: 'dev', by: PERSON });
    expect(team.calls).toEqual([]);
    expect(team.outcomes('dev')).toEqual(['aborted', 'aborted']);
    expect(team.last('delegation-answered')).toMatchObject({ late: true, answers: [] });
  });

  it('because every agent is stopped: no asker continues', () => {
    const team = new Team();
    team.post('@dev first');
    team.post('go', { to: ['pm'] });
    team.act('pm', null, to('dev'), ['look']);
    team.do({ type: 'stop', agent: null, by: PERSON });
    team.abort(team.callOf('dev'));
    expect(team.outcomes('pm').at(-1)).not.toBe('completed');
    expect(team.calls).toEqual([]);
  });

  it('because it was removed from the configuration: its asker gets a result', () => {
    const team = new Team();
    team.post('@dev first');
    team.post('go', { to: ['pm'] });
    team.act('pm', null, to('dev'));
    const later = without('dev', team);
    expect(later.result('delegate')).toContain('dev gave no answer');
    expect(later.calls.map((call) => call.agent)).toEqual(['pm']);
  });

  it('because it was removed from the configuration while it waited for a person: the next message ends its turn', () => {
    const team = new Team();
    team.post('go', { to: ['pm'] });
    team.act('pm', null, to('dev'));
    team.act('dev', null, ['ask', { question: 'which one?' }]);
    const later = new Team({ slugs: ['pm', 'qa'] }, false);
    later.conversation = new Conversation(later.rules, [...team.entries]); // nothing is owed: it is not recovered
    const { reply } = later.post('the red one', { id: 'an answer' });
    expect(later.result('delegate')).toBe('[dev gave no answer: its turn was aborted]');
    expect(reply).toMatchObject({ agents: ['pm'] });
    expect(later.calls.map((call) => call.agent)).toEqual(['pm']);
  });

  it('because it was removed from the configuration while it waited for another agent: both turns end', () => {
    const team = new Team();
    team.post('@dev first');
    team.act('dev', null, ['delegate', { to: 'qa', request: 'try it' }]);
    const later = without('dev', team);
    expect(later.outcomes('dev')).toEqual(['waiting', 'aborted']);
    expect(later.outcomes('qa')).toEqual(['aborted']);
    expect(later.calls).toEqual([]);
  });
});

/** The same log after a restart with a configuration that lacks one agent. */
function without(slug: string, team: Team): Team {
  const later = new Team({ slugs: ['pm', 'dev', 'qa'].filter((other) => other !== slug) }, false);
  later.conversation.entries.push(...team.entries);
  later.boundaries = [team.entries.length];
  later.crash();
  return later;
}
