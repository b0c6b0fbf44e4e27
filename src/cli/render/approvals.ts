import type { PendingApproval } from '../../client/index.ts';
import { escapeHidden } from '../../kernel/index.ts';
import { printable } from './text.ts';

/** One call that waits: what is to be run, for whom, and how to answer. `command`: as a person types it. */
export function approvalLines(approval: PendingApproval, command: (words: string) => string): string[] {
  const { approvalId, conversation, agent, tool, mayHaveRun } = approval;
  const json =
    typeof approval.arguments === 'string' ? approval.arguments : JSON.stringify(approval.arguments);
  const shown = escapeHidden(json);
  const whole = approval.argumentsLength;
  const given = whole === undefined ? shown : `${shown}… (${whole} characters; the log has them all)`;
  const answers = mayHaveRun
    ? `it may already have run: ${command(`resolve ${approvalId} --rerun | --failed | --result JSON`)}`
    : `${command(`approve ${approvalId}`)}   or   ${command(`deny ${approvalId} --reason "…"`)}`;
  return [
    printable(`${approvalId}  ${conversation}  ${agent} wants to call ${escapeHidden(tool)} ${given}`),
    `  ${answers}`,
  ];
}
