import {
  type CallersCall,
  type Entry,
  type MessageEntry,
  NAME_PATTERN,
  OpenCalls,
  placeOfCallId,
  wireCallId,
} from '../conversation/index.ts';
import { sha256Of } from '../kernel/index.ts';

/**
 * Ids between the clients of the standard protocols and the log. They follow from what a client sends and from the log, so a restart
 * changes none.
 */

const READABLE = 64;

/**
 * The conversation for a client's id (a thread, a context): the id itself if it is valid, else its readable characters
 * and 128 bits of its digest. The result is an ordinary id that any client can use; two ids never share one.
 */
export function conversationOf(id: string): string {
  if (NAME_PATTERN.test(id)) return id;
  const readable = id
    .slice(0, READABLE)
    .replaceAll(/[^A-Za-z0-9_-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  return `${readable || 'thread'}-${digest(id)}`;
}

/** 128 bits of a JSON value: in UTF-8 all lone surrogates would be equal. */
export function digest(value: unknown): string {
  return sha256Of(JSON.stringify(value)).slice(0, 32);
}

const DIGITS = 8;

/** The id of a call that a caller answers: its place, and a digest that tells it from the one at the same place of another conversation. */
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
