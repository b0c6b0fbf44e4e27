import { type Entry, type MessageEntry, placeOfCallId, wireCallId } from '../conversation/index.ts';
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
