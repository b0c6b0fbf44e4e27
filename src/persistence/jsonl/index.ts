/**
 * The store in a directory of one machine: `--store file`.
 *
 *   file-store        the store; opens and deletes conversations
 *   log/              one log file: line (format), recovery (reading), file-log (one open log and its group
 *                     commit), log-file (file operations), durable (syncs)
 *   directory/        the data directory: lock and take-directory (ownership), paths (names), format and
 *                     identity (versions), marks (conversations to read at start), inspect (reading without the lock),
 *                     migration, migration-mark and backup-mark
 *   documents         small documents: saved lazily and replaced as a whole
 *   projections       the shape of those documents; tombstones and decision-note own one each
 *   definition-files  texts of definitions, named by their hashes
 *   tool-files        records and outputs of tool calls; removal of a conversation
 *   what-if-files     results of what-ifs, also beside another store
 *
 * Only the holder of the lock writes. Only `log/` knows the format of a log, and only `directory/paths` spells file names.
 */
export { checkFormat } from './directory/format.ts';
export { inspectFiles, keepAside } from './directory/inspect.ts';
export { lockFile } from './directory/lock.ts';
export {
  openFileArchive,
  openFileSource,
  openFileTarget,
  publishBackup,
} from './directory/migration.ts';
export { refuseUnfinishedMigration } from './directory/migration-mark.ts';
export { storePaths } from './directory/paths.ts';
export { holdDirectory } from './directory/take-directory.ts';
export { openLazyDocument } from './documents.ts';
export { openFileStore } from './file-store.ts';
export { orNullIfMissing, readOwnText, refuseFile } from './log/durable.ts';
export { type LogFile, type LogFiles, nodeLogFiles, type StoreEvent } from './log/log-file.ts';
export { readLogFile } from './log/recovery.ts';
export { openWhatIfFiles } from './what-if-files.ts';
