import { describe, expect, it } from 'vitest';
import { kinds, PERSON, Team } from './team.ts';

const start = { workflow: 'ship-it', id: 'begin' };

describe('a post with a workflow', () => {
  it('a post with a workflow starts the run with its text as input in one append, even if it mentions agents and others are busy', () => {
    const busy = new Team().posted('@pm what time is it?');
    for (const team of [new Team(), busy]) {
      const { entries, reply } = team.post('@dev knows: build a clock', start);
      expect(kinds(entries).slice(0, 4)).toEqual([
        'mode-entered',
        'run-started',
        'node-entered',
        'user alice',
      ]);
      expect(entries[3]).toMatchObject({ ...start, to: ['pm'], mode: 'run', delivery: 'queue' });
      expect(entries[1]).toMatchObject({ author: { id: 'alice' } });
      expect(reply).toMatchObject({ kind: 'posted', index: entries[3]?.index, agents: ['pm'] });
      expect(team.conversation.state.run).toMatchObject({ workflowId: 'ship-it', node: 'plan' });
      expect(team.conversation.state.run).not.toHaveProperty('awaitsInput');
      if (team === busy) team.act('pm', 'late');
      expect(team.last('turn-started')).toMatchObject({ agent: 'pm', trigger: [entries[3]?.index] });
    }
  });

  it('a repeated post with a workflow starts nothing, also after a crash and after the run has ended', () => {
    const team = new Team().posted('build a clock', start);
    const again = () => team.post('build a clock', start);
    expect(again()).toMatchObject({ entries: [], reply: { duplicate: true, index: 3 } });
    team.crash();
    expect(again()).toMatchObject({ entries: [], reply: { duplicate: true, index: 3 } });
    team.do({ type: 'set-mode', mode: 'chat', by: PERSON });
    expect(again()).toMatchObject({ entries: [], reply: { duplicate: true, index: 3 } });
    expect(team.entries.filter(({ type }) => type === 'run-started')).toHaveLength(1);
  });

  it('a post with a workflow and the id of a message without one, or with another one, is refused', () => {
    const team = new Team().posted('build a clock', start);
    for (const workflow of [undefined, 'talk'])
      expect(team.post('build a clock', { id: 'begin', ...(workflow && { workflow }) }).reply).toMatchObject({
        refusal: { code: 'ID_CONFLICT', message: expect.stringContaining('another "workflow"') },
      });
  });

  it('a post with a workflow is refused while a run is active, with its node and the known workflows', () => {
    const team = new Team().posted('build a clock', start);
    for (const workflow of ['ship-it', 'talk'])
      expect(team.post('and a lamp', { workflow })).toMatchObject({
        entries: [],
        reply: {
          refusal: {
            code: 'RUN_CONFLICT',
            message: 'a run of ship-it is active in this conversation, at the node plan',
            hint: expect.stringContaining('workflows: ship-it, talk'),
          },
        },
      });
    team.do({ type: 'set-mode', mode: 'chat', by: PERSON });
    expect(team.post('and a lamp', { workflow: 'talk' }).reply).toMatchObject({ kind: 'posted' });
  });

  it.each([
    [{ workflow: 'none' }, 'UNKNOWN_WORKFLOW', 'there is no workflow none'],
    [
      { ...start, to: ['dev'], delivery: 'interrupt' as const },
      'INVALID_FIELD',
      'field workflow: it cannot be combined with to, delivery interrupt',
    ],
    [
      { ...start, includeInContext: false },
      'INVALID_FIELD',
      'field workflow: it cannot be combined with includeInContext false',
    ],
  ])('a post with the fields %j is refused as a whole', (more, code, message) => {
    const team = new Team();
    const { entries, reply } = team.post('build a clock', more);
    expect(entries).toEqual([]);
    expect(reply).toMatchObject({ kind: 'refused', refusal: { code, message } });
    expect(team.entries).toEqual([]);
  });

  it('a post with a workflow answers no open question', () => {
    const team = new Team().posted('go');
    team.act('pm', null, ['ask', { question: 'where?' }]);
    team.post('a clock', { workflow: 'talk' });
    expect(team.turn('pm')?.openCalls).toHaveLength(1);
    team.post('there');
    expect(team.result('ask')).toBe('there');
  });
});
