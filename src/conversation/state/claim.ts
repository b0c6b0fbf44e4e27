import type { Entry } from '../log/entry.ts';
import { traitsOf } from '../log/entry-traits.ts';
import type { Claim, ConversationState } from './state.ts';

/** The owner of a conversation, and the newest post in its log: two folds of their own. */

export function claimWith(claim: Claim | null, entry: Entry): Claim | null {
  if (entry.type === 'claim') {
    const { daemon, epoch, attempt } = entry;
    return { daemon, epoch, attempt: attempt ?? 0, progressed: attempt === undefined };
  }
  return claim === null || claim.progressed || !isProgress(entry) ? claim : { ...claim, progressed: true };
}

/** Sequences of another stream start again at 0. */
export function ingressWith(
  ingress: ConversationState['ingress'],
  entry: Entry,
): ConversationState['ingress'] {
  const { stream } = ingress;
  if (entry.type === 'claim')
    return (entry.ingress ?? null) === stream ? ingress : { stream: entry.ingress ?? null, sequence: 0 };
  const { ingressSequence: sequence = 0 } = entry;
  return sequence > ingress.sequence ? { stream, sequence } : ingress;
}

/** A post is no progress: people may post while no daemon runs. */
function isProgress(entry: Entry): boolean {
  return traitsOf(entry).isProgress && !(entry.type === 'message' && entry.role === 'user');
}
