import { signal } from '@preact/signals';
import { wireCallId } from '../../conversation/log/call-id.ts';
import { answeredFirst } from '../../conversation/log/words.ts';
import { escapeHidden } from '../../kernel/hidden.ts';
import { keepDraft, readDraft } from '../api/browser.ts';
import { type ApprovalAnswer, isRetryable, RequestError, requests } from '../api/requests.ts';
import { pretty, shortLine, withoutAnsi } from '../model/format.ts';
import type { InboxItem } from '../model/list/inbox.ts';
import type { Approval, Call, Question } from '../model/thread/calls.ts';
import { opened, recipientsHere, version } from './conversation.ts';
import { rows } from './conversations.ts';
import { inbox } from './inbox.ts';
import { addToMessage } from './keys.ts';
import { isNew, markRead } from './list.ts';
import { linkTo } from './route.ts';
import { notice, report, sender } from './session.ts';

/**
 * Answers to calls that wait for a person.
 *
 * KEPT-1 A text for a call that another person answered, or whose turn ended, is not lost: an answer moves to the message field of
 *    its conversation, unless it would answer another question there; it then stays at its call until the person dismisses it, as
 *    what was written at an approval does. A text that is being sent is kept until the daemon has confirmed it.
 */

/** `over`: it did not wait any more. `refused`, or the reason to show beside it: it still waits, as far as it is known. */
export type AnswerOutcome = 'answered' | 'over' | 'refused' | RequestError;

export function answerApproval(
  conversation: string,
  call: Call,
  { approvalId }: Approval,
  answer: ApprovalAnswer,
): Promise<AnswerOutcome> {
  return answering(conversation, call, async () => {
    try {
      await requests.answer(approvalId, { ...answer, ...sender() });
      return 'answered';
    } catch (error) {
      if (!(error instanceof RequestError && OVER.includes(error.code))) throw error;
      report(new Error(await whyItIsOver(conversation, call)));
      return 'over';
    }
  });
}

const OVER = ['APPROVAL_ANSWERED', 'APPROVAL_EXPIRED'];

/** By whom, where that is known. */
export async function whyItIsOver(conversation: string, { approval, place }: Call): Promise<string> {
  const from = (approval ?? place).index + 1;
  const { entries } = await requests.entries(conversation, from, 100).catch(() => ({ entries: [] }));
  for (const entry of entries) {
    if (entry.type === 'message' && entry.call && wireCallId(entry.call) === wireCallId(place)) {
      const said = entries.find(({ index }) => index === entry.answers?.[0]);
      if (said)
        return escapeHidden(`${said.author.name} answered first: “${shortLine(entry.content ?? '')}”.`);
    }
    if (entry.type !== 'approval-answered' || entry.approvalId !== approval?.approvalId) continue;
    if (entry.answer === 'expired') return EXPIRED;
    return answeredFirst(entry.answer, escapeHidden(entry.author.name));
  }
  return NO_LONGER;
}

export const EXPIRED = 'This call expired: it was not answered in time.';
export const NO_LONGER = 'This no longer waits for an answer.';

/** Answers a question. The daemon posts a late answer as a message, and the person reads why. */
export function answerQuestion(
  conversation: string,
  { call, agent }: Question,
  content: string,
): Promise<AnswerOutcome> {
  const read = rows.value.filter(
    (row) => row.id === conversation && row.id !== opened.value?.id && !isNew(row),
  );
  return answering(conversation, call, async () => {
    const about = { to: [agent], replyTo: wireCallId(call.place), ...sender() };
    const { index } = await requests.post(conversation, { id: crypto.randomUUID(), content, ...about });
    for (const row of read) markRead([row], 1); // with the own message
    const page = await requests.entries(conversation, index + 1, 1).catch(() => null);
    const [result] = page?.entries ?? [];
    if (page && !(result?.type === 'message' && result.answers?.includes(index))) report(new Error(LATE));
    return 'answered';
  });
}

const LATE =
  'This question did not wait any more: it was answered, or its turn had ended. Your answer was posted as a message.';

