import { constants } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import {
  makeDirectory,
  messageOf,
  orNullIfMissing,
  ParleyError,
  syncDirectory,
  UNLINKED,
} from '../../kernel/index.ts';
import type { AuditRecord } from '../port.ts';
import { type AuditLog, InOrder } from '../storage.ts';
import type { StorePaths } from './directory/paths.ts';

/** `audit.jsonl` of each conversation: one record is one line. One append at a time for each file, so that lines never mix. */
export function createAuditFiles(paths: StorePaths): AuditLog {
  const order = new InOrder();
  return {
    append: (conversation, records) =>
      order.run(conversation, () => appendLines(paths.audit(conversation), records)),
    read: (conversation) => readAuditLines(paths.audit(conversation)),
  };
}

/** The last line has no line break: it is empty, incomplete or being written. */
export async function readAuditLines(path: string): Promise<string[]> {
  return ((await orNullIfMissing(readFile(path, 'utf8'))) ?? '').split('\n');
}

async function appendLines(path: string, records: readonly AuditRecord[]): Promise<void> {
  try {
    const isNew = (await orNullIfMissing(open(path, 'r').then((handle) => handle.close()))) === null;
    if (isNew) await makeDirectory(dirname(path));
    const file = await open(path, UNLINKED | constants.O_CREAT | constants.O_APPEND, 0o600);
    try {
      // After an incomplete line, the next record needs a line break first.
      const { size } = await file.stat();
      const { buffer } = await file.read(Buffer.from('\n'), 0, size === 0 ? 0 : 1, Math.max(0, size - 1));
      const before = buffer.toString() === '\n' ? '' : '\n';
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
