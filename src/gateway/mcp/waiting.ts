import { visibleCall } from '../../kernel/index.ts';
import type { GatewayPort } from '../port.ts';
import { ask } from '../progress/ask.ts';

/** Calls of tools that wait for a person's word. */

export interface Waiting {
  readonly approvalId: string;
  readonly conversation: string;
  readonly agent: string;
  readonly tool: string;
  readonly arguments: unknown;
  readonly mayHaveRun: boolean;
}

export async function approvalsOf(
  door: GatewayPort,
  conversation: string | undefined,
): Promise<readonly Waiting[]> {
  const body = conversation === undefined ? {} : { conversation };
  return (await ask<{ approvals: readonly Waiting[] }>(door, 'approvals', body)).approvals;
}

export function approvalText({ approvalId, agent, tool, arguments: given, mayHaveRun }: Waiting): string {
  const state = mayHaveRun ? 'it may have run already' : 'it has not run';
  const call = visibleCall(tool, typeof given === 'string' ? given : JSON.stringify(given));
  return `(waits for the tool \`answer\`: ${approvalId}, ${agent} wants to call ${call}; ${state})`;
}
