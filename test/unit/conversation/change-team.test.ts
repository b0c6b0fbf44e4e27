import { describe, expect, it } from 'vitest';
import {
  type Author,
  type Command,
  Conversation,
  checkKnowledge,
  checkLaws,
  type Entry,
  hasOutstandingWork,
  type TeamChange,
} from '../../../src/conversation/index.ts';
import { itLong } from '../../support/long.ts';
import { Core, rulesFor } from './core.ts';
import { typed } from './life.ts';
import { TeamCore } from './team-core.ts';

const by: Author = { kind: 'person', id: 'operator', name: 'Operator' };
const REMOVED: TeamChange = { agent: 'dev', change: 'removed', parts: [] };
const changed = (agent: string): TeamChange => ({ agent, change: 'changed', parts: ['persona'] });

/** The same log under the rules of a team with these agents. */
function under(entries: readonly Entry[], slugs: string[]): Conversation {
  let ids = 0;
  return new Conversation({ ...rulesFor(slugs), newId: () => `later-${ids++}` }, [...entries]);
}

describe('a change of the team', () => {
  it('TEAM-CHANGE-1: a change is one entry that names the agents of the conversation, and their turns continue', () => {
    const core = new Core().posted('Hello');
    const { entries, effects } = core.do({
      type: 'change-team',
      changes: [changed('dev'), changed('pm')],
      by,
    });
    expect(entries).toMatchObject([{ type: 'team-changed', author: by, agents: [changed('pm')] }]);
    expect(effects).toEqual([]);
    expect(core.conversation.state.agents.pm?.turn?.status).toBe('running');
    expect(core.view('pm').tail).toHaveLength(1);
  });

  it('a change of agents outside the conversation appends no entry', () => {
    const core = new Core().posted('Hello');
    expect(core.do({ type: 'change-team', changes: [changed('dev')], by }).entries).toEqual([]);
    expect(new Core().do({ type: 'change-team', changes: [changed('pm')], by }).entries).toEqual([]);
  });

  it('TEAM-CHANGE-2: the removal of an agent ends its running turn and aborts its work, once', () => {
    const core = new Core().posted('@dev Hello');
    const turnId = core.calls[0]?.turnId;
    const later = under(core.entries, ['pm']);
    const command: Command = { type: 'change-team', changes: [REMOVED], by };
    const { entries, effects } = later.apply(command, 0);
    expect(entries).toMatchObject([
      { type: 'team-changed' },
      { type: 'turn-ended', agent: 'dev', outcome: 'aborted' },
    ]);
    expect(effects).toMatchObject([{ type: 'abort-turn', agent: 'dev', turnId }]);
    expect(checkLaws(later.entries)).toEqual([]);
    const again = later.apply({ ...command, changes: [] }, 0);
    expect([again.entries, again.effects]).toEqual([[], []]);
    const report = { type: 'model-aborted', agent: 'dev', turnId: turnId ?? '', partial: 'half' } as const;
    const late = later.apply({ ...report, duration: 1, requestHash: 'h', upTo: 2 }, 0);
    expect([late.reply.kind, late.entries]).toEqual(['stale', []]);
  });

  it('TEAM-CHANGE-2: the running turn of a hired agent continues', () => {
    const core = new TeamCore({ models: ['m'], hiring: {} });
    core.do({ type: 'hire', agent: { slug: 'helper', persona: 'Help.', model: 'm' }, by });
    core.post('@helper Hello');
    const { entries, effects } = core.do({ type: 'change-team', changes: [changed('pm')], by });
    expect([entries, effects]).toEqual([[], []]);
    expect(core.turn('helper')?.status).toBe('running');
  });

  it('L15: at a start without an agent, its asker continues with one call of its model', () => {
    const core = new TeamCore().posted('Hello');
    core.act('pm', null, ['delegate', { to: 'dev', request: 'Build it.' }]);
    core.act('dev', null, ['ask', { question: 'Which?' }]);
    const { effects } = under(core.entries, ['pm', 'qa']).apply({ type: 'recover' }, 0);
    expect(effects).toMatchObject([{ type: 'call-model', agent: 'pm' }]);
  });

  it('an agent that asked a removed agent gets an answer', () => {
    const core = new TeamCore().posted('Hello');
    core.act('pm', null, ['delegate', { to: 'dev', request: 'Build it.' }]);
    expect(core.conversation.state.agents.pm?.turn?.status).toBe('waiting');
    const later = under(core.entries, ['pm', 'qa']);
    const { entries, effects } = later.apply({ type: 'change-team', changes: [REMOVED], by }, 0);
    expect(typed(entries, 'delegation-answered')).toMatchObject([{ from: 'dev', to: 'pm', late: false }]);
    expect(effects).toEqual(
      expect.arrayContaining([expect.objectContaining({ type: 'call-model', agent: 'pm' })]),
    );
    expect(checkLaws(later.entries)).toEqual([]);
  });

  it.each([
    ['a reload', { type: 'change-team', changes: [REMOVED], by } as Command],
    ['a start', { type: 'recover' } as Command],
  ])(
    'TURNS-8: after %s the posts that wait for a removed agent end with an error that names the agent',
    (_when, command) => {
      const core = new Core().posted('@dev one');
      core.post('@dev two', { delivery: 'queue' });
      core.post('@dev three', { delivery: 'queue' });
      const later = under(core.entries, ['pm']);
      const { entries } = later.apply(command, 0);
      expect(typed(entries, 'turn-ended').map(({ agent, outcome }) => [agent, outcome])).toEqual([
        ['dev', 'aborted'],
        ['dev', 'failed'],
      ]);
      expect(typed(entries, 'turn-started')).toMatchObject([{ agent: 'dev', trigger: [2, 3] }]);
      const [error] = typed(entries, 'message');
      expect(error).toMatchObject({ partType: 'error', content: expect.stringContaining('AGENT_REMOVED') });
      expect(error?.content).toMatch(/dev.*parley reload/u);
      expect(hasOutstandingWork(later.state)).toBe(false);
      expect(checkLaws(later.entries)).toEqual([]);
      expect(checkKnowledge(later.entries)).toEqual([]);
    },
  );

  itLong('20,000 posts that wait for a removed agent end in one turn', () => {
    const core = new Core().posted('@dev one');
    const later = under(core.entries, ['pm', 'dev']);
    for (let n = 0; n < 20_000; n++) {
      const post = { id: `p${n}`, author: { id: 'alice', name: 'Alice' }, content: '@dev more' };
      later.apply({ type: 'post', post: { ...post, delivery: 'queue' } }, 0);
    }
    const reloaded = under(later.entries, ['pm']);
    expect(reloaded.apply({ type: 'change-team', changes: [REMOVED], by }, 0).entries).toHaveLength(5);
    expect(hasOutstandingWork(reloaded.state)).toBe(false);
  });
});
