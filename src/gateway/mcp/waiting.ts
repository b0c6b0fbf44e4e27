import type { AnswerOf } from '../../bus/contract.ts';
import { visibleCall } from '../../kernel/index.ts';
import type { GatewayPort } from '../port.ts';
import { ask } from '../progress/ask.ts';

/** Tool calls that wait for a person's approval. */

type Approvals = AnswerOf<'approvals'>['approvals'];

export async function approvalsOf(daemon: GatewayPort, conversation: string | undefined): Promise<Approvals> {
  const body = conversation === undefined ? {} : { conversation };
  return (await ask(daemon, 'approvals', body)).approvals;
}

export function approvalText({
  approvalId,
  agent,
  tool,
  arguments: given,
  mayHaveRun,
}: Approvals[number]): string {
  const state = mayHaveRun ? 'it may have run already' : 'it has not run';
  const call = visibleCall(tool, typeof given === 'string' ? given : JSON.stringify(given));
  return `(waits for the tool \`answer\`: ${approvalId}, ${agent} wants to call ${call}; ${state})`;
}