/** The fields of a call: an answer to its question, a reason or other arguments for its approval. */
export const fieldsOf = {
  answer: (call: Call) => `${wireCallId(call.place)}/answer`,
  reason: ({ approvalId }: Approval) => `${approvalId}/reason`,
  /** A server's question is asked again when its call runs again after a crash. One with other fields must not get these values. */
  arguments: ({ place }: Call, { approvalId, asks }: Approval) =>
    asks ? `${wireCallId(place)}/${JSON.stringify(asks)}` : `${approvalId}/arguments`,
};

export const offeredArguments = (call: Call): string => escapeHidden(pretty(call.arguments));

const underWay = signal<ReadonlySet<string>>(new Set());

const keyOf = (conversation: string, { place }: Call) => `${conversation}/${wireCallId(place)}`;

export const isBeingAnswered = (conversation: string, call: Call): boolean =>
  underWay.value.has(keyOf(conversation, call));

/** When the answer is confirmed, forgets the texts of its call (KEPT-1). */
async function answering(
  conversation: string,
  call: Call,
  send: () => Promise<AnswerOutcome>,
): Promise<AnswerOutcome> {
  const key = keyOf(conversation, call);
  underWay.value = new Set([...underWay.value, key]);
  notice.value = null;
  const outcome = await send().catch((error): AnswerOutcome => {
    if (error instanceof RequestError && error.status !== 401 && !isRetryable(error)) {
      error.message = `Not answered: ${error.message}`;
      return error;
    }
    report(error);
    return 'refused';
  });
  if (outcome === 'answered')
    for (const field of fieldsOfCall(call)) keepDraft(`${conversation}/${field}`, '');
  underWay.value = new Set([...underWay.value].filter((other) => other !== key));
  return outcome;
}

const fieldsOfCall = (call: Call): readonly string[] =>
  call.approval
    ? [fieldsOf.reason(call.approval), fieldsOf.arguments(call, call.approval)]
    : [fieldsOf.answer(call)];

/** KEPT-1: an answer is a message, too. */
export function moveAnswer(conversation: string, { call, agent }: Question): void {
  if (underWay.peek().has(keyOf(conversation, call))) return;
  const place = `${conversation}/${fieldsOf.answer(call)}`;
  const text = readDraft(place);
  if (text === '' || document.getElementById('composer') === null) return;
  const stays = wouldAnswerAnother(agent);
  const where = stays ? 'at this question' : 'in the message field';
  const over = call.resultBy === null ? NO_LONGER : `${escapeHidden(call.resultBy)} answered first.`;
  if (!stays) {
    keepDraft(place, '');
    const isNext = recipientsHere('', opened.value?.thread ?? null).slugs.includes(agent);
    addToMessage(isNext ? text : `@${agent} ${text}`);
  }
  const about = stays ? place : conversation;
  notice.value = { text: `${over} Your text is ${where}.`, hint: '', about };
}

/** KEPT-1: whether a message to this agent would be the answer to a question that waits. */
export function wouldAnswerAnother(agent: string): boolean {
  void version.value;
  return opened.value?.thread.questions.some((other) => other.agent === agent) ?? false;
}

/** KEPT-1: says where the texts of a call are that left the inbox. */
export async function tellKept({ conversation, agent, title }: InboxItem, call: Call): Promise<void> {
  const places = fieldsOfCall(call).map((field) => `${conversation}/${field}`);
  const about = places.find((place) => readDraft(place) !== '');
  if (about === undefined) return;
  const over = await whyItIsOver(conversation, call);
  const isAsked = ({ kind, ...of }: InboxItem) =>
    kind === 'question' && of.conversation === conversation && of.agent === agent;
  const where = call.approval || inbox.peek().some(isAsked) ? 'at this call in' : 'in the message field of';
  const text = `${shortLine(withoutAnsi(title))}: ${over} Your text is ${where} its conversation.`;
  notice.value = { text, hint: '', about, href: linkTo.conversation(conversation) };
}
