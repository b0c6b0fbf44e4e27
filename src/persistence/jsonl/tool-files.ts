import { constants } from 'node:fs';
import { open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf, ParleyError, UNLINKED } from '../../kernel/index.ts';
import type { AuditRecord, AuditTrail, Removed, ToolRecords } from '../port.ts';
import { requireOutputId } from '../rules.ts';
import { folderOf, type StorePaths } from './directory/paths.ts';
import {
  fileTimestamp,
  makeDirectory,
  orNullIfMissing,
  readOwnText,
  replaceFile,
  syncDirectory,
} from './log/durable.ts';

/**
 * `audit.jsonl` and `outputs/` of a conversation.
 *
 * TOOL-FILES-1 An append is on the disk when it resolves. One append at a time for each file, so that lines never mix.
 * TOOL-FILES-2 An output is there as a whole or not at all: temporary name, sync, rename, sync of the directory. A link in its
 *              place is not followed.
 */

export function createToolFiles(paths: StorePaths): ToolRecords {
  const busy = new Map<string, Promise<void>>();
  return {
    append(conversation, records) {
      const before = busy.get(conversation) ?? Promise.resolve();
      const appending = before
        .catch(() => undefined) // its own caller gets the error
        .then(() => appendLines(paths.audit(conversation), records)); // TOOL-FILES-1
      busy.set(conversation, appending);
      const forget = () => {
        if (busy.get(conversation) === appending) busy.delete(conversation);
      };
      appending.then(forget, forget);
      return appending;
    },
    read: (conversation) => readAudit(paths.audit(conversation)),
    async saveOutput(conversation, entryId, content) {
      await makeDirectory(paths.outputs(conversation));
      await replaceFile(fileOf(paths, conversation, entryId), content, { durable: true }); // TOOL-FILES-2
    },
    async readOutput(conversation, entryId) {
      const hint = 'restore the file from a backup, with the owner and the permissions of the data directory';
      return readOwnText(fileOf(paths, conversation, entryId), { code: 'OUTPUT_UNREADABLE', hint });
    },
  };
}

/** `end`: the number of the last line, which has no line break: it is empty, incomplete or being written. */
export async function readAudit(path: string): Promise<AuditTrail & { readonly end: number }> {
  const lines = ((await orNullIfMissing(readFile(path, 'utf8'))) ?? '').split('\n');
  const records: AuditRecord[] = [];
  const unreadable: number[] = [];
  for (const [at, line] of lines.entries()) {
    if (line === '') continue;
    const record = parseRecord(line);
    if (record !== null) records.push(record);
    else unreadable.push(at + 1);
  }
  return { records, unreadable, end: lines.length };
}

function fileOf(paths: StorePaths, conversation: string, entryId: string): string {
  requireOutputId(entryId);
  return paths.output(conversation, entryId);
}

async function appendLines(path: string, records: readonly AuditRecord[]): Promise<void> {
  try {
    const isNew = (await orNullIfMissing(open(path, 'r').then((handle) => handle.close()))) === null;
    if (isNew) await makeDirectory(dirname(path));
    const file = await open(path, UNLINKED | constants.O_CREAT | constants.O_APPEND, 0o600);
    try {
      const before = (await endsWhole(path)) ? '' : '\n';
      await file.writeFile(`${before}${records.map((record) => JSON.stringify(record)).join('\n')}\n`);
      await file.datasync();
    } finally {
      await file.close();
    }
    if (isNew) await syncDirectory(dirname(path));
  } catch (error) {
    throw new ParleyError('AUDIT_WRITE_FAILED', `cannot write ${path}: ${messageOf(error)}`, {
      hint: 'Free space on its disk.',
      cause: error,
    });
  }
}

/** After an incomplete line, the next record needs a line break first. */
async function endsWhole(path: string): Promise<boolean> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    if (size === 0) return true;
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
    return buffer[0] === 0x0a;
  } finally {
    await file.close();
  }
}

/** Null: not a record; incomplete after a crash, or of another program. */
function parseRecord(line: string): AuditRecord | null {
  try {
    const value = (JSON.parse(line) ?? {}) as { readonly type?: unknown; readonly call?: unknown };
    const { entry, position } = (value.call ?? {}) as {
      readonly entry?: unknown;
      readonly position?: unknown;
    };
    const isRecord =
      typeof value.type === 'string' && typeof entry === 'number' && typeof position === 'number';
    return isRecord ? (value as AuditRecord) : null;
  } catch {
    return null;
  }
}

/**
 * The directory of a deleted conversation is first renamed to a name that no conversation can have, then removed. After a
 * crash it is whole under its own name, or the next start removes it.
 */

export const DELETED_PREFIX = '.deleted-';

/** A missing conversation is not an error. */
export async function removeConversation(paths: StorePaths, conversation: string): Promise<Removed> {
  const records = await readAudit(paths.audit(conversation)).catch(() => ({ records: [] }));
  const outputs = (await readdir(paths.outputs(conversation)).catch(() => [])).length;
  const removed = { records: records.records.length, outputs };
  const gone = join(paths.conversations, `${DELETED_PREFIX}${folderOf(conversation)}-${fileTimestamp()}`);
  const moved = await orNullIfMissing(rename(paths.conversation(conversation), gone).then(() => true));
  if (moved === null) return removed;
  await syncDirectory(paths.conversations);
  await rm(gone, { recursive: true, force: true });
  return removed;
}

/** Finishes removals that a crash interrupted. */
export async function sweepRemoved(paths: StorePaths): Promise<void> {
  for (const name of await readdir(paths.conversations)) {
    if (name.startsWith(DELETED_PREFIX))
      await rm(join(paths.conversations, name), { recursive: true, force: true });
  }
}
