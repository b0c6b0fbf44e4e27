import { readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { NAME_PATTERN } from '../../../conversation/index.ts';
import type { ConversationRow } from '../../port.ts';
import { orNullIfMissing, syncDirectory } from '../log/durable.ts';
import type { StoreLog } from '../log/log-file.ts';
import { folderOf, idOf, type StorePaths, storePaths } from './paths.ts';

/**
 * Folders and marks in both layouts: the names of `paths.ts`, and those before format 2.0.
 *
 * FOLDER-2  Before format 2.0 a name was the id itself. The next owner renames such folders and marks, each whole or
 *           not at all, and continues after a crash. Readers without the lock find both.
 * FOLDER-3  A name is compared with a directory listing, never looked up by path: a file system that folds case would
 *           return the folder of another conversation.
 * FOLDER-4  Two folders of one conversation, or one folder of two conversations, are reported. Nothing is merged or removed.
 */

/** The conversation of a folder or mark in either layout; null: of no conversation. */
export function idOfAnyLayout(folder: string): string | null {
  return NAME_PATTERN.test(folder) ? folder : idOf(folder);
}

export interface ReaderPaths extends StorePaths {
  /** A second folder of this conversation in the old layout, which is not read (FOLDER-4). */
  secondFolder(id: string): string | null;
}

/** Where each conversation is now, in either layout. For readers without the lock; changes nothing. */
export async function readerPaths(root: string): Promise<ReaderPaths> {
  const { conversations } = storePaths(root);
  const names = new Set((await orNullIfMissing(readdir(conversations))) ?? []);
  const isSecond = (id: string) => isOlder(id) && names.has(id) && names.has(folderOf(id));
  return {
    ...storePaths(root, (id) => (names.has(id) && !names.has(folderOf(id)) ? id : folderOf(id))),
    secondFolder: (id) => (isSecond(id) ? join(conversations, id) : null),
  };
}

/** For the owner, before anything else is read (FOLDER-2). Returns the conversations that have a folder. */
export async function upgradeFolders(paths: StorePaths, log: StoreLog): Promise<ReadonlySet<string>> {
  await renameIn(paths.marks, () => true);
  await renameIn(paths.conversations, (conversation) => {
    log({ type: 'folder-taken', conversation, folder: join(paths.conversations, conversation) });
    return false;
  });
  const ids = (await readdir(paths.conversations)).flatMap((name) => idOf(name) ?? []);
  return new Set(ids);
}

/** Reports conversations with entries but without a folder, while an id that differs in case has one (FOLDER-4). */
export function reportShared(
  rows: readonly ConversationRow[],
  present: ReadonlySet<string>,
  paths: StorePaths,
  log: StoreLog,
): void {
  const spelling = new Map([...present].map((id) => [id.toLowerCase(), id]));
  for (const { id, length } of rows) {
    const other = spelling.get(id.toLowerCase());
    if (length === 0 || present.has(id) || other === undefined) continue;
    log({ type: 'folder-shared', conversation: id, folder: paths.conversation(other) });
  }
}

async function renameIn(folder: string, replaces: (id: string) => boolean): Promise<void> {
  const names = new Set((await orNullIfMissing(readdir(folder))) ?? []);
  const older = [...names].filter(isOlder);
  for (const id of older) {
    if (!names.has(folderOf(id)) || replaces(id)) await rename(join(folder, id), join(folder, folderOf(id)));
  }
  if (older.length > 0) await syncDirectory(folder);
}

/** A name of the old layout that is not valid in this one. */
function isOlder(name: string): boolean {
  return NAME_PATTERN.test(name) && folderOf(name) !== name;
}
