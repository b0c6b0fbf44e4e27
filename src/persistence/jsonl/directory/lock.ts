import { closeSync, fstatSync, ftruncateSync, readFileSync, writeSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tryLock } from 'fs-native-extensions';
import { closeData, makeDirectory, messageOf, openPrivate, ParleyError } from '../../../kernel/index.ts';
import { directoryInUse } from '../../rules.ts';
import { refuseFile, writeNewFile } from '../log/durable.ts';
import { type StorePaths, storePaths } from './layout.ts';

/**
 * A lock that the kernel holds on an open file.
 *
 * DIRECTORY-LOCK-1 It ends with the process, however that ends: there are no stale locks.
 * DIRECTORY-LOCK-2 It belongs to the descriptor: a second opening in the same process is refused too.
 * DIRECTORY-LOCK-3 The file stays after a release. Removing it would let two processes lock two files of the same name.
 */
export interface FileLock {
  readonly fd: number;
  /** Idempotent. */
  release(): void;
}

export type LockOutcome =
  | { readonly kind: 'locked'; readonly lock: FileLock }
  /** `pid`: as the file names it; null: unknown. */
  | { readonly kind: 'held'; readonly pid: number | null };

/** Tries once and does not wait. Throws what opening or locking the file throws. */
export async function tryLockFile(path: string): Promise<LockOutcome> {
  const fd = openPrivate(path);
  const lock = lockOn(fd);
  try {
    if (tryLock(fd)) {
      ftruncateSync(fd);
      writeSync(fd, `${process.pid}\n`);
      return { kind: 'locked', lock };
    }
    lock.release();
    return { kind: 'held', pid: readPid(path) };
  } catch (error) {
    lock.release();
    throw error;
  }
}

function lockOn(fd: number): FileLock {
  let held = true;
  return {
    fd,
    release() {
      if (!held) return;
      held = false;
      closeSync(fd);
    },
  };
}

function readPid(path: string): number | null {
  try {
    const pid = Number.parseInt(readFileSync(path, 'utf8'), 10);
    return Number.isSafeInteger(pid) && pid > 0 ? pid : null;
  } catch {
    return null; // unreadable: the holder is unknown
  }
}

/**
 * Creates and locks a data directory for this process. Also checks that it can be written, so that a failure is reported at
 * start and not at the first post.
 */
export function takeDirectory(paths: StorePaths): Promise<FileLock> {
  return take(paths, [paths.conversations]);
}

/** For a daemon whose logs are elsewhere: its address and its managed server use the directory too. */
export function holdDirectory(directory: string): Promise<FileLock> {
  return take(storePaths(directory), []);
}

const UNWRITABLE = 'DATA_DIRECTORY_UNWRITABLE';

async function take(paths: StorePaths, folders: readonly string[]): Promise<FileLock> {
  await refuseFile(paths.root, UNWRITABLE);
  let lock: FileLock | null = null;
  try {
    await makeDirectory(paths.root);
    const outcome = await tryLockFile(paths.lock);
    if (outcome.kind === 'held') throw directoryInUse(paths.root, outcome);
    lock = outcome.lock;
    if ((fstatSync(lock.fd).mode & 0o077) !== 0) await closeData(paths.root, paths.lock); // a copy or an umask opened them to others
    for (const folder of folders) await makeDirectory(folder);
    await rm(await writeNewFile(paths.root, '.write-probe', ''));
    return lock;
  } catch (error) {
    lock?.release();
    if (error instanceof ParleyError) throw error;
    throw new ParleyError(
      UNWRITABLE,
      `The data directory ${paths.root} cannot be written: ${messageOf(error)}`,
      {
        hint: 'Give this user write permission, free space on its disk, or choose another --data directory.',
        cause: error,
      },
    );
  }
}
