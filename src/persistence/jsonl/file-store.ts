import { constants } from 'node:fs';
import { open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  fullDiskError,
  makeDirectory,
  orNullIfMissing,
  replaceFile,
  syncDirectory,
} from '../../kernel/index.ts';
import type { ConversationStore, Removed } from '../port.ts';
import type { BlobContents, ReachStorePoint, Storage } from '../storage.ts';
import { auditTrailOf, openStore } from '../store.ts';
import { folderOf, identityOf, idOf, type StorePaths, storePaths, writeFormat } from './directory/layout.ts';
import { takeDirectory } from './directory/lock.ts';
import { createAuditFiles, FileDocuments, readAuditLines, refuseUnfinished } from './file-documents.ts';
import { fileTimestamp, type LogFiles, nodeLogFiles, type StoreEvent, type StoreLog } from './log/durable.ts';
import { openFileLog } from './log/file-log.ts';

/**
 * The store of one machine: a directory of logs and documents, owned by one process.
 *
 * FILE-STORE-1 One owner: the kernel's lock on `LOCK` is held from before the first read until after the last write.
 * FILE-STORE-2 A conversation is deleted by renaming its directory to a name that no conversation can have, so it is there as
 *              a whole or not at all. The next start finishes a removal that a crash interrupted.
 */

export interface FileStoreOptions {
  /** Receives repairs and failed saves. */
  readonly log?: StoreLog;
  /** The file operations of the logs; a test makes them fail. */
  readonly files?: LogFiles;
  /** Steps after which tests end the process. */
  readonly reach?: ReachStorePoint | undefined;
  /** True for a migration; other callers are refused while one is unfinished. */
  readonly isMigrating?: boolean;
}

export async function openFileStore(
  directory: string,
  options: FileStoreOptions = {},
): Promise<ConversationStore> {
  return (await openOwned(directory, options)).store;
}

export async function openOwned(
  directory: string,
  { log = () => undefined, files = nodeLogFiles, isMigrating = false, reach }: FileStoreOptions,
): Promise<{ readonly store: ConversationStore; readonly documents: FileDocuments }> {
  const paths = storePaths(directory);
  const lock = await takeDirectory(paths);
  try {
    if (!isMigrating) await refuseUnfinished(directory);
    await writeFormat(directory);
    const id = await identityOf(directory);
    await sweepRemoved(paths);
    const documents = await FileDocuments.own(paths, log);
    const folders = new Set(await foldersIn(paths));
    for (const listed of await documents.keys('row.'))
      if (!folders.has(listed)) await documents.remove(`row.${listed}`, 'derived');
    const storage: Storage = {
      id,
      documents,
      isFeed: false,
      shared: null,
      audit: createAuditFiles(paths),
      blobs: createBlobFiles(paths),
      reach,
      ...logsIn(paths, files, reportingOnce(log)),
      async remove(conversation) {
        const removed = await removeFolder(paths, conversation);
        await documents.remove(`open.${conversation}`, 'derived');
        await documents.remove(`row.${conversation}`); // durable: a row contains a title
        return removed;
      },
      async close() {
        try {
          await documents.close();
        } finally {
          lock.release();
        }
      },
    };
    return { store: await openStore(storage), documents };
  } catch (error) {
    lock.release();
    throw error;
  }
}

function logsIn(
  paths: StorePaths,
  files: LogFiles,
  log: StoreLog,
): Pick<Storage, 'openLog' | 'hasLog' | 'conversations'> {
  const hasLog = async (conversation: string) => {
    const found = await orNullIfMissing(stat(paths.log(conversation)));
    return found !== null && found.size > 0;
  };
  return {
    hasLog,
    openLog: (conversation, onClosed) =>
      openFileLog({ conversation, path: paths.log(conversation), files, log, onClosed }),
    async conversations() {
      const ids = await foldersIn(paths);
      const held = await Promise.all(ids.map(hasLog));
      return ids.filter((_, position) => held[position]);
    },
  };
}

async function foldersIn(paths: StorePaths): Promise<string[]> {
  return (await readdir(paths.conversations)).flatMap((name) => idOf(name) ?? []);
}

/** Reports the same damage once; each caller that opens the conversation gets the error. */
function reportingOnce(log: StoreLog): StoreLog {
  const quarantined = new Map<string, string>();
  return (event: StoreEvent) => {
    if (event.type === 'log-quarantined') {
      const damage = `${event.line} ${event.reason}`;
      if (quarantined.get(event.conversation) === damage) return;
      quarantined.set(event.conversation, damage);
    }
    log(event);
  };
}

export const DELETED_PREFIX = '.deleted-';

/** FILE-STORE-2. A missing conversation is not an error. */
async function removeFolder(paths: StorePaths, conversation: string): Promise<Omit<Removed, 'files'>> {
  const texts = await readAuditLines(paths.audit(conversation)).catch(() => []);
  const outputs = (await readdir(paths.outputs(conversation)).catch(() => [])).length;
  const removed = { records: auditTrailOf(texts).records.length, outputs };
  const gone = join(paths.conversations, `${DELETED_PREFIX}${folderOf(conversation)}-${fileTimestamp()}`);
  const moved = await orNullIfMissing(rename(paths.conversation(conversation), gone).then(() => true));
  if (moved === null) return removed;
  await syncDirectory(paths.conversations);
  await rm(gone, { recursive: true, force: true });
  return removed;
}

async function sweepRemoved(paths: StorePaths): Promise<void> {
  for (const name of await readdir(paths.conversations)) {
    if (name.startsWith(DELETED_PREFIX))
      await rm(join(paths.conversations, name), { recursive: true, force: true });
  }
}

/** The content of blobs: `blobs/<2 digits>/<sha256>`, each a file that is there as a whole or not at all. */
export function createBlobFiles(paths: StorePaths): BlobContents {
  return {
    async put(sha256, content) {
      const path = paths.blob(sha256);
      try {
        await makeDirectory(dirname(path));
        await replaceFile(path, content);
      } catch (error) {
        await rm(`${path}.tmp`, { force: true });
        throw fullDiskError(error, 'STORE_FULL', `the disk of ${paths.root}`);
      }
      return sha256;
    },
    async read(name, from) {
      const path = paths.blob(name);
      return (await orNullIfMissing(stat(path))) && piecesOf(path, from);
    },
    async remove(name) {
      const path = paths.blob(name);
      await rm(path, { force: true });
      await orNullIfMissing(syncDirectory(dirname(path)));
    },
    async list() {
      const folders = (await orNullIfMissing(readdir(paths.blobs))) ?? [];
      const contents = folders.filter((folder) => /^[0-9a-f]{2}$/.test(folder));
      return (await Promise.all(contents.map((folder) => readdir(join(paths.blobs, folder))))).flat();
    },
    async storedAt(name) {
      return (await orNullIfMissing(stat(paths.blob(name))))?.mtime.toISOString() ?? null;
    },
  };
}

/** A picture of 1 MB is read in two steps and not in sixteen. */
const READ_BYTES = 512 * 1024;

async function* piecesOf(path: string, start = 0): AsyncGenerator<Uint8Array> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  yield* file.createReadStream({ start, highWaterMark: READ_BYTES });
}
