import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Removed } from '../port.ts';
import { folderOf, type StorePaths } from './directory/paths.ts';
import { fileTimestamp, orNullIfMissing, syncDirectory } from './log/durable.ts';
import { readAudit } from './tool-files.ts';

/**
 * How the directory of a conversation goes: first it gets a name that no conversation can have, then its files are
 * removed. So a crash leaves it whole under its own name, or as something that the next start removes.
 */

export const DELETED_PREFIX = '.deleted-';

/** One that is not there is fine. */
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

/** Ends what a crash cut short. */
export async function sweepRemoved(paths: StorePaths): Promise<void> {
  for (const name of await readdir(paths.conversations)) {
    if (name.startsWith(DELETED_PREFIX))
      await rm(join(paths.conversations, name), { recursive: true, force: true });
  }
}
