/**
 * The store in a directory of one machine: `--store file`.
 *
 *   file-store       the storage, with the content of blobs; deletes conversations
 *   log/             one log file: line (format), recovery (reading), file-log (one open log and its group
 *                    commit), durable (file operations)
 *   directory/       the data directory: lock (ownership), layout (names, version and id), inspect (reading
 *                    without the lock, also for a migration)
 *   file-documents   the documents, of which those that share a file are saved later; records of tool calls
 *
 * Only the holder of the lock writes. Only `log/` knows the format of a log, and only `directory/layout` spells file names.
 */

export {
  inspectFiles,
  keepAside,
  openFileArchive,
  openFileSource,
  openFileTarget,
  publishBackup,
} from './directory/inspect.ts';
export { checkFormat, storePaths } from './directory/layout.ts';
export { holdDirectory } from './directory/lock.ts';
export { openLazyDocument, refuseUnfinished } from './file-documents.ts';
export { openFileStore } from './file-store.ts';
export { refuseFile, type StoreEvent } from './log/durable.ts';
export { readLogFile } from './log/recovery.ts';
