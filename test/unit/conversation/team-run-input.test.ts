import { describe, expect, it } from 'vitest';
import { Conversation } from '../../../src/conversation/index.ts';
import { kinds, PERSON, Team } from './team.ts';

const done = (outcome: string) => ['complete_node', { outcome, summary: 'as said' }] as const;

/** A log that begins with a run whose first node triggered its agent. */
function earlierRun(): Team {
  const team = new Team();
  team.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', by: PERSON });
  const log = team.entries.map((entry) => {
    if (entry.type !== 'node-entered') return entry;
    const { agent, ...rest } = entry;
    return { ...rest, to: [agent ?? expect.unreachable()] };
  });
  team.conversation = new Conversation(team.rules, log);
  team.do({ type: 'recover' });
  return team;
}

/** A conversation with one answered message of a person. */
function afterExchange(): Team {
  const team = new Team().posted('a clock would be nice');
  team.act('pm', 'it would');
  return team;
}

describe('a run', () => {
  it.each([
    ['in a new conversation', () => new Team()],
    ['after an exchange', afterExchange],
  ])('a run without an input %s waits for the next message to its agent, after a crash too', (_, begin) => {
    const team = begin();
    const { entries, effects } = team.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', by: PERSON });
    expect(kinds(entries)).toEqual(['mode-entered', 'run-started', 'node-entered']);
    expect(entries[2]).toMatchObject({ node: 'plan', agent: 'pm' });
    expect(entries[2]).not.toHaveProperty('to');
    expect(effects).toEqual([]);
    team.crash();
    expect(team.conversation.state.run).toMatchObject({ node: 'plan', agent: 'pm', awaitsInput: true });
    team.post('for people', { includeInContext: false });
    team.post('@dev are you there?');
    team.act('dev', 'yes');
    expect(team.turn('pm')).toBeNull();
    expect(team.conversation.state.run).toHaveProperty('awaitsInput');

    expect(team.post('Build me a clock').reply).toMatchObject({ agents: ['pm'] });
    expect(team.conversation.state.run).not.toHaveProperty('awaitsInput');
    expect(team.last('turn-started')).toMatchObject({ agent: 'pm', trigger: [team.last('message').index] });
    expect(team.request('pm').at(-1)?.[1]).toContain('Build me a clock');
    team.act('pm', null, done('planned'));
    expect(team.conversation.state.run).toMatchObject({ node: 'build', agent: 'dev' });
    expect(team.callOf('dev')).toBeDefined();
  });

  it('a run that waits for its input still waits after its agent completed a delegation', () => {
    const team = new Team().posted('@dev go');
    team.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', by: PERSON });
    team.act('dev', null, ['delegate', { to: 'pm', request: 'when?' }]);
    team.act('pm', 'tomorrow');
    expect(team.result('delegate')).toBe('tomorrow');
    expect(team.conversation.state.run).toHaveProperty('awaitsInput');
    team.act('dev', 'tomorrow then');
    team.post('build a clock');
    expect(team.conversation.state.run).not.toHaveProperty('awaitsInput');
  });

  it('a run with an input begins with it, in one append, whatever messages came before', () => {
    for (const team of [new Team(), afterExchange()]) {
      const command = { type: 'set-mode', mode: 'run', workflow: 'ship-it', by: PERSON } as const;
      const { entries } = team.do({ ...command, input: '@dev knows: build a clock' });
      expect(kinds(entries)).toEqual([
        'mode-entered',
        'run-started',
        'node-entered',
        `user ${PERSON.id}`,
        'turn-started pm',
      ]);
      expect(entries[3]).toMatchObject({ author: PERSON, to: ['pm'], mode: 'run' });
      expect(entries[4]).toMatchObject({ trigger: [entries[3]?.index] });
      expect(team.conversation.state.run).not.toHaveProperty('awaitsInput');
    }
  });

  it('the input of a run gives a busy agent a turn of its own, and answers no open question', () => {
    const team = new Team().posted('go');
    team.act('pm', null, ['ask', { question: 'where?' }]);
    const input = { type: 'set-mode', mode: 'run', workflow: 'talk', by: PERSON, input: 'a clock' } as const;
    expect(team.do(input).effects).toEqual([]);
    const at = team.last('message').index;
    team.post('there');
    expect(team.result('ask')).toBe('there');
    team.act('pm', 'fine');
    expect(team.last('turn-started')).toMatchObject({ agent: 'pm', trigger: [at] });
  });

  it.each([
    ['of its first agent, with no agent named', 'pm', 'there', {}, true],
    ['of its first agent, to the agent by name', 'pm', '@pm there', {}, true],
    ['of its first agent, with a delivery of its own', 'pm', 'there', { delivery: 'queue' }, true],
    ['of its first agent, also addressed to another agent', 'pm', '@pm @qa there', {}, true],
    ['of another agent', 'dev', 'there', {}, true],
    ['of another agent, also addressed to its first agent', 'dev', '@pm @dev there', {}, false],
  ] as const)(
    'a run that waits for its input handles the answer to a question %s',
    (_, asker, words, more, waits) => {
      const team = new Team().posted(`@${asker} go`);
      team.act(asker, null, ['ask', { question: 'where?' }]);
      team.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', by: PERSON });
      team.post(words, more);
      expect(team.result('ask')).toBe(words);
      const { run } = team.conversation.state;
      expect(run?.awaitsInput ?? false).toBe(waits);
      team.crash();
      expect(team.conversation.state.run?.awaitsInput ?? false).toBe(waits);
      if (!waits) return;
      team.act(asker, 'thanks');
      expect(team.conversation.state.run).toMatchObject({ node: 'plan', awaitsInput: true });
      team.post('@pm build a clock');
      expect(team.conversation.state.run).not.toHaveProperty('awaitsInput');
      expect(team.last('turn-started')).toMatchObject({ agent: 'pm', trigger: [team.last('message').index] });
      team.act('pm', null, done('planned'));
      expect(team.conversation.state.run).toMatchObject({ node: 'build', agent: 'dev' });
    },
  );

  it('a run in a log of an earlier version, without the first message, continues at its node', () => {
    const team = earlierRun();
    expect(team.conversation.state.run).not.toHaveProperty('awaitsInput');
    expect(team.callOf('pm')).toBeDefined();
    team.act('pm', null, done('planned'));
    expect(team.callOf('dev')).toBeDefined();
  });

  it.each(['chat', 'agent'] as const)('mode %s refuses a workflow and an input', (mode) => {
    for (const more of [{ workflow: 'talk' }, { input: 'a clock' }])
      expect(new Team().do({ type: 'set-mode', mode, ...more, by: PERSON })).toMatchObject({
        entries: [],
        reply: { refusal: { code: 'INVALID_FIELD', message: expect.stringContaining(`mode ${mode} takes`) } },
      });
  });

  it('a run without a message of a person gives the conversation no title', () => {
    const team = earlierRun();
    team.act('pm', 'well', done('planned'));
    expect(team.conversation.state.title).toBeNull();
  });
});
