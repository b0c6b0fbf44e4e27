import { SYSTEM_AUTHOR } from '../log/entry.ts';
import type { RepairCount } from '../tools/tool-rules.ts';
import type { ClaimCommand, GivenUp } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { addLimit } from './records.ts';
import { outstandingWork, recover } from './repair.ts';
import { endTurn, startTurns } from './turns.ts';

/**
 * Ownership of a conversation where several daemons share logs.
 *
 * CLAIMS-1 A claim is an entry. The daemon that appended the newest one owns the conversation; the order of the log
 *          decides between two (L3), so no other state is needed.
 * CLAIMS-2 A claim resumes all outstanding work in the same batch.
 * CLAIMS-3 A turn that was resumed `MOST_ATTEMPTS` times without progress is given up, so that work that kills a daemon
 *          does not kill every daemon (L15). An attempt counts only if the claimant failed, not if it handed over.
 */

/** Attempts to resume a turn without progress before it is given up. */
const MOST_ATTEMPTS = 5;

export function claim(
  builder: DecisionBuilder,
  { daemon, ingress, handedOver = false, audited }: ClaimCommand,
): { readonly count: RepairCount; readonly givenUp: readonly GivenUp[] } {
  const before = builder.state.claim;
  const isUnderWay = outstandingWork(builder.state).some(({ type }) => type === 'resume-turn');
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
    return { count: { repaired: 0, retried: 0, unknown: 0 }, givenUp: giveUp(builder) };
  }
  return { count: recover(builder, audited), givenUp: [] };
}

/** Ends the turns that were resumed too often, and starts the next ones. */
function giveUp(builder: DecisionBuilder): GivenUp[] {
  const givenUp: GivenUp[] = [];
  for (const item of outstandingWork(builder.state)) {
    const turn = builder.state.agents[item.agent]?.turn;
    if (item.type === 'start-turn' || turn?.turnId !== item.turnId) continue; // it ended with an earlier item
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
