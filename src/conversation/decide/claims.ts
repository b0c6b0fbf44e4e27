import { SYSTEM_AUTHOR } from '../log/entry.ts';
import type { RepairCount } from '../tools/tool-rules.ts';
import type { ClaimCommand, GivenUp } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { addLimit } from './records.ts';
import { owed, recover } from './repair.ts';
import { endTurn, startTurns } from './turns.ts';

/**
 * Whose conversation it is, where several daemons share the work.
 *
 * CLAIMS-1 A claim is an entry: who appends it is the one who works here, until another appends the next one. The log's own
 *    order decides between two (L3), so nothing else has to be asked or kept.
 * CLAIMS-2 A claim takes up what the log owes, in the same batch.
 * CLAIMS-3 A turn that was taken up too often and got nowhere each time is given up, so that what kills a daemon does not
 *    kill one after the other (L15). Only a claimant that fell silent counts: one that handed over did nothing wrong.
 */

/** How often a turn is taken up without getting anywhere. */
export const MOST_ATTEMPTS = 5;

export function claim(
  builder: DecisionBuilder,
  { daemon, ingress, handedOver = false, audited }: ClaimCommand,
): { readonly count: RepairCount; readonly givenUp: readonly GivenUp[] } {
  const before = builder.state.claim;
  const isUnderWay = owed(builder.state).some(({ type }) => type === 'resume-turn');
  const failed = before !== null && !before.progressed ? before.attempt : 0;
  const attempt = handedOver ? Math.max(1, failed) : failed + 1;
  builder.add({
    type: 'claim',
    author: SYSTEM_AUTHOR,
    daemon,
    epoch: (before?.epoch ?? 0) + 1,
    attempt: isUnderWay ? attempt : undefined,
    ingress,
  });
  if (isUnderWay && attempt > MOST_ATTEMPTS) {
    return { count: { repaired: 0, retried: 0, unknown: 0 }, givenUp: giveUp(builder) }; // CLAIMS-3
  }
  return { count: recover(builder, audited), givenUp: [] };
}

/** Ends what was under way; what waits behind it begins. */
function giveUp(builder: DecisionBuilder): GivenUp[] {
  const givenUp: GivenUp[] = [];
  for (const item of owed(builder.state)) {
    const turn = builder.state.agents[item.agent]?.turn;
    if (item.type === 'start-turn' || turn?.turnId !== item.turnId) continue; // it ended with the one before
    if (item.type === 'resume-turn') {
      const tried = `the turn of ${item.agent} was taken up ${MOST_ATTEMPTS} times, and each time its daemon ended before anything came of it`;
      addLimit(builder, turn, 'attempts', tried);
      givenUp.push({ agent: item.agent, turnId: turn.turnId, trigger: turn.trigger });
    }
    endTurn(builder, item.agent, item.type === 'resume-turn' ? 'failed' : 'aborted');
  }
  startTurns(builder);
  return givenUp;
}
