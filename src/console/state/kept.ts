import { computed, signal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext, useState } from 'preact/hooks';
import { wireCallId } from '../../conversation/log/call-id.ts';
import { escapeHidden } from '../../kernel/hidden.ts';
import { drafted, keepDraft, keepOfTab, readDraft, readOfTab } from '../api/session.ts';
import { pretty } from '../model/format.ts';
import type { Call } from '../model/thread/calls.ts';
import type { AnswerOutcome } from './approvals.ts';
import { opened } from './conversation.ts';
import { addToMessage } from './keys.ts';
import { notice } from './session.ts';

/**
 * What a person left in a conversation, until the tab is closed: unsent texts, unfolded parts and the place in the thread.
 *
 * KEPT-1 A text for a call that another person answered, or whose turn ended, is moved to the message field of its conversation. A
 *    text that is being sent is kept until the daemon has confirmed it.
 */

/** The conversation of the parts inside; null: the open one. */
export const InConversation = createContext<string | null>(null);

export function useConversation(): string {
  return useContext(InConversation) ?? opened.value?.id ?? '';
}

/** Those with an unsent message, answer or reason in this tab. */
export const unsent = computed<ReadonlySet<string>>(
  () => new Set([...drafted.value].map((place) => place.split('/', 1).join())),
);

/** A text field whose text is kept; an empty text is forgotten. */
export function useKeptText(field: string): readonly [string, (text: string) => void] {
  const place = `${useConversation()}/${field}`;
  const [text, setText] = useState(() => readDraft(place));
  return [
    text,
    (next) => {
      setText(next);
      keepDraft(place, next);
    },
  ];
}

/** The fields of a call: an answer to its question, a reason or other arguments for its approval. */
export const fieldsOf = {
  answer: (call: Call) => `${wireCallId(call.place)}/answer`,
  reason: (approvalId: string) => `${approvalId}/reason`,
  arguments: (approvalId: string) => `${approvalId}/arguments`,
};

/** What the field for other arguments begins with. */
export const offeredArguments = (call: Call): string => escapeHidden(pretty(call.arguments));

/** The calls that this tab is answering. */
const answering = signal<ReadonlySet<string>>(new Set());

const keyOf = (conversation: string, { place }: Call) => `${conversation}/${wireCallId(place)}`;

export function isBeingAnswered(conversation: string, call: Call): boolean {
  return answering.value.has(keyOf(conversation, call));
}

/** Answers a call, and forgets its texts when they are confirmed (KEPT-1). */
export async function answer(
  conversation: string,
  call: Call,
  send: () => Promise<AnswerOutcome>,
): Promise<AnswerOutcome> {
  const key = keyOf(conversation, call);
  answering.value = new Set([...answering.value, key]);
  const outcome = await send();
  if (outcome === 'answered') takeTexts(conversation, call);
  answering.value = new Set([...answering.value].filter((other) => other !== key));
  if (outcome === 'over') moveTexts(conversation, call);
  return outcome;
}

/** KEPT-1 */
export function moveTexts(conversation: string, call: Call): void {
  if (answering.peek().has(keyOf(conversation, call))) return;
  const { approval, result } = call;
  const texts = takeTexts(conversation, call);
  if (texts.length === 0) return;
  const isOpen = opened.value?.id === conversation && document.getElementById('composer') !== null;
  if (isOpen) addToMessage(texts.join('\n\n'));
  else
    keepDraft(conversation, [readDraft(conversation), ...texts].filter((text) => text !== '').join('\n\n'));
  const where = isOpen ? 'the message field' : 'the message field of its conversation';
  const by = approval?.by ?? result?.by ?? null;
  const why = by === null ? 'This no longer waits for an answer.' : `${escapeHidden(by)} answered first.`;
  notice.value = { text: `${why} Your text is in ${where}.`, hint: '' };
}

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

/** The entry at the top of the window, and how many pixels of it are above. */
export interface ReadingPlace {
  readonly index: number;
  readonly offset: number;
}

interface Left {
  readonly unfolded?: readonly string[];
  readonly place?: ReadingPlace;
}

const leftIn = (conversation: string): Left => (readOfTab(`parley.left.${conversation}`) ?? {}) as Left;

function changeLeft(conversation: string, change: Left): void {
  keepOfTab(`parley.left.${conversation}`, { ...leftIn(conversation), ...change });
}

/** `name`: unique in the conversation. */
export function isUnfolded(conversation: string, name: string): boolean {
  return leftIn(conversation).unfolded?.includes(name) ?? false;
}

export function keepUnfolded(conversation: string, name: string, isOpen: boolean): void {
  const others = leftIn(conversation).unfolded?.filter((one) => one !== name) ?? [];
  changeLeft(conversation, { unfolded: isOpen ? [...others, name] : others });
}

/** Undefined: at the end. */
export function readingPlace(conversation: string): ReadingPlace | undefined {
  return leftIn(conversation).place;
}

export function keepReadingPlace(conversation: string, place: ReadingPlace | undefined): void {
  if (place || leftIn(conversation).place) changeLeft(conversation, { place });
}
