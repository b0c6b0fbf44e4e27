import type { Interrupt } from '@ag-ui/core';
import { type RootedCall, wireCallId } from '../../conversation/index.ts';
import { invalid, type Resume } from './input.ts';

/**
 * Questions and approvals as interrupts, and their answers.
 *
 * INTERRUPTS-1 The id encodes the call, the approval and the post that caused it: no state is kept between two runs, and the
 *    next run continues the same turn.
 */

export function interruptOf(call: RootedCall): Interrupt {
  const { place, agent, tool, approval, question, root } = call;
  const toolCallId = wireCallId(place);
  const behind = root === null ? '' : `@${root}`;
  if (approval === null) {
    return {
      id: `${toolCallId}${behind}`,
      reason: 'input_required',
      message: question,
      toolCallId,
      responseSchema: { type: 'string' },
      metadata: { agent },
    };
  }
  return {
    id: `${toolCallId}.${approval.id}${behind}`,
    reason: 'tool_call',
    message: question,
    toolCallId,
    responseSchema: approval.mayHaveRun ? OUTCOME_SCHEMA : APPROVAL_SCHEMA,
    metadata: { agent, tool, arguments: call.arguments, approvalId: approval.id },
  };
}

const reason = { type: 'string' };
const APPROVAL_SCHEMA = {
  type: 'object',
  properties: { approved: { type: 'boolean' }, reason },
  required: ['approved'],
};
const OUTCOME_SCHEMA = {
  type: 'object',
  properties: { answer: { enum: ['rerun', 'failed', 'result'] }, reason, result: {} },
  required: ['answer'],
};

export interface Addressed {
  readonly index: number;
  readonly position: number;
  /** Null: a question. */
  readonly approvalId: string | null;
  /** The post that caused it. */
  readonly root: number | null;
}

export function addressedBy({ interruptId }: Resume): Addressed {
  const [whole, index, position, approvalId, root] =
    /^c(\d{1,15})_(\d{1,6})(?:\.([^\s@]+))?(?:@(\d{1,15}))?$/.exec(interruptId) ?? [];
  if (!whole) throw invalid('resume', `${JSON.stringify(interruptId)} is no interrupt of this agent`);
  return {
    index: Number(index),
    position: Number(position),
    approvalId: approvalId ?? null,
    root: root === undefined ? null : Number(root),
  };
}

/** The text of the answer to a question. */
export function replyOf({ status, payload }: Resume): string {
  if (status === 'cancelled') return '[no answer]';
  if (typeof payload === 'string') return payload;
  const { answer, value } = asRecord(payload);
  const words = answer ?? value;
  return typeof words === 'string' ? words : JSON.stringify(payload ?? null);
}

/** The fields of the verb `answer`. A cancelled approval is denied. */
export function verdictOf({ status, payload }: Resume): Record<string, unknown> {
  if (status === 'cancelled') return { answer: 'deny', reason: 'cancelled without a decision' };
  if (typeof payload === 'boolean') return { answer: payload ? 'approve' : 'deny' };
  const { approved, answer, reason: why, result } = asRecord(payload);
  const said = typeof approved === 'boolean' ? (approved ? 'approve' : 'deny') : answer;
  if (typeof said !== 'string') throw invalid('resume', 'expected {"approved": true} or {"approved": false}');
  return {
    answer: said,
    ...(typeof why === 'string' && { reason: why }),
    ...(result !== undefined && { result }),
  };
}

function asRecord(value: unknown): Record<string, unknown> {
  return value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};
}
