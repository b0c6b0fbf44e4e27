export type { StoreEvent, StoreLog } from './events.ts';
export { type FileStoreOptions, openFileStore } from './file-store.ts';
export { checkFormat } from './format.ts';
export { inspectFiles } from './inspect.ts';
export { type FileLock, type LockOutcome, lockFile, tryLockFile } from './lock.ts';
export { openFileSource, openFileTarget } from './migration.ts';
export { refuseUnfinishedMigration } from './migration-mark.ts';
export { keepAside } from './quarantine.ts';
export { type LogFileContents, readLogFile } from './recovery.ts';
