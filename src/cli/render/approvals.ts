import type { Entry, PendingApproval } from '../../client/index.ts';
import { visibleCall, visibleText } from '../../kernel/index.ts';

type Requested = Extract<Entry, { type: 'approval-requested' }>;
type Waiting = Pick<
  PendingApproval,
  'approvalId' | 'conversation' | 'agent' | 'tool' | 'arguments' | 'mayHaveRun'
>;

/** One call that waits: what is to be run, for whom, and how to answer. `command`: as a person types it. */
export function approvalLines(approval: Waiting, command: (words: string) => string): string[] {
  const { approvalId, conversation, agent, tool, mayHaveRun } = approval;
  const answers = mayHaveRun
    ? `it may already have run: ${command(`resolve ${approvalId} --rerun | --failed | --result JSON`)}`
    : `${command(`approve ${approvalId}`)}   or   ${command(`deny ${approvalId} --reason "…"`)}`;
  const what = visibleCall(tool, textOf(approval.arguments));
  return [
    `${[approvalId, conversation, agent].map(visibleText).join('  ')} wants to call ${what}`,
    `  ${answers}`,
  ];
}

/** As the log asks for it: whole, whatever a list has room for. */
export function requestedApproval(entry: Requested, conversation: string): Waiting {
  const { approvalId, agent = entry.author.id, tool = 'a tool', arguments: given = '{}', mayHaveRun } = entry;
  return { approvalId, conversation, agent, tool, arguments: given, mayHaveRun };
}

function textOf(given: unknown): string {
  return typeof given === 'string' ? given : JSON.stringify(given);
}
