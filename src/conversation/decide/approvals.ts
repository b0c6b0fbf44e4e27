import { canonicalArguments, hasVisible, type Refusal, refusal } from '../../kernel/index.ts';
import { type ServerAsks, SYSTEM_AUTHOR } from '../log/entry.ts';
import type { ConversationState, OpenCall, Turn } from '../state/state.ts';
import { toolError } from '../tools/conversation-tools.ts';
import { DENIED, PERMITS } from '../tools/tool-rules.ts';
import { CallStep } from './call-step.ts';
import type { CommandOf, Outcome } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { answerServer, expireQuestion } from './server-questions.ts';
import { forbiddenTo, judge } from './tools.ts';
import { advanceTurn } from './turns.ts';

/**
 * Approvals (L11): single-use, bound to one call and its arguments. The first valid answer in the log wins; an expiry
 * counts as an answer. The daemon measures the time. Who approves may change the arguments: the call runs with those, and its
 * result says so.
 */

/** A call that waits for an approval. */
export interface PendingApproval {
  readonly approvalId: string;
  readonly turn: Turn;
  readonly call: OpenCall;
  readonly mayHaveRun: boolean;
  /** ISO 8601. */
  readonly requestedAt: string;
  /** The call's arguments; the proposed answer, if its server asks. */
  readonly arguments: string;
  readonly asks?: ServerAsks;
}

export function pendingApprovals(state: ConversationState): PendingApproval[] {
  return Object.values(state.agents).flatMap(({ turn }) =>
    turn ? turn.openCalls.flatMap((call) => pendingOf(turn, call)) : [],
  );
}

function pendingOf(turn: Turn, call: OpenCall): PendingApproval[] {
  const { approval, question } = call;
  if (question) {
    const { id: approvalId, requestedAt, asks, arguments: given } = question;
    return [{ approvalId, turn, call, mayHaveRun: false, requestedAt, asks, arguments: given }];
  }
  if (approval?.status !== 'pending') return [];
  const { id: approvalId, mayHaveRun, requestedAt } = approval;
  return [{ approvalId, turn, call, mayHaveRun, requestedAt, arguments: call.arguments }];
}

/** The valid answers for a call that never ran, and for one that may have run. */
const ANSWERS = { fresh: ['approve', 'deny'], unknown: ['rerun', 'result', 'failed'] } as const;

export function answerApproval(builder: DecisionBuilder, command: CommandOf<'answer'>): Outcome {
  const pending = pendingApprovals(builder.state).find((item) => item.approvalId === command.approvalId);
  if (!pending) return notPending(builder, command.approvalId);
  if (pending.asks) {
    const forbidden = forbiddenTo(builder, pending.call.place, command);
    if (forbidden) return forbidden;
    return answerServer(new CallStep(builder, pending.turn, pending.call), command);
  }
  const allowed: readonly string[] = pending.mayHaveRun ? ANSWERS.unknown : ANSWERS.fresh;
  if (!allowed.includes(command.answer)) {
    const why = pending.mayHaveRun ? 'it may already have run' : 'it has not run';
    return refusal(
      'ANSWER_DOES_NOT_FIT',
      `${command.answer} does not fit: ${why}`,
      `answer ${allowed.join(', ')}`,
    );
  }
  const isCovering = command.answer === 'approve' && command.arguments === undefined;
  if (command.always && (!isCovering || pending.call.approval?.covers === undefined)) {
    const why = 'always fits an unchanged approval whose request says what it covers';
    return refusal('ANSWER_DOES_NOT_FIT', why, 'answer without it');
  }
  const forbidden = forbiddenTo(builder, pending.call.place, command);
  if (forbidden) return forbidden;
  const changed = command.arguments === undefined ? undefined : canonicalArguments(command.arguments);
  const wrong = changed === undefined ? null : faultOfChange(builder, pending, command.answer, changed);
  if (wrong) return wrong;
  builder.add({
    type: 'approval-answered',
    author: command.by,
    approvalId: command.approvalId,
    call: pending.call.place,
    answer: command.answer,
    reason: command.reason,
    arguments: changed === pending.call.arguments ? undefined : changed,
    ...(command.always && { always: true }),
  });
  const content = resultOf(command);
  if (content !== null) new CallStep(builder, pending.turn, pending.call).addResult({ content });
  advanceTurn(builder, pending.turn.agent);
  return { kind: 'done' };
}

