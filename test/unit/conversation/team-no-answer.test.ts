import { describe, expect, it } from 'vitest';
import { Conversation } from '../../../src/conversation/index.ts';
import { errorWith } from '../../support/error-with.ts';
import { type Called, PERSON, Team } from './team.ts';

const to = (agent: string, request = 'please') => ['delegate', { to: agent, request }] as const;
type Happening = (team: Team) => unknown;

describe('a delegate that gives no answer', () => {
  const gone: Happening = (team) => {
    team.do({ type: 'stop', agent: 'dev', by: PERSON });
    team.abort(team.callOf('dev'));
  };
  const aborts =
    (partial?: string): Happening =>
    (team) =>
      team.abort(team.callOf('dev'), partial);
  const says =
    (words: string | null, ...calls: Called[]): Happening =>
    (team) =>
      team.act('dev', words, ...calls);
  const CALL: Called = ['set_phase', { phase: 'chat', reason: 'x' }];
  const NONE = 'LLM_ERROR {"code":"EMPTY_ANSWER"';

  it.each<[string, Happening, string]>([
    ['fails', (team) => team.fail(team.callOf('dev'), 'half'), 'half\n\nLLM_ERROR'],
    ['is aborted', aborts(), '[dev gave no answer: its turn was aborted]'],
    ['is aborted in mid-sentence', aborts('half'), 'half\n\n[dev did not finish: its turn was aborted]'],
    ['is out of model calls', says(null, CALL), '[dev gave no answer: its turn was limited]'],
    [
      'is out of model calls after a first text',
      says('half', CALL),
      'half\n\n[dev did not finish: its turn was limited]',
    ],
    ['is stopped', gone, '[dev gave no answer: its turn was aborted]'],
    ['answers with invisible characters', says('\u200b\u2800 '), NONE],
    ['answers without text', says(null), NONE],
  ])('the asker of a delegate that %s gets a result and continues', (_, happen, result) => {
    const team = new Team({ modelCallsPerTurn: 1 }).posted('go');
    team.act('pm', null, to('dev'));
    happen(team);
    expect(team.result('delegate')).toContain(result);
    expect(team.outcomes('pm').at(-1)).toBe('limited'); // The asker continued: its only model call is used.
    expect(team.last('delegation-answered')).toMatchObject({ from: 'dev', to: 'pm', late: false });
  });

  it('a delegate that answers after its asker was stopped adds its answer as a message', () => {
    const team = new Team().posted('go');
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

  it('TURNS-4: a delegate whose asker was stopped starts no tool and makes no further model call', () => {
    const team = new Team().posted('go');
    team.act('pm', null, to('dev'));
    team.do({ type: 'stop', agent: 'pm', by: PERSON });
    const { effects } = team.act('dev', 'I write', ['write']);
    expect(effects).toEqual([]);
    expect(team.outcomes('dev')).toEqual(['aborted']);
  });

  it('TURNS-4: recovery aborts a delegate whose asker was stopped, and does not resume it', () => {
    const team = new Team().posted('go');
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
    "TURNS-4: a delegate does not continue when the crash came before its asker's abort, %s known first",
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

  it('a delegate ends with its asker when a limit ends the asker while a tool runs', () => {
    const team = new Team().posted('go');
    team.act('pm', null, to('dev'), ['look']);
    const turnId = team.turn('pm')?.turnId ?? '';
    const report = { agent: 'pm', turnId, duration: 1, requestHash: '', upTo: team.entries.length };
    const limit = { name: 'turnSeconds', message: 'too long' };
    const { effects } = team.do({ type: 'model-aborted', partial: '', limit, ...report });
    expect(effects).toMatchObject([{ type: 'abort-turn', agent: 'dev' }]);
    expect(team.outcomes('pm')).toEqual(['limited']);
  });

  it('a queued delegation starts and ends without a model call when its asker has ended', () => {
    const team = new Team().posted('@dev first');
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
      expect(JSON.parse(team.result(tool)).error).toMatchObject(errorWith('AGENT_STOPPED', 'dev is stopped'));
      expect(team.calls.map((call) => call.agent)).toEqual(['pm']);
      team.do({ type: 'resume', agent: 'dev', by: PERSON });
      team.act('pm', null, to('dev'));
      expect(team.calls.map((call) => call.agent)).toEqual(['dev']);
    },
  );

  it('the asker of an agent that is stopped with a queued request continues, and a resume starts nothing', () => {
    const team = new Team().posted('@dev first');
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

  it('no asker continues when every agent is stopped', () => {
    const team = new Team().posted('@dev first');
    team.post('go', { to: ['pm'] });
    team.act('pm', null, to('dev'), ['look']);
    team.do({ type: 'stop', agent: null, by: PERSON });
    team.abort(team.callOf('dev'));
    expect(team.outcomes('pm').at(-1)).not.toBe('completed');
    expect(team.calls).toEqual([]);
  });

  it('the asker of an agent that was removed from the configuration gets a result', () => {
    const team = new Team().posted('@dev first');
    team.post('go', { to: ['pm'] });
    team.act('pm', null, to('dev'));
    const later = without('dev', team);
    expect(later.result('delegate')).toContain('dev gave no answer');
    expect(later.calls.map((call) => call.agent)).toEqual(['pm']);
  });

  it('the next message ends the turn of an agent that was removed while it waited for a person', () => {
    const team = new Team().posted('go', { to: ['pm'] });
    team.act('pm', null, to('dev'));
    team.act('dev', null, ['ask', { question: 'which one?' }]);
    const later = new Team({ slugs: ['pm', 'qa'] }, false);
    later.conversation = new Conversation(later.rules, [...team.entries]); // Nothing is outstanding: the conversation is not recovered.
    const { reply } = later.post('the red one', { id: 'an answer' });
    expect(later.result('delegate')).toBe('[dev gave no answer: its turn was aborted]');
    expect(reply).toMatchObject({ agents: ['pm'] });
    expect(later.calls.map((call) => call.agent)).toEqual(['pm']);
  });

  it('the removal of an agent that waits for another agent ends both turns', () => {
    const team = new Team().posted('@dev first');
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
