import { answeredFirst } from '../../conversation/log/approval-answer.ts';
import { wireCallId } from '../../conversation/log/call-id.ts';
import { escapeHidden } from '../../kernel/hidden.ts';
import { type ApprovalAnswer, RequestError, requests } from '../api/requests.ts';
import type { Approval, Question } from '../model/thread/calls.ts';
import { attempt, report, sender } from './session.ts';

/** `over`: it did not wait any more. `refused`: it still waits, as far as it is known. The person reads why. */
export type AnswerOutcome = 'answered' | 'over' | 'refused';

/** Answers a call that waits. */
export async function answerApproval(
  conversation: string,
  { approvalId, index }: Approval,
  answer: ApprovalAnswer,
): Promise<AnswerOutcome> {
  let isOver = false;
  const isDone = await attempt(async () => {
    try {
      await requests.answer(approvalId, { ...answer, ...sender() });
    } catch (error) {
      if (!(error instanceof RequestError) || !OVER.includes(error.code)) throw error;
      isOver = true;
      throw new Error(await whyItIsOver(conversation, approvalId, index));
    }
  });
  return isDone ? 'answered' : isOver ? 'over' : 'refused';
}

const OVER = ['APPROVAL_ANSWERED', 'APPROVAL_EXPIRED'];

async function whyItIsOver(conversation: string, approvalId: string, index: number): Promise<string> {
  const page = await requests.entries(conversation, index + 1, 100).catch(() => null);
  for (const entry of page?.entries ?? []) {
    if (entry.type !== 'approval-answered' || entry.approvalId !== approvalId) continue;
    if (entry.answer === 'expired') return 'This call expired: it was not answered in time.';
    return answeredFirst(entry.answer, escapeHidden(entry.author.name));
  }
  return 'This call does not wait any more: it was answered, or its turn is over.';
}

/** Answers a question. The daemon posts a late answer as a message, and the person reads why. */
export async function answerQuestion(
  conversation: string,
  { call, agent }: Question,
  content: string,
): Promise<AnswerOutcome> {
  const post = {
    id: crypto.randomUUID(),
    content,
    to: [agent],
    replyTo: wireCallId(call.place),
    ...sender(),
  };
  let isLate = false;
  const isDone = await attempt(async () => {
    const { index } = await requests.post(conversation, post);
    const page = await requests.entries(conversation, index + 1, 1).catch(() => null);
    const [result] = page?.entries ?? [];
    isLate = page !== null && !(result?.type === 'message' && result.answers?.includes(index));
  });
  if (isLate) report(new Error(LATE));
  return isDone ? 'answered' : 'refused';
}

const LATE =
  'This question did not wait any more: it was answered, or its turn had ended. Your answer was posted as a message.';
