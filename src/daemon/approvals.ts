import { firstCodePoints, mayNotActAs, mayNotApprove, type PendingApproval } from '../conversation/index.ts';
import { ParleyError, type Refusal } from '../kernel/index.ts';

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
export function refuseOther(sender: string | null, named: unknown): void {
  if (sender === null || named === undefined || named === sender) return;
  throw forbidden(mayNotActAs(sender, named));
}

/** Q1. Throws `FORBIDDEN`. `id`: of the person as the log names it. */
export function refuseStranger(
  publisher: string | undefined,
  id: string,
  approvers: readonly string[],
): void {
  if (publisher === undefined || approvers.includes('*') || approvers.includes(publisher)) return;
  throw forbidden(mayNotApprove(id));
}

function forbidden({ code, message, hint }: Refusal): ParleyError {
  return new ParleyError(code, message, { hint });
}

/** An approval as it is listed; `argumentsLength` where its arguments are cut. */
interface Listed {
  readonly approvalId: string;
  readonly arguments: string;
  readonly argumentsLength?: number;
}

export interface ApprovalsPage {
  readonly approvals: readonly Listed[];
  /** How many are left out. */
  readonly more?: number;
}

/** Q2: as many as fit into `room` bytes, the oldest of each conversation first. */
export function approvalsPage(found: readonly ApprovalIn[], room: number): ApprovalsPage {
  return fitting({ approvals: found.map(listed) }, room);
}

/** The pages of several daemons as one, each approval once (Q2). */
export function mergedApprovals(pages: readonly ApprovalsPage[], room: number): ApprovalsPage {
  const found = new Map(pages.flatMap(({ approvals }) => approvals).map((item) => [item.approvalId, item]));
  const more = pages.reduce((sum, page) => sum + (page.more ?? 0), 0);
  return fitting({ approvals: [...found.values()], ...(more > 0 && { more }) }, room);
}

function fitting(page: ApprovalsPage, room: number): ApprovalsPage {
  if (sizeOf(page.approvals) < room) return page;
  for (let shown = MOST_SHOWN; ; shown /= 2) {
    const approvals = page.approvals.map((item) => cutTo(item, shown));
    if (sizeOf(approvals) < room) return { ...page, approvals };
    if (shown <= LEAST_SHOWN) return shortened({ ...page, approvals }, room);
  }
}

function shortened({ approvals, more = 0 }: ApprovalsPage, room: number): ApprovalsPage {
  let left = room;
  const first = approvals.findIndex((item) => {
    left -= sizeOf(item) + 1;
    return left < 0;
  });
  const kept = approvals.slice(0, Math.max(first, 1)); // one at least, or nobody could answer any
  return { approvals: kept, more: more + approvals.length - kept.length };
}

function cutTo<T extends Listed>(item: T, shown: number): T {
  const { arguments: text, argumentsLength = text.length } = item;
  return text.length > shown ? { ...item, arguments: firstCodePoints(text, shown), argumentsLength } : item;
}

function listed({ conversation, pending }: ApprovalIn) {
  const { approvalId, turn, call, mayHaveRun } = pending;
  const { name: tool, arguments: text } = call;
  return { approvalId, conversation, agent: turn.agent, tool, arguments: text, risk: 'risky', mayHaveRun };
}

function sizeOf(value: object): number {
  return Buffer.byteLength(JSON.stringify(value));
}
