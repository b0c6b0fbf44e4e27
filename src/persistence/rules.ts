import { type Entry, NAME_PATTERN } from '../conversation/index.ts';
import { messageOf, ParleyError } from '../kernel/index.ts';
import type { IngressPosition } from './port.ts';

/** Checks and errors that every store shares. */

/** Ids become file names and subjects, so each store checks them again. */
export function requireConversationId(conversation: string): void {
  if (NAME_PATTERN.test(conversation)) return;
  throw new ParleyError(
    'CONVERSATION_ID_INVALID',
    `${JSON.stringify(conversation)} is not a conversation id`,
    { hint: 'Use 1 to 128 letters, digits, hyphens and underscores.' },
  );
}

export const TEXT_HASH = /^[0-9a-f]{64}$/;

export function requireBlobHash(sha256: string): void {
  if (TEXT_HASH.test(sha256)) return;
  throw new ParleyError('BLOB_HASH_INVALID', `${JSON.stringify(sha256)} is not a SHA-256 in hex`, {
    hint: 'use the sha256 that an upload returned: 64 digits and letters a to f',
  });
}

/** Hashes become file names and keys. */
export function requireTextHash(hash: string): void {
  if (TEXT_HASH.test(hash)) return;
  throw new ParleyError('DEFINITION_HASH_INVALID', `${JSON.stringify(hash)} is not a SHA-256 in hex`, {
    hint: 'Use the hash that a turn-started entry names.',
  });
}

/**
 * The JSON of each entry of a batch. A wrong index, or a value that JSON cannot represent, is a bug of the caller and is
 * refused before anything is queued.
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
        `Conversation ${conversation}: an entry has index ${entry.index} instead of ${expectedLength + position}`,
        { hint: 'Number the entries of a batch from the length that the append expects.' },
      );
    }
    try {
      return JSON.stringify(entry);
    } catch (cause) {
      throw new ParleyError(
        'ENTRY_NOT_JSON',
        `Conversation ${conversation}: entry ${entry.index} cannot be written as JSON: ${messageOf(cause)}`,
        { hint: 'An entry may contain plain JSON values only.', cause },
      );
    }
  });
}

/** The range of `read(from, to)` within a log of `length` entries. */
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
  return new ParleyError('LOG_ALREADY_OPEN', `The log of conversation ${conversation} is already open`, {
    hint: 'Close it first: a log has one writer.',
  });
}

export function storeClosed(): ParleyError {
  return new ParleyError('STORE_CLOSED', 'The store is closed', { hint: 'Open the store again.' });
}

export function directoryInUse(directory: string, { pid }: { readonly pid: number | null }): ParleyError {
  return new ParleyError(
    'DATA_DIRECTORY_IN_USE',
    `The data directory ${directory} is in use by ${pid === null ? 'another process' : `process ${pid}`}`,
    { hint: 'Stop that daemon, or start this one with another --data directory.' },
  );
}

export function migrationUnfinished(store: string, from: string): ParleyError {
  return new ParleyError(
    'MIGRATION_UNFINISHED',
    `Conversations are being copied from ${from} into ${store}, and not all of them are there yet`,
    { hint: 'Run the same `parley migrate` or `parley backup` again.' },
  );
}

/** True if a tombstone at `known` already covers this position. */
export function isCovered(position: IngressPosition, known: IngressPosition | null | undefined): boolean {
  return known?.stream === position.stream && position.sequence <= known.sequence;
}

/** True if the position is after the end of the same stream. */
export function isBeyond(position: IngressPosition, end: IngressPosition): boolean {
  return position.stream === end.stream && position.sequence > end.sequence;
}

/** By UTF-16 code unit: the same order on every machine. */
export function byId(left: { readonly id: string }, right: { readonly id: string }): number {
  return left.id < right.id ? -1 : left.id > right.id ? 1 : 0;
}

/** Output ids become file names. */
const OUTPUT_ID = /^[A-Za-z0-9_-]{1,128}$/;

export function requireOutputId(entryId: string): void {
  if (OUTPUT_ID.test(entryId)) return;
  throw new ParleyError('OUTPUT_ID_INVALID', `an output cannot be named ${JSON.stringify(entryId)}`);
}
