import { firstCodePoints, type PendingApproval } from '../conversation/index.ts';
import { ParleyError } from '../kernel/index.ts';

/**
 * Approvals as the request API lists them, and who may answer.
 *
 * Q1 Who is named, by the subject or in the body, must be one of `approvals.approvers`. The plain subject is the
 *    operator's: server permissions say who may use it, and whoever may and names nobody answers as the operator.
 * Q2 The list fits one answer: long arguments are cut, and say how long they are; only what then does not fit is left out.
 */

/** Characters of a call's arguments that are shown, at most and at least, where they do not all fit. */
const MOST_SHOWN = 32_768;
const LEAST_SHOWN = 128;

export interface ApprovalIn {
  readonly conversation: string;
  readonly pending: PendingApproval;
}

/** Throws `FORBIDDEN`: who speaks under a name of his own subject speaks as nobody else. */
export function refuseOther(does: string, sender: string | null, named: unknown): void {
  if (sender === null || named === undefined || named === sender) return;
  throw new ParleyError('FORBIDDEN', `you may ${does} as ${sender}, not as ${String(named)}`, {
    hint: 'leave `publisher` out of the body, or name the one that the subject ends with',
  });
}

/** Q1. Throws `FORBIDDEN`. */
export function refuseStranger(who: string | undefined, approvers: readonly string[]): void {
  if (who === undefined || approvers.includes('*') || approvers.includes(who)) return;
  throw new ParleyError('FORBIDDEN', `${who} may not answer approvals`, {
    hint: 'approvals.approvers in parley.yaml names who may',
  });
}

/** Q2: as many as fit into `room` bytes, the oldest of each conversation first; `more`: how many are left out. */
export function approvalsPage(found: readonly ApprovalIn[], room: number): object {
  for (let shown = Number.POSITIVE_INFINITY; ; shown = Math.min(shown, MOST_SHOWN * 2) / 2) {
    const listed = found.map((item) => listedWith(item, shown));
    if (sizeOf(listed) < room) return { approvals: listed };
    if (shown <= LEAST_SHOWN) return fitting(listed, room);
  }
}

function fitting(listed: readonly object[], room: number): object {
  let left = room;
  const first = listed.findIndex((item) => {
    left -= sizeOf(item) + 1;
    return left < 0;
  });
  const approvals = listed.slice(0, Math.max(first, 1)); // one at least, or nobody could answer any
  return { approvals, more: listed.length - approvals.length };
}

function listedWith({ conversation, pending }: ApprovalIn, shown: number): object {
  const { approvalId, turn, call, mayHaveRun } = pending;
  const isCut = call.arguments.length > shown;
  return {
    approvalId,
    conversation,
    agent: turn.agent,
    tool: call.name,
    arguments: isCut ? firstCodePoints(call.arguments, shown) : call.arguments,
    risk: 'risky',
    mayHaveRun,
    ...(isCut && { argumentsLength: call.arguments.length }),
  };
}

function sizeOf(value: object): number {
  return Buffer.byteLength(JSON.stringify(value));
}
