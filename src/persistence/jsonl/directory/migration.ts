import { readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { orNullIfMissing, syncDirectory } from '../../../kernel/index.ts';
import { archiveOf, migrationTarget } from '../../archive.ts';
import type { MigrationSource, MigrationTarget, StoreArchive } from '../../port.ts';
import { directoryInUse } from '../../rules.ts';
import { createBlobFiles } from '../file-blobs.ts';
import { createAuditFiles, FileDocuments, refuseUnfinished } from '../file-documents.ts';
import { type FileStoreOptions, openOwned } from '../file-store.ts';
import { readLogFile } from '../log/recovery.ts';
import { checkFormat, knownIdentity } from './format.ts';
import { inspectFiles } from './inspect.ts';
import { tryLockFile } from './lock.ts';
import { storePaths } from './paths.ts';

/**
 * A data directory as the source or target of a migration or a backup.
 *
 * DIRECTORY-MIGRATION-1 The source is locked against daemons and is not changed: no tail is cut, no document is set aside.
 * DIRECTORY-MIGRATION-2 An unreadable file ends the migration: nothing is omitted silently.
 */

export async function openFileSource(directory: string): Promise<MigrationSource> {
  await inspectFiles(directory).conversations(); // before the lock, which would create a file where there is no store
  const paths = storePaths(directory);
  const outcome = await tryLockFile(paths.lock);
  if (outcome.kind === 'held') throw directoryInUse(directory, outcome);
  try {
    await checkFormat(directory);
    await refuseUnfinished(directory);
    const id = await knownIdentity(directory);
    return { id, archive: fileArchive(directory), close: async () => outcome.lock.release() };
  } catch (error) {
    outcome.lock.release();
    throw error;
  }
}

/** For a backup: without the lock, so a daemon may be using it. An append in progress is not part of what is read. */
export async function openFileArchive(directory: string): Promise<StoreArchive> {
  await inspectFiles(directory).conversations(); // refuses what is no data directory, or not whole
  return fileArchive(directory);
}

/** A backup is another store than its original, and no process holds it. Its folder is durable before it gets its name. */
export async function publishBackup(partial: string, directory: string): Promise<void> {
  const { identity, lock, conversations, root } = storePaths(partial);
  for (const path of [identity, lock]) await rm(path, { force: true });
  for (const folder of [conversations, root]) await syncDirectory(folder);
  await rename(partial, directory);
  await syncDirectory(dirname(directory));
}

export async function openFileTarget(
  directory: string,
  options: FileStoreOptions = {},
): Promise<MigrationTarget> {
  const { store, documents } = await openOwned(directory, { ...options, isMigrating: true });
  return migrationTarget(directory, store, fileArchive(directory), documents);
}

/** Reads every file each time (DIRECTORY-MIGRATION-2). */
function fileArchive(directory: string): StoreArchive {
  const paths = storePaths(directory);
  return archiveOf(`file:${directory}`, {
    documents: new FileDocuments(paths),
    audit: createAuditFiles(paths),
    blobs: createBlobFiles(paths),
    conversations: () => inspectFiles(directory, { isMigrating: true }).conversations(),
    async log(conversation) {
      const path = paths.log(conversation);
      const found = await orNullIfMissing(readdir(dirname(path)));
      return found?.includes(basename(path)) ? readLogFile(path) : { entries: [], ends: [] };
    },
  });
}
