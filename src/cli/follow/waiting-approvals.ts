import type { EntryOf, ParleyClient } from '../../client/index.ts';
import type { Context } from '../context.ts';
import { approvalLines, requestedApproval } from '../render/entry.ts';

/** Prints the pending approvals of one conversation, each once, with the commands that answer it. */
export function createWaitingApprovals(
  { command }: Context,
  client: ParleyClient,
  conversation: string,
  note: (text: string) => void,
) {
  const noted = new Set<string>();
  const noteWaiting = (lines: readonly string[]) => note(['waiting for a person:', ...lines].join('\n'));
  return {
    /** Whether this approval was printed. */
    isShown: (approvalId: string): boolean => noted.has(approvalId),
    /** Prints the approval that this entry requests, unless it was answered meanwhile. */
    async requested(entry: EntryOf<'approval-requested'>): Promise<void> {
      if (noted.has(entry.approvalId)) return;
      noted.add(entry.approvalId);
      const { approvals, more = 0 } = await client.request('approvals', { conversation });
      const listed = approvals.find(({ approvalId }) => approvalId === entry.approvalId);
      if (!listed && more === 0) return;
      noteWaiting(approvalLines(listed ?? requestedApproval(entry, conversation), command));
    },
    /** Prints all other pending approvals. */
    async others(): Promise<void> {
      const { approvals } = await client.request('approvals', { conversation });
      const others = approvals.filter(({ approvalId }) => !noted.has(approvalId));
      for (const { approvalId } of others) noted.add(approvalId);
      if (others.length > 0) noteWaiting(others.flatMap((pending) => approvalLines(pending, command)));
    },
  };
}