/** Why the call cannot run with these arguments instead: they are judged as those of any call. Null: it can. */
function faultOfChange(
  builder: DecisionBuilder,
  { call, turn }: PendingApproval,
  answer: CommandOf<'answer'>['answer'],
  changed: string,
): Refusal | null {
  const isPermit = PERMITS.has(call.name);
  if (answer !== 'approve' || isPermit) {
    const what = isPermit ? `${call.name}, whose call another program makes` : answer;
    return refusal(
      'ANSWER_DOES_NOT_FIT',
      `arguments do not fit ${what}`,
      'deny it, with what to do instead as the reason',
    );
  }
  const judgement = judge(builder, turn.agent, { ...call, arguments: changed });
  if (judgement.kind !== 'refuse') return null;
  const hint = 'the call still waits: correct the arguments, or deny it';
  return refusal(judgement.code, `with these arguments: ${judgement.message}`, hint);
}

/** The approval expired: the call does not run. If it may have run before, its outcome is unknown, not failed (L12). */
export function expireApproval(builder: DecisionBuilder, approvalId: string): boolean {
  const pending = pendingApprovals(builder.state).find((item) => item.approvalId === approvalId);
  if (!pending) return false; // it was answered, or its turn is over
  const { call, turn, mayHaveRun } = pending;
  const step = new CallStep(builder, turn, call);
  if (pending.asks) return expireQuestion(step);
  builder.add({
    type: 'approval-answered',
    author: SYSTEM_AUTHOR,
    approvalId,
    call: call.place,
    answer: 'expired',
  });
  const content = mayHaveRun
    ? toolError('UNKNOWN', `${call.name} may already have run; no person said in time whether it took effect`)
    : toolError('APPROVAL_EXPIRED', `${call.name} was not run: no person allowed it in time`);
  step.addResult({ content });
  advanceTurn(builder, turn.agent);
  return true;
}

/** The result that an answer gives to the call; null: the call runs. */
function resultOf(command: CommandOf<'answer'>): string | null {
  switch (command.answer) {
    case 'approve':
    case 'rerun':
      return null;
    case 'deny':
      return toolError('DENIED', hasVisible(command.reason ?? '') ? `${DENIED}: ${command.reason}` : DENIED);
    case 'failed':
      return toolError(
        'FAILED',
        hasVisible(command.reason ?? '') ? `${command.reason}` : 'a person looked: it did not happen',
      );
    case 'result':
      return command.result ?? '';
  }
}

function notPending(builder: DecisionBuilder, approvalId: string): Refusal {
  const known = builder.find(
    (entry) => entry.type === 'approval-requested' && entry.approvalId === approvalId,
  );
  const expired = builder.find(
    (entry) =>
      entry.type === 'approval-answered' && entry.approvalId === approvalId && entry.answer === 'expired',
  );
  if (expired) {
    return refusal(
      'APPROVAL_EXPIRED',
      `${approvalId} expired: it was not answered in time`,
      'nothing was changed; ask the agent to call the tool again',
    );
  }
  return known
    ? refusal(
        'APPROVAL_ANSWERED',
        `${approvalId} was answered already, or its turn is over`,
        'nothing was changed',
      )
    : unknownApproval(approvalId);
}

/** The same whether there is such a conversation or not. */
export function unknownApproval(id: string): Refusal {
  const hint = 'it was answered already, or never requested; `parley approvals` lists the outstanding ones';
  return refusal('NOT_FOUND', `there is no approval ${id}`, hint);
}
