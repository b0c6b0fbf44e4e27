import { readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf, ParleyError } from '../../../kernel/index.ts';
import { MigrationRun } from '../../migration-run.ts';
import type { MigrationSource, MigrationTarget, StoreArchive } from '../../offline-port.ts';
import { directoryInUse } from '../../rules.ts';
import { createDefinitionFiles, listDefinitionFiles } from '../definition-files.ts';
import { type FileStoreOptions, openFileStore } from '../file-store.ts';
import { orNullIfMissing, syncDirectory } from '../log/durable.ts';
import { readLogFile } from '../log/recovery.ts';
import { parseIngressPosition, parseTombstones } from '../projections.ts';
import { createToolFiles } from '../tool-files.ts';
import { backupMarkAt } from './backup-mark.ts';
import { checkFormat } from './format.ts';
import { knownIdentity } from './identity.ts';
import { inspectFiles } from './inspect.ts';
import { tryLockFile } from './lock.ts';
import {
  readMigration,
  refuseUnfinishedMigration,
  removeMigration,
  writeMigration,
} from './migration-mark.ts';
import { type StorePaths, storePaths } from './paths.ts';

/**
 * A data directory as the source or target of a migration or a backup.
 *
 * DIRECTORY-MIGRATION-1 The source is locked against daemons and is not changed: no tail is cut, no document is set aside.
 * DIRECTORY-MIGRATION-2 An unreadable file ends the migration: nothing is omitted silently.
 */

export async function openFileSource(directory: string): Promise<MigrationSource> {
  await inspectFiles(directory).conversations(); // before the lock, which would create a file where there is no store
  const outcome = await tryLockFile(storePaths(directory).lock); // DIRECTORY-MIGRATION-1
  if (outcome.kind === 'held') throw directoryInUse(directory, outcome);
  try {
    await checkFormat(directory);
    await refuseUnfinishedMigration(directory);
    const paths = storePaths(directory);
    const archive = fileArchive(directory, paths);
    const id = await knownIdentity(directory);
    return { id, archive, close: async () => outcome.lock.release() };
  } catch (error) {
    outcome.lock.release();
    throw error;
  }
}

/** For a backup: without the lock, so a daemon may be using it. An append in progress is not part of what is read. */
export async function openFileArchive(directory: string): Promise<StoreArchive> {
  await inspectFiles(directory).conversations(); // refuses what is no data directory, or not whole
  return fileArchive(directory, storePaths(directory));
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
  const store = await openFileStore(directory, { ...options, isMigrating: true });
  const run = new MigrationRun(directory);
  const archive = fileArchive(directory, storePaths(directory));
  return {
    store,
    archive: { ...archive, migration: async () => run.noteSeen(await readMigration(directory)) },
    begin: (from) => writeMigration(directory, run, from),
    end: () => removeMigration(directory, run),
  };
}

function fileArchive(directory: string, paths: StorePaths): StoreArchive {
  const tools = createToolFiles(paths);
  const logOf = async (conversation: string) => {
    const found = await orNullIfMissing(readdir(paths.conversation(conversation)));
    return found?.includes('log.jsonl') ? readLogFile(paths.log(conversation)) : null;
  };
  return {
    name: `file:${directory}`,
    conversations: () => inspectFiles(directory, { isMigrating: true }).conversations(),
    entries: async (conversation) => (await logOf(conversation))?.entries ?? [],
    appendEnds: async (conversation) => (await logOf(conversation))?.ends ?? [],
    audit: async (conversation) => (await tools.read(conversation)).records,
    async outputs(conversation) {
      const names = (await orNullIfMissing(readdir(paths.outputs(conversation)))) ?? [];
      return names.flatMap((name) => (name.endsWith('.json') ? [name.slice(0, -'.json'.length)] : [])).sort();
    },
    output: (conversation, entryId) => tools.readOutput(conversation, entryId),
    definitions: () => listDefinitionFiles(paths.definitions),
    definition: createDefinitionFiles(paths.definitions).get,
    async deletions() {
      const found = await document(paths.deleted, parseTombstones);
      return found?.deleted.map(({ id, ...place }) => ({ conversation: id, ...place })) ?? [];
    },
    ingressPosition: () => document(paths.ingress, parseIngressPosition),
    backup: backupMarkAt(paths.backup).get,
    migration: async () => (await readMigration(directory))?.from ?? null,
  };
}

/** DIRECTORY-MIGRATION-2 */
async function document<T>(path: string, parse: (value: unknown) => T): Promise<T | null> {
  const text = await orNullIfMissing(readFile(path, 'utf8'));
  if (text === null) return null;
  try {
    return parse(JSON.parse(text));
  } catch (cause) {
    throw new ParleyError('MIGRATION_SOURCE_DAMAGED', `${path} cannot be read: ${messageOf(cause)}`, {
      hint: 'start a daemon on that directory once: it replaces the file and keeps the old one; then stop it and try again',
      cause,
    });
  }
}
