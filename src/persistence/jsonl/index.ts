export type { StoreEvent, StoreLog } from './events.ts';
export { type FileStoreOptions, openFileStore } from './file-store.ts';
export { checkFormat } from './format.ts';
export { inspectFiles } from './inspect.ts';
export { type FileLock, type LockOutcome, lockFile, tryLockFile } from './lock.ts';
export { keepAside } from './quarantine.ts';
export { type LogFileContents, readLogFile } from './recovery.ts';
