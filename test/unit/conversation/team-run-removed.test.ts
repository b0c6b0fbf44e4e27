import { describe, expect, it } from 'vitest';
import { Conversation, type Workflow } from '../../../src/conversation/index.ts';
import { kinds, PERSON, SHIP_IT, TALK, Team } from './team.ts';

const done = (outcome: string) => ['complete_node', { outcome, summary: 'as said' }] as const;

type Options = ConstructorParameters<typeof Team>[0];

const { build: _, ...nodes } = SHIP_IT.nodes;
const WITHOUT_BUILD: Workflow = { ...SHIP_IT, nodes };

/** What the configuration lacks after the restart, and the reason in the log. */
const REMOVED: readonly [string, Options, string][] = [
  ['its agent', { slugs: ['pm', 'qa'] }, 'agent dev was removed from the configuration'],
  ['its workflow', { workflows: [TALK] }, 'workflow ship-it was removed from the configuration'],
  ['its node', { workflows: [WITHOUT_BUILD] }, 'node build of ship-it was removed from the configuration'],
];

/** A run at the node of dev, whose turn has ended without an outcome. */
function atIdleNode(): Team {
  const team = new Team();
  team.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', input: 'build a clock', by: PERSON });
  team.act('pm', null, done('planned'));
  team.act('dev', 'not yet');
  expect(team.conversation.state.run).toMatchObject({ node: 'build', agent: 'dev' });
  return team;
}

function restarted(team: Team, options: Options): Team {
  const later = new Team(options, false);
  later.conversation = new Conversation(later.rules, [...team.entries]);
  return later;
}

describe('a run that needs something that was removed from the configuration', () => {
  it.each(REMOVED)('recovery ends the run once, with the reason: %s', (_what, options, summary) => {
    const later = restarted(atIdleNode(), options);
    const { entries } = later.do({ type: 'recover' });
    expect(kinds(entries)).toEqual(['run-ended', 'mode-entered']);
    expect(entries[0]).toMatchObject({ author: { kind: 'system' }, outcome: 'aborted', summary });
    expect(later.conversation.state).toMatchObject({ mode: 'agent', run: null });
    expect(later.do({ type: 'recover' }).entries).toEqual([]);
  });

  it('recovery ends the run before it resumes the running turn, which then has no node', () => {
    const team = new Team();
    team.do({ type: 'set-mode', mode: 'run', workflow: 'ship-it', input: 'build a clock', by: PERSON });
    team.act('pm', null, done('planned'));
    const later = restarted(team, { workflows: [TALK] });
    expect(kinds(later.do({ type: 'recover' }).entries)).toEqual([
      'run-ended',
      'mode-entered',
      'turn-started dev',
    ]);
    later.act('dev', null, done('built'));
    expect(later.result('complete_node')).toContain('NO_NODE');
  });

  it('the run stays at its node while agent, workflow and node exist', () => {
    const later = restarted(atIdleNode(), { workflows: [SHIP_IT] });
    expect(later.do({ type: 'recover' }).entries).toEqual([]);
    expect(later.conversation.state.run).toMatchObject({ node: 'build', agent: 'dev' });
  });
});
