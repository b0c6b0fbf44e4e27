import { signal } from '@preact/signals';
import { wireCallId } from '../../conversation/log/call-id.ts';
import { answeredFirst } from '../../conversation/log/words.ts';
import { escapeHidden } from '../../kernel/hidden.ts';
import { type ApprovalAnswer, RequestError, requests } from '../api/requests.ts';
import { keepDraft, readDraft } from '../api/session.ts';
import { pretty } from '../model/format.ts';
import type { Approval, Call, Question } from '../model/thread/calls.ts';
import { opened } from './conversation.ts';
import { addToMessage } from './keys.ts';
import { attempt, mayPost, notice, report, sender } from './session.ts';

/**
 * Answers to calls that wait for a person.
 *
 * KEPT-1 A text for a call that another person answered, or whose turn ended, is moved to the message field of its conversation. A
 *    text that is being sent is kept until the daemon has confirmed it.
 */

/** `over`: it did not wait any more. `refused`: it still waits, as far as it is known. The person reads why. */
export type AnswerOutcome = 'answered' | 'over' | 'refused';

/** Answers a call that waits. */
export function answerApproval(
  conversation: string,
  call: Call,
  { approvalId, index }: Approval,
  answer: ApprovalAnswer,
): Promise<AnswerOutcome> {
  return answering(conversation, call, async () => {
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
  });
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
export function answerQuestion(
  conversation: string,
  asked: Question,
  content: string,
): Promise<AnswerOutcome> {
  return answering(conversation, asked.call, () => postAnswer(conversation, asked, content));
}

async function postAnswer(
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

/** The fields of a call: an answer to its question, a reason or other arguments for its approval. */
export const fieldsOf = {
  answer: (call: Call) => `${wireCallId(call.place)}/answer`,
  reason: (approvalId: string) => `${approvalId}/reason`,
  arguments: (approvalId: string) => `${approvalId}/arguments`,
};

/** What the field for other arguments begins with. */
export const offeredArguments = (call: Call): string => escapeHidden(pretty(call.arguments));

/** The calls that this tab is answering. */
const underWay = signal<ReadonlySet<string>>(new Set());

const keyOf = (conversation: string, { place }: Call) => `${conversation}/${wireCallId(place)}`;

export function isBeingAnswered(conversation: string, call: Call): boolean {
  return underWay.value.has(keyOf(conversation, call));
}

/** Forgets the texts of a call when its answer is confirmed (KEPT-1). */
async function answering(
  conversation: string,
  call: Call,
  send: () => Promise<AnswerOutcome>,
): Promise<AnswerOutcome> {
  const key = keyOf(conversation, call);
  underWay.value = new Set([...underWay.value, key]);
  const outcome = await send();
  if (outcome === 'answered') takeTexts(conversation, call);
  underWay.value = new Set([...underWay.value].filter((other) => other !== key));
  if (outcome === 'over') moveTexts(conversation, call);
  return outcome;
}

/** KEPT-1 */
export function moveTexts(conversation: string, call: Call): void {
  if (underWay.peek().has(keyOf(conversation, call))) return;
  const { answer, resultBy } = call;
  const texts = takeTexts(conversation, call);
  if (texts.length === 0) return;
  const by = answer?.author.name ?? resultBy;
  const did = DONE[answer?.answer ?? ''] ?? 'answered';
  const why = by === null ? 'This no longer waits for an answer.' : `${escapeHidden(by)} ${did} first.`;
  if (!mayPost.value) {
    notice.value = { text: `${why} Your text was not sent:`, hint: texts.join('\n\n') };
    return;
  }
  const isOpen = opened.value?.id === conversation && document.getElementById('composer') !== null;
  if (isOpen) addToMessage(texts.join('\n\n'));
  else
    keepDraft(conversation, [readDraft(conversation), ...texts].filter((text) => text !== '').join('\n\n'));
  const where = isOpen ? 'the message field' : 'the message field of its conversation';
  notice.value = { text: `${why} Your text is in ${where}.`, hint: '' };
}

const DONE: Readonly<Record<string, string>> = { approve: 'approved this', deny: 'denied this' };

/** Removes the texts from the fields of a call. */
function takeTexts(conversation: string, call: Call): readonly string[] {
  const { approval, tool } = call;
  const take = (field: string) => {
    const place = `${conversation}/${field}`;
    const text = readDraft(place);
    keepDraft(place, '');
    return text;
  };
  const edited = approval ? take(fieldsOf.arguments(approval.approvalId)) : '';
  return [
    edited === '' || edited === offeredArguments(call) ? '' : `${escapeHidden(tool)} with ${edited} `,
    approval ? take(fieldsOf.reason(approval.approvalId)) : '',
    take(fieldsOf.answer(call)),
  ].filter((text) => text !== '');
}
