/**
 * The store in a directory of one machine: `--store file`.
 *
 *   file-store        the storage; deletes conversations
 *   log/              one log file: line (format), recovery (reading), file-log (one open log and its group
 *                     commit), log-file (file operations), durable (syncs)
 *   directory/        the data directory: lock and take-directory (ownership), paths (names), format and
 *                     identity (versions), inspect (reading without the lock), migration
 *   file-documents   the documents; collections: those that share a file; lazy-document: such a file, saved later
 *   audit-files      records of tool calls
 *   decision-note    the posts that are being decided on
 *
 * Only the holder of the lock writes. Only `log/` knows the format of a log, and only `directory/paths` spells file names.
 */
export { checkFormat } from './directory/format.ts';
export { inspectFiles, keepAside } from './directory/inspect.ts';
export {
  openFileArchive,
  openFileSource,
  openFileTarget,
  publishBackup,
} from './directory/migration.ts';
export { storePaths } from './directory/paths.ts';
export { holdDirectory } from './directory/take-directory.ts';
export { openWhatIfFiles, refuseUnfinished } from './file-documents.ts';
export { openFileStore } from './file-store.ts';
export { openLazyDocument } from './lazy-document.ts';
export { readOwnText, refuseFile } from './log/durable.ts';
export { type LogFile, type LogFiles, nodeLogFiles, type StoreEvent } from './log/log-file.ts';
export { readLogFile } from './log/recovery.ts';
