import type { Toolbox } from '../../agents/index.ts';
import type { AnswerOf } from '../../bus/index.ts';
import type { PendingApproval } from '../../conversation/index.ts';
import { fittingIn, readArguments, sha256Of } from '../../kernel/index.ts';

/** Lists of approvals. Who may approve: PERSON-4 of `people.ts`. */

/** Bytes of a list without its items. */
const ENVELOPE = 64;

export interface ApprovalIn {
  readonly conversation: string;
  readonly pending: PendingApproval;
}

interface Page<Item> {
  readonly approvals: readonly Item[];
  /** How many more there are. */
  readonly more?: number | undefined;
}

/** As many as fit into `room` bytes, complete, the oldest of each conversation first. */
export function approvalsPage(found: readonly ApprovalIn[], room: number): AnswerOf<'approvals'> {
  return fitting({ approvals: found.map(listed) }, room);
}

/** Merges the pages of several daemons; each approval occurs once. */
export function mergedApprovals<Item extends { readonly approvalId: string }>(
  pages: readonly Page<Item>[],
  room: number,
): Page<Item> {
  const found = new Map(pages.flatMap(({ approvals }) => approvals).map((item) => [item.approvalId, item]));
  const more = pages.reduce((sum, page) => sum + (page.more ?? 0), 0);
  return fitting({ approvals: [...found.values()], more }, room);
}

/** One that does not fit hides no other. Each fits alone: the entry that requests it is larger. */
function fitting<Item extends object>({ approvals, more = 0 }: Page<Item>, room: number): Page<Item> {
  const kept = fittingIn(approvals, room - ENVELOPE);
  const shown = kept.length > 0 ? kept : approvals.slice(0, 1); // an approval that is not listed cannot be answered
  const hidden = more + approvals.length - shown.length;
  return { approvals: shown, ...(hidden > 0 && { more: hidden }) };
}

function listed({ conversation, pending }: ApprovalIn) {
  const { approvalId, turn, call, mayHaveRun, arguments: text, asks } = pending;
  const { name: tool } = call;
  const covers = call.approval?.covers;
  const asked = {
    approvalId,
    conversation,
    agent: turn.agent,
    tool,
    arguments: text,
    risk: 'risky',
    mayHaveRun,
  };
  return { ...asked, ...(covers !== undefined && !asks && { covers }), ...(asks && { asks }) };
}

/** Nothing is changed, and a failure is what the person reads instead of the difference. */
export async function changeOf(
  { conversation, pending: { call, turn, asks } }: ApprovalIn,
  given: string,
  toolbox: Pick<Toolbox, 'change'>,
): Promise<AnswerOf<'change'>> {
  const parsed = readArguments(given);
  if (asks || !parsed.ok || !toolbox.change) return { change: null };
  const { agent, turnId } = turn;
  const asked = { conversation, agent, turnId, name: call.name, arguments: parsed.value, idempotencyKey: '' };
  const shown = await toolbox.change(asked, new AbortController().signal);
  if (shown === null) return { change: null };
  const text = shown.kind === 'completed' ? shown.content : null;
  const why = shown.kind === 'failed' ? shown.message : 'the daemon stops';
  return { change: text, ...(text === null && { why }), seen: sha256Of(text ?? why) };
}
