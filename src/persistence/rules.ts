import { type Entry, NAME_PATTERN } from '../conversation/index.ts';
import { messageOf, ParleyError } from '../kernel/index.ts';
import type { IngressPosition } from './port.ts';

/** What every store checks at its door, and the words it refuses with. */

/** Ids become file names and subjects: the pattern is checked again here, whoever checked it before. */
export function requireConversationId(conversation: string): void {
  if (NAME_PATTERN.test(conversation)) return;
  throw new ParleyError(
    'CONVERSATION_ID_INVALID',
    `${JSON.stringify(conversation)} is not a conversation id`,
    { hint: 'Use 1 to 128 letters, digits, hyphens and underscores.' },
  );
}

/**
 * The JSON of each entry of a batch, made once.
 * An index that does not fit, or what JSON cannot hold, is the caller's bug and is refused before anything is queued.
 */
export function serialiseBatch(
  conversation: string,
  expectedLength: number,
  entries: readonly Entry[],
): string[] {
  return entries.map((entry, position) => {
    if (entry.index !== expectedLength + position) {
      throw new ParleyError(
        'ENTRY_INDEX_WRONG',
        `Conversation ${conversation}: an entry has index ${entry.index} where ${expectedLength + position} belongs`,
        { hint: 'Number the entries of a batch from the length that the append expects.' },
      );
    }
    try {
      return JSON.stringify(entry);
    } catch (cause) {
      throw new ParleyError(
        'ENTRY_NOT_JSON',
        `Conversation ${conversation}: entry ${entry.index} cannot be written as JSON: ${messageOf(cause)}`,
        { hint: 'An entry holds plain JSON values only.', cause },
      );
    }
  });
}

/** The part of a log of `length` entries that `read(from, to)` asks for. */
export function readRange(
  from: number,
  to: number | undefined,
  length: number,
): { from: number; to: number } {
  const end = Math.min(to ?? length, length);
  const start = Math.min(Math.max(from, 0), end);
  return { from: start, to: end };
}

export function logClosed(conversation: string): ParleyError {
  return new ParleyError('LOG_CLOSED', `The log of conversation ${conversation} is closed`, {
    hint: 'Open the conversation again.',
  });
}

export function logAlreadyOpen(conversation: string): ParleyError {
  return new ParleyError('LOG_ALREADY_OPEN', `The log of conversation ${conversation} is open already`, {
    hint: 'A log has one writer: close it first.',
  });
}

export function storeClosed(): ParleyError {
  return new ParleyError('STORE_CLOSED', 'The store is closed', { hint: 'Open the store again.' });
}

/** A daemon's lock is exclusive: a shared one is another program's. */
export function directoryInUse(
  directory: string,
  { pid, sharedLock }: { readonly pid: number | null; readonly sharedLock?: string | null },
): ParleyError {
  if (sharedLock) {
    const who = pid === null ? '' : ` (process ${pid})`;
    return new ParleyError(
      'DATA_DIRECTORY_BLOCKED',
      `The data directory ${directory} is blocked by a shared lock of a program that is no daemon${who}`,
      {
        hint: `Find that program with \`sudo lsof ${sharedLock}\` and end it. Or, when no daemon uses this directory, remove that file: other users cannot open the new one.`,
      },
    );
  }
  return new ParleyError(
    'DATA_DIRECTORY_IN_USE',
    `The data directory ${directory} is in use by ${pid === null ? 'another process' : `process ${pid}`}`,
    { hint: 'Stop that daemon, or start this one with another --data directory.' },
  );
}

export function migrationUnfinished(store: string, from: string): ParleyError {
  return new ParleyError(
    'MIGRATION_UNFINISHED',
    `Conversations are being moved from ${from} into ${store}, and not all of them are there yet`,
    { hint: 'Run the same `parley migrate` again: it goes on where it was ended.' },
  );
}

/** Of two runs of `parley migrate` into one target the other one has it, or had it and ended. */
export function migrationTakenOver(store: string): ParleyError {
  return new ParleyError(
    'MIGRATION_RUNNING',
    `Another \`parley migrate\` moves conversations into ${store}`,
    {
      hint: 'This one wrote nothing since. Wait for the end of the other one.',
    },
  );
}

/** A tombstone never moves back within one life of the ingress stream, unless that lost its end (`isBeyond`). */
export function isCovered(position: IngressPosition, known: IngressPosition | null | undefined): boolean {
  return known?.stream === position.stream && position.sequence <= known.sequence;
}

/** It names posts that the stream does not have (any more). */
export function isBeyond(position: IngressPosition, end: IngressPosition): boolean {
  return position.stream === end.stream && position.sequence > end.sequence;
}

/** Row and id order: by UTF-16 code unit, the same on every machine. */
export function byId(left: { readonly id: string }, right: { readonly id: string }): number {
  return left.id < right.id ? -1 : left.id > right.id ? 1 : 0;
}

/** Entry ids that may name an output. */
const OUTPUT_ID = /^[A-Za-z0-9_-]{1,128}$/;

export function requireOutputId(entryId: string): void {
  if (OUTPUT_ID.test(entryId)) return;
  throw new ParleyError('OUTPUT_ID_INVALID', `an output cannot be named ${JSON.stringify(entryId)}`);
}
