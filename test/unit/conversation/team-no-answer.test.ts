import { describe, expect, it } from 'vitest';
import { Conversation } from '../../../src/conversation/index.ts';
import { errorWith } from '../../support/error-with.ts';
import { type Called, PERSON, TeamCore } from './team-core.ts';

const to = (agent: string) => ['delegate', { to: agent, request: 'please' }] as const;
type Happening = (core: TeamCore) => unknown;

describe('a delegate that gives no answer', () => {
  const gone: Happening = (core) => {
    core.do({ type: 'stop', agent: 'dev', by: PERSON });
    core.abort(core.callOf('dev'));
  };
  const aborts =
    (partial?: string): Happening =>
    (core) =>
      core.abort(core.callOf('dev'), partial);
  const says =
    (words: string | null, ...calls: Called[]): Happening =>
    (core) =>
      core.act('dev', words, ...calls);
  const CALL: Called = ['set_phase', { phase: 'chat', reason: 'x' }];
  const NONE = 'LLM_ERROR {"code":"EMPTY_ANSWER"';

  it.each<[string, Happening, string]>([
    ['fails', (core) => core.fail(core.callOf('dev'), 'half'), 'half\n\nLLM_ERROR'],
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
    const core = new TeamCore({ modelCallsPerTurn: 1 }).posted('go');
    core.act('pm', null, to('dev'));
    happen(core);
    expect(core.result('delegate')).toContain(result);
    expect(core.outcomes('pm').at(-1)).toBe('limited'); // The asker continued: its only model call is used.
    expect(core.last('delegation-answered')).toMatchObject({ from: 'dev', to: 'pm', late: false });
  });

  it('a delegate that answers after its asker was stopped adds its answer as a message', () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, to('dev'));
    const dev = core.callOf('dev');
    const { effects } = core.do({ type: 'stop', agent: 'pm', by: PERSON });
    expect(effects).toMatchObject([{ type: 'abort-turn', agent: 'dev' }]);
    expect(core.outcomes('pm')).toEqual(['waiting', 'aborted']);
    expect(core.result('delegate')).toBe('[no answer: the turn was aborted]');
    core.actOn(dev, 'here it is', []);
    expect(core.last('delegation-answered')).toMatchObject({ late: true });
    expect(core.result('delegate')).toBe('[no answer: the turn was aborted]');
    core.post('@pm what now');
    expect(core.request('pm')).toEqual([
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
    const core = new TeamCore().posted('go');
    core.act('pm', null, to('dev'));
    core.do({ type: 'stop', agent: 'pm', by: PERSON });
    const { effects } = core.act('dev', 'I write', ['write']);
    expect(effects).toEqual([]);
    expect(core.outcomes('dev')).toEqual(['aborted']);
  });

  it('TURNS-4: recovery aborts a delegate whose asker was stopped, and does not resume it', () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, to('dev'));
    core.do({ type: 'stop', agent: 'pm', by: PERSON });
    core.crash();
    expect(core.calls).toEqual([]);
    expect(core.outcomes('dev')).toEqual(['aborted']);
    expect(core.last('delegation-answered').late).toBe(true);
  });

  it.each([
    ['the delegate', ['dev', 'pm']],
    ['the asker', ['pm', 'dev']],
  ])(
    "TURNS-4: a delegate does not continue when the crash came before its asker's abort, %s known first",
    (_, first) => {
      const core = new TeamCore();
      for (const slug of first) {
        core.post('hello', { to: [slug] });
        core.drain();
      }
      core.post('go', { to: ['pm'] });
      core.act('pm', null, to('dev'), ['look']);
      core.do({ type: 'stop', agent: 'pm', by: PERSON });
      core.crash();
      expect(core.calls).toEqual([]);
      expect(core.outcomes('dev').at(-1)).toBe('aborted');
      expect(core.outcomes('pm').at(-1)).toBe('aborted');
    },
  );

  it('a delegate ends with its asker when a limit ends the asker while a tool runs', () => {
    const core = new TeamCore().posted('go');
    core.act('pm', null, to('dev'), ['look']);
    const turnId = core.turn('pm')?.turnId ?? '';
    const report = { agent: 'pm', turnId, duration: 1, requestHash: '', upTo: core.entries.length };
    const limit = { name: 'turnSeconds', message: 'too long' };
    const { effects } = core.do({ type: 'model-aborted', partial: '', limit, ...report });
    expect(effects).toMatchObject([{ type: 'abort-turn', agent: 'dev' }]);
    expect(core.outcomes('pm')).toEqual(['limited']);
  });

  it('a queued delegation starts and ends without a model call when its asker has ended', () => {
    const core = new TeamCore().posted('@dev first');
    core.post('go', { to: ['pm'] });
    core.act('pm', null, to('dev'));
    core.do({ type: 'stop', agent: 'pm', by: PERSON });
    const { effects } = core.act('dev', 'done');
    expect(effects).toEqual([]);
    expect(core.outcomes('dev')).toEqual(['completed', 'aborted']);
    expect(core.last('delegation-answered')).toMatchObject({ late: true, answers: [] });
  });

  it.each(['delegate', 'handoff'])(
    'a %s to a stopped agent is refused, and the asking agent continues',
    (tool) => {
      const core = new TeamCore();
      core.do({ type: 'stop', agent: 'dev', by: PERSON });
      core.post('go', { to: ['pm'] });
      core.act(
        'pm',
        null,
        tool === 'delegate' ? to('dev') : ['handoff', { to: 'dev', summary: 'all yours' }],
      );
      expect(JSON.parse(core.result(tool)).error).toMatchObject(errorWith('AGENT_STOPPED', 'dev is stopped'));
      expect(core.calls.map((call) => call.agent)).toEqual(['pm']);
      core.do({ type: 'resume', agent: 'dev', by: PERSON });
      core.act('pm', null, to('dev'));
      expect(core.calls.map((call) => call.agent)).toEqual(['dev']);
    },
  );

  it('the asker of an agent that is stopped with a queued request continues, and a resume starts nothing', () => {
    const core = new TeamCore().posted('@dev first');
    core.post('go', { to: ['pm'] });
    core.act('pm', null, to('dev'));
    core.do({ type: 'stop', agent: 'dev', by: PERSON });
    core.abort(core.callOf('dev'));
    expect(JSON.parse(core.result('delegate')).error.code).toBe('AGENT_STOPPED');
    expect(core.calls.map((call) => call.agent)).toEqual(['pm']);
    core.act('pm', 'dev is stopped');
    core.do({ type: 'resume', agent: 'dev', by: PERSON });
    expect(core.calls).toEqual([]);
    expect(core.outcomes('dev')).toEqual(['aborted', 'aborted']);
    expect(core.last('delegation-answered')).toMatchObject({ late: true, answers: [] });
  });

  it('no asker continues when every agent is stopped', () => {
    const core = new TeamCore().posted('@dev first');
    core.post('go', { to: ['pm'] });
    core.act('pm', null, to('dev'), ['look']);
    core.do({ type: 'stop', agent: null, by: PERSON });
    core.abort(core.callOf('dev'));
    expect(core.outcomes('pm').at(-1)).not.toBe('completed');
    expect(core.calls).toEqual([]);
  });

  it('the asker of an agent that was removed from the configuration gets a result', () => {
    const core = new TeamCore().posted('@dev first');
    core.post('go', { to: ['pm'] });
    core.act('pm', null, to('dev'));
    const later = without('dev', core);
    expect(later.result('delegate')).toContain('dev gave no answer');
    expect(later.calls.map((call) => call.agent)).toEqual(['pm']);
  });

  it('the next message ends the turn of an agent that was removed while it waited for a person', () => {
    const core = new TeamCore().posted('go', { to: ['pm'] });
    core.act('pm', null, to('dev'));
    core.act('dev', null, ['ask', { question: 'which one?' }]);
    const later = new TeamCore({ slugs: ['pm', 'qa'] }, false);
    later.conversation = new Conversation(later.rules, [...core.entries]); // Nothing is outstanding: the conversation is not recovered.
    const { reply } = later.post('the red one', { id: 'an answer' });
    expect(later.result('delegate')).toBe('[dev gave no answer: its turn was aborted]');
    expect(reply).toMatchObject({ agents: ['pm'] });
    expect(later.calls.map((call) => call.agent)).toEqual(['pm']);
  });

  it('the removal of an agent that waits for another agent ends both turns', () => {
    const core = new TeamCore().posted('@dev first');
    core.act('dev', null, ['delegate', { to: 'qa', request: 'try it' }]);
    const later = without('dev', core);
    expect(later.outcomes('dev')).toEqual(['waiting', 'aborted']);
    expect(later.outcomes('qa')).toEqual(['aborted']);
    expect(later.calls).toEqual([]);
  });
});

/** The same log after a restart with a configuration that lacks one agent. */
function without(slug: string, core: TeamCore): TeamCore {
  const later = new TeamCore({ slugs: ['pm', 'dev', 'qa'].filter((other) => other !== slug) }, false);
  later.conversation.entries.push(...core.entries);
  later.boundaries = [core.entries.length];
  later.crash();
  return later;
}
