import { type ConversationState, isParticipant } from '../state/state.ts';
import type { Command, Reply } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { endRunOfRemoved } from './runs.ts';
import { endTurn, endTurnsOfRemovedAgents, startTurns } from './turns.ts';

/**
 * The configuration of the agents was replaced while the conversation is open.
 *
 * TEAM-CHANGE-1 One entry names the agents of this conversation that were added, changed or removed. Without one of them
 *               there is no entry.
 * TEAM-CHANGE-2 A running turn of a removed agent ends, as at a start without that agent: its calls get a result, its asker an
 *               answer. Any other running turn continues.
 */
export function changeTeam(
  builder: DecisionBuilder,
  { changes, by }: Extract<Command, { type: 'change-team' }>,
): Reply {
  const agents = changes.filter(({ agent }) => isParticipant(builder.state, agent));
  if (agents.length > 0) builder.add({ type: 'team-changed', author: by, agents });
  endTurnsOfRemovedAgents(builder);
  endRunningTurns(builder, builder.state); // TEAM-CHANGE-2
  endRunOfRemoved(builder);
  startTurns(builder); // an agent that is back has waiting entries
  return { kind: 'done' };
}

function endRunningTurns(builder: DecisionBuilder, { agents }: ConversationState): void {
  for (const [agent, { turn }] of Object.entries(agents)) {
    if (turn?.status !== 'running' || builder.context.roster.agents.has(agent)) continue;
    const { turnId } = turn;
    endTurn(builder, agent, 'aborted');
    builder.effect({ type: 'abort-turn', agent, turnId, key: builder.nextIndex - 1 });
  }
}
