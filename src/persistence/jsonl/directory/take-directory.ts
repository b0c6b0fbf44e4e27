import { fstatSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { closeData, makeDirectory, messageOf, ParleyError } from '../../../kernel/index.ts';
import { directoryInUse } from '../../rules.ts';
import { refuseFile, writeNewFile } from '../log/durable.ts';
import { type FileLock, tryLockFile } from './lock.ts';
import { type StorePaths, storePaths } from './paths.ts';

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
