import type { Entry } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import { appendOf, decodeBody } from './append-message.ts';
import type { Broker } from './broker.ts';
import type { Placement } from './placement.ts';
import { lastMessage, readRange, type StoredMessage } from './reader.ts';

/** The log of one conversation, as the stream has it. */
export interface LogSource {
  readonly broker: Broker;
  readonly conversation: string;
  readonly stream: string;
  readonly subject: string;
  /** False, for tests only. */
  readonly isFenced: boolean;
  /** Told once of messages on the subject that are no appends. */
  readonly onForeign: (sequence: number) => void;
}

export type Progress =
  | { readonly kind: 'followed' }
  /** What was known is no longer there: somebody deleted the log, and perhaps began another. */
  | { readonly kind: 'replaced'; readonly length: number };

/**
 * Reads what the stream has beyond `placement`, adds it there, and hands over each append with its id. What was handed
 * over stays so when the reading fails: the next one goes on behind it.
 *
 * What is no part of the log is never taken for one, and what is missing is reported.
 */
export async function follow(
  source: LogSource,
  placement: Placement,
  onAppend: (id: string, entries: readonly Entry[]) => void,
): Promise<Progress> {
  const { broker, stream, subject } = source;
  const last = await lastMessage(broker, stream, subject);
  const known = placement.lastSequence;
  if (last === null || last.sequence < known)
    return known === 0 ? { kind: 'followed' } : { kind: 'replaced', length: lengthIn(last) };
  if (last.sequence === known) return { kind: 'followed' };
  let isReplaced = false;
  await readRange(broker, { stream, filter: subject, from: known + 1, to: last.sequence }, (message) => {
    const append = appendOf(message.headers);
    if (append === null) {
      source.onForeign(message.sequence);
      placement.lastSequence = message.sequence;
      return true;
    }
    const entries = decodeBody(message.body, placement.length, append.length);
    if (entries === null && placement.length > 0 && decodeBody(message.body, 0, append.length) !== null) {
      isReplaced = true;
      return false;
    }
    if (entries === null) throw damaged(source, message, placement.length);
    placement.add(message.sequence, append.length);
    onAppend(append.id, entries);
    return true;
  });
  return isReplaced ? { kind: 'replaced', length: lengthIn(last) } : { kind: 'followed' };
}

/** The entries `from` to `to` of a log that is known this far. */
export async function readEntries(
  source: LogSource,
  placement: Placement,
  from: number,
  to: number,
): Promise<Entry[]> {
  if (from >= to) return [];
  const found: Entry[] = [];
  const first = placement.appendOf(from);
  let next = first.start;
  await readRange(
    source.broker,
    {
      stream: source.stream,
      filter: source.subject,
      from: first.sequence,
      to: placement.appendOf(to - 1).sequence,
    },
    (message) => {
      const append = appendOf(message.headers);
      if (append === null) return true;
      const entries = decodeBody(message.body, next, append.length);
      if (entries === null) throw damaged(source, message, next);
      next = append.length;
      for (const entry of entries) if (entry.index >= from && entry.index < to) found.push(entry);
      return true;
    },
  );
  if (next < to) throw gone(source);
  return found;
}

/** It is the first append of a log; a message that is no append is no part of any. */
export function beginsLog({ headers, body }: StoredMessage): boolean {
  const append = appendOf(headers);
  return append === null || decodeBody(body, 0, append.length) !== null;
}

/** True if the subject holds an append; reads the last message only, unless that is none. */
export async function holdsAppend(source: LogSource): Promise<boolean> {
  const { broker, stream, subject } = source;
  const last = await lastMessage(broker, stream, subject);
  if (last === null) return false;
  if (appendOf(last.headers) !== null) return true;
  let found = false;
  await readRange(broker, { stream, filter: subject, from: 1, to: last.sequence }, (message) => {
    found = appendOf(message.headers) !== null;
    return !found;
  });
  return found;
}

function lengthIn(last: StoredMessage | null): number {
  return appendOf(last?.headers)?.length ?? 0;
}

function damaged({ stream, subject }: LogSource, { sequence }: StoredMessage, index: number): ParleyError {
  return new ParleyError(
    'LOG_CORRUPT',
    `stream ${stream}: message ${sequence} of ${subject} is not the append that belongs at entry ${index}`,
    {
      hint: 'Something else writes to this stream, or messages were removed from it. Back it up (`nats stream backup`) and look at that message before anything else.',
    },
  );
}

function gone({ stream, subject, conversation }: LogSource): ParleyError {
  return new ParleyError(
    'LOG_UNAVAILABLE',
    `Conversation ${conversation}: stream ${stream} no longer has all that it had of ${subject}`,
    {
      hint: 'Was the conversation deleted by somebody else? Open it again: what the stream holds is read afresh.',
    },
  );
}
