import type { Entry } from '../log/entry.ts';
import type { Claim, ConversationState } from './state.ts';

/** What the state knows of who works on a conversation, and of how far the ingress stream is in its log: two folds. */

export function claimWith(claim: Claim | null, entry: Entry): Claim | null {
  if (entry.type === 'claim') {
    const { daemon, epoch, attempt } = entry;
    return { daemon, epoch, attempt: attempt ?? 0, progressed: attempt === undefined };
  }
  return claim === null || claim.progressed || !isProgress(entry) ? claim : { ...claim, progressed: true };
}

/** Another life of the stream counts anew. */
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

/** What is appended before anything came of a turn: its being taken up, its tools' beginnings, what people say meanwhile. */
function isProgress(entry: Entry): boolean {
  switch (entry.type) {
    case 'claim':
    case 'turn-started':
    case 'tool-started':
    case 'message-delivered':
    case 'session-set':
    case 'agent-resumed':
      return false;
    case 'message':
      return entry.role !== 'user';
    default:
      return true;
  }
}
