import {
  type CallersCall,
  type Entry,
  type MessageEntry,
  OpenCalls,
  placeOfCallId,
  wireCallId,
} from '../conversation/index.ts';
import { digest } from './conversation-id.ts';

/**
 * The ids of calls that a caller answers, in the standard protocols: where the call is, and a digest that tells it from the one at
 * the same place of another conversation. They follow from the log, so a restart changes none.
 */

const DIGITS = 8;

export function callerCallId(entry: Pick<MessageEntry, 'id' | 'index'>, position: number): string {
  return `${wireCallId({ index: entry.index, position })}_${digest(entry.id).slice(0, DIGITS)}`;
}

/** The call with this id in a log or its end; null: there is none. */
export function callWithId(
  id: string,
  entries: readonly Entry[],
): { readonly asked: MessageEntry; readonly position: number } | null {
  const place = placeOfCallId(id.slice(0, -DIGITS - 1));
  const asked = entries.find(({ index }) => index === place?.index);
  if (!place || asked?.type !== 'message' || !asked.callerCalls?.includes(place.position)) return null;
  return callerCallId(asked, place.position) === id ? { asked, position: place.position } : null;
}

/** The open calls that this author answers, in a log or its end. */
export function openCallsOf(author: string, entries: readonly Entry[]): readonly CallersCall[] {
  const calls = new OpenCalls();
  const brought = new Map<string, string>();
  for (const entry of entries) {
    calls.observe(entry);
    if (entry.type !== 'turn-started') continue;
    const by = entry.trigger.map((index) => entries.find((one) => one.index === index)).at(-1);
    if (by && !entry.resumed) brought.set(entry.turnId, by.author.id);
  }
  return calls.ofCallers((turnId) => brought.get(turnId) === author);
}

/** The result of a call after which its caller went on with another message. */
export const NOT_ANSWERED = "the person's program did not run this: the person went on with another message";
