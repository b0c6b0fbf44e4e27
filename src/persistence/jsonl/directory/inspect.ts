import { lstat, readdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { crc32 } from 'node:zlib';
import {
  errnoOf,
  makeDirectory,
  messageOf,
  orNullIfMissing,
  ParleyError,
  syncDirectory,
} from '../../../kernel/index.ts';
import { archiveOf, migrationTarget } from '../../archive.ts';
import { BlobReader } from '../../blobs.ts';
import type {
  ConversationRow,
  InspectedBlobs,
  Inspection,
  Leftover,
  MigrationSource,
  MigrationTarget,
  StoreArchive,
  StoreInspector,
} from '../../port.ts';
import { directoryInUse, requireConversationId } from '../../rules.ts';
import { auditTrailOf } from '../../store.ts';
import { createAuditFiles, FileDocuments, readAuditLines, refuseUnfinished } from '../file-documents.ts';
import { createBlobFiles, DELETED_PREFIX, type FileStoreOptions, openOwned } from '../file-store.ts';
import { writeNewFile } from '../log/durable.ts';
import { type LogFileContents, readLogFile } from '../log/recovery.ts';
import { checkFormat, folderOf, idOf, knownIdentity, type StorePaths, storePaths } from './layout.ts';
import { tryLockFile } from './lock.ts';

/**
 * Reads a data directory without the lock, and changes nothing.
 *
 * INSPECT-1 Projections and the audit log are read before the log: beside a running daemon they may lag it and never lead
 *           it, except for a tool request, which is recorded first. The mark is read after the log, since it is made before
 *           work is outstanding.
 * INSPECT-2 Unreadable files are reported for their conversation, and the others are still inspected. A conversation whose log
 *           is gone is inspected too, if its row has entries and it was not deleted.
 */

/** An incomplete tail that is unchanged after this time is not an append in progress. */
const TAIL_REST_MS = 200;

export function inspectFiles(directory: string, { isMigrating = false } = {}): StoreInspector {
  const paths = storePaths(directory);
  const documents = new FileDocuments(paths);
  return {
    async conversations() {
      if (!isMigrating) await refuseUnfinished(directory);
      const names = await readdir(paths.conversations).catch((cause: unknown) => {
        if (errnoOf(cause) !== 'ENOENT') throw cause;
        throw new ParleyError(
          'USAGE_NO_DATA',
          `${directory} is no data directory: it has no conversations/`,
          {
            hint: 'name the data directory of a daemon with --data DIR; conversations in JetStream have no files: move them with `parley migrate`',
            cause,
          },
        );
      });
      if (!isMigrating) await checkFormat(directory);
      const ids = names.flatMap((name) => idOf(name) ?? []);
      const found = await Promise.all(ids.map((id) => hasLog(paths.log(id))));
      const lost = isMigrating ? [] : await lostConversations(documents);
      return [...new Set([...ids.filter((_, at) => found[at]), ...lost])].sort();
    },
    leftovers: () => leftoversIn(paths, documents),
    definition: async (hash) => (await documents.get(`definition.${hash}`)) as string | null,
    blobs: inspectBlobs(paths, documents),
    async inspect(conversation): Promise<Inspection> {
      requireConversationId(conversation);
      const get = (kind: string) => attempt(() => documents.get(`${kind}.${conversation}`));
      const row = (await get('row')) as Inspection['row'];
      const state = await get('state');
      const audit = await attempt(() => readAuditLines(paths.audit(conversation)));
      const log = await readAtRest(paths.log(conversation));
      const marked = await attempt(async () => [
        await documents.get('marks'),
        ...(await documents.keys('open.')),
      ]);
      const outputs = await attempt(async () => documents.keys(`output.${conversation}.`));
      const trail = auditTrailOf('fault' in audit ? [] : audit.value);
      const end = 'fault' in audit ? 0 : audit.value.length;
      const folders = { 'audit.jsonl': audit, 'open/': marked, 'outputs/': outputs };
      return {
        row,
        state,
        audit: trail.records,
        badAuditLines: trail.unreadable.filter((line) => line < end), // the last one may be being written
        log,
        isMarked: 'fault' in marked || marked.value[0] === null || marked.value.includes(conversation),
        hasOutput: (id) => 'value' in outputs && outputs.value.includes(id),
        unreadable: Object.entries(folders).flatMap(([name, read]) =>
          'fault' in read ? [`${name} cannot be read: ${read.fault}`] : [],
        ),
      };
    },
  };
}

function inspectBlobs(paths: StorePaths, documents: FileDocuments): InspectedBlobs {
  const contents = createBlobFiles(paths);
  const reader = new BlobReader({ documents, blobs: contents });
  return {
    facts: (sha256) => reader.facts(sha256),
    read: (sha256) => reader.read(sha256),
    isClaimed: (...claim) => reader.isClaimed(...claim),
    hasContent: async (sha256) => (await contents.storedAt(sha256)) !== null,
    async stored() {
      const found = new Map<string, string>();
      for (const name of await contents.list()) found.set(name, (await contents.storedAt(name)) ?? '');
      for (const sha256 of await documents.keys('blob.')) {
        const record = await attempt(() => reader.record(sha256)); // a damaged one is found where a log names it
        if ('value' in record && record.value) found.set(sha256, record.value.storedAt);
      }
      return found;
    },
  };
}

/** There is a log, or something else with its name (INSPECT-2). */
async function hasLog(path: string): Promise<boolean> {
  try {
    const found = await orNullIfMissing(lstat(path));
    return found !== null && !(found.isFile() && found.size === 0); // empty: created and never written
  } catch (error) {
    return errnoOf(error) !== 'ENOTDIR'; // a file between the folders
  }
}

/** Conversations that have entries according to `index.json` and were not deleted (INSPECT-2). */
async function lostConversations(documents: FileDocuments): Promise<string[]> {
  const rows = await attempt(() => documents.entries('row.'));
  const deleted = await attempt(() => documents.entries('deleted.'));
  if ('fault' in rows || 'fault' in deleted) return []; // an inspection or the next start reports it
  const listed = [...(rows.value as ReadonlyMap<string, ConversationRow>).values()];
  return listed.flatMap(({ id, length }) => (length > 0 && !deleted.value.has(id) ? [id] : []));
}

/** `.deleted-<folder>-<time>`, as a deletion names it. */
const REMOVED = /^\.deleted-(.+)-\d{8}T\d{9}Z$/;

async function leftoversIn(paths: StorePaths, documents: FileDocuments): Promise<Leftover[]> {
  const names = (await readdir(paths.conversations)).filter((name) => name.startsWith(DELETED_PREFIX));
  const removed = names.map((name) => {
    const conversation = idOf(REMOVED.exec(name)?.[1] ?? '') ?? name;
    return { conversation, path: `conversations/${name}/`, isSwept: true };
  });
  for (const conversation of await documents.keys('deleting.'))
    removed.push({ conversation, path: `deleting/${folderOf(conversation)}.json`, isSwept: true });
  const deleted = await attempt(() => documents.keys('deleted.'));
  const rows = await attempt(() => documents.keys('row.'));
  if ('fault' in deleted) return removed; // the next start reports it
  const listed = new Set('fault' in rows ? [] : rows.value);
  const left = deleted.value.map((id) => leftoversOf(id, paths, listed));
  return [...removed, ...(await Promise.all(left)).flat()];
}

/** What is left of a deleted conversation, except an empty log, which a new post may begin. */
async function leftoversOf(
  conversation: string,
  paths: StorePaths,
  listed: ReadonlySet<string>,
): Promise<Leftover[]> {
  if (await hasLog(paths.log(conversation))) return []; // it began again
  const folder = paths.conversation(conversation);
  const files = (await readdir(folder).catch(() => [])).filter((name) => name !== basename(paths.log('')));
  const found = files.map((name) => relative(paths.root, join(folder, name)));
  if (listed.has(conversation)) found.push('its row in conversations/index.json');
  return found.map((path) => ({ conversation, path, isSwept: false }));
}

async function attempt<T>(work: () => Promise<T>): Promise<{ value: T } | { fault: string }> {
  try {
    return { value: await work() };
  } catch (error) {
    return { fault: messageOf(error) };
  }
}

async function readAtRest(path: string): Promise<Inspection['log']> {
  try {
    const first = await readLogFile(path);
    if (first.tornTail === null) return first;
    await new Promise((resolve) => setTimeout(resolve, TAIL_REST_MS));
    const second: LogFileContents = await readLogFile(path);
    const isAtRest =
      second.entries.length === first.entries.length && second.tornTail?.bytes === first.tornTail.bytes;
    return isAtRest ? second : { entries: second.entries, tornTail: null };
  } catch (error) {
    if (!(error instanceof ParleyError)) throw error;
    return error.code === 'LOG_NOT_FOUND' ? { entries: [], tornTail: null } : { damage: error };
  }
}

/** Durably keeps a copy of refused content, once per content; returns its path. */
export async function keepAside(directory: string, name: string, content: Buffer): Promise<string> {
  await makeDirectory(directory);
  const kept = `${name}-${crc32(content).toString(16).padStart(8, '0')}`;
  const existing = await orNullIfMissing(readFile(join(directory, kept)));
  return existing?.equals(content) ? join(directory, kept) : writeNewFile(directory, kept, content);
}

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

/** Reads every file each time (DIRECTORY-MIGRATION-2). A conversation whose deletion a crash interrupted counts as deleted. */
function fileArchive(directory: string): StoreArchive {
  const paths = storePaths(directory);
  const documents = new FileDocuments(paths);
  return archiveOf(`file:${directory}`, {
    documents,
    audit: createAuditFiles(paths),
    blobs: createBlobFiles(paths),
    async conversations() {
      const found = await inspectFiles(directory, { isMigrating: true }).conversations();
      const gone = new Set(await documents.keys('deleting.'));
      return found.filter((id) => !gone.has(id));
    },
    async log(conversation) {
      const path = paths.log(conversation);
      const found = await orNullIfMissing(readdir(dirname(path)));
      return found?.includes(basename(path)) ? readLogFile(path) : { entries: [], ends: [] };
    },
  });
}
