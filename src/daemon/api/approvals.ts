import { mayNotActAs, type PendingApproval } from '../../conversation/index.ts';
import { ParleyError, type Refusal } from '../../kernel/index.ts';

/** Approvals as the request API lists them. Who may answer them: PERSON-4 of `people.ts`. */

/** Bytes of a list besides its items. */
const ENVELOPE = 64;

export interface ApprovalIn {
  readonly conversation: string;
  readonly pending: PendingApproval;
}

/** Throws `FORBIDDEN`: who speaks under a name of his own subject speaks as nobody else. */
export function refuseOther(sender: string | null, named: unknown): void {
  if (sender === null || named === undefined || named === sender) return;
  throw forbidden(mayNotActAs(sender, named));
}

function forbidden({ code, message, hint }: Refusal): ParleyError {
  return new ParleyError(code, message, { hint });
}

interface Listed {
  readonly approvalId: string;
}

export interface ApprovalsPage {
  readonly approvals: readonly Listed[];
  /** How many are left out. */
  readonly more?: number;
}

/** As many as fit into `room` bytes, whole, the oldest of each conversation first. */
export function approvalsPage(found: readonly ApprovalIn[], room: number): ApprovalsPage {
  return fitting({ approvals: found.map(listed) }, room);
}

/** The pages of several daemons as one, each approval once. */
export function mergedApprovals(pages: readonly ApprovalsPage[], room: number): ApprovalsPage {
  const found = new Map(pages.flatMap(({ approvals }) => approvals).map((item) => [item.approvalId, item]));
  const more = pages.reduce((sum, page) => sum + (page.more ?? 0), 0);
  return fitting({ approvals: [...found.values()], more }, room);
}

/** One that does not fit hides none of the others. Alone each fits, since the entry that asks for it is larger. */
function fitting({ approvals, more = 0 }: ApprovalsPage, room: number): ApprovalsPage {
  let left = room - ENVELOPE;
  const kept = approvals.filter((item) => {
    const size = sizeOf(item) + 1;
    if (size > left) return false;
    left -= size;
    return true;
  });
  const shown = kept.length > 0 ? kept : approvals.slice(0, 1); // else it could never be answered
  const hidden = more + approvals.length - shown.length;
  return { approvals: shown, ...(hidden > 0 && { more: hidden }) };
}

function listed({ conversation, pending }: ApprovalIn) {
  const { approvalId, turn, call, mayHaveRun } = pending;
  const { name: tool, arguments: text } = call;
  return { approvalId, conversation, agent: turn.agent, tool, arguments: text, risk: 'risky', mayHaveRun };
}

function sizeOf(value: object): number {
  return Buffer.byteLength(JSON.stringify(value));
}
