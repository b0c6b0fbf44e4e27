import { mkdir, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf, ParleyError } from './errors.ts';

/**
 * Creates a directory and its missing parents, for the owner only. Node's recursive `mkdir` never returns on file systems
 * that report ENOENT for an existing directory, such as /proc.
 */
export async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EEXIST' && (await isDirectory(path))) return;
    if (code !== 'ENOENT' || (await isDirectory(dirname(path)))) throw error;
    await makeDirectory(dirname(path));
    await makeDirectory(path);
  }
}

async function isDirectory(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null);
  return found?.isDirectory() ?? false;
}

/** Bytes. With less free space a disk counts as full: logs and streams may not grow. */
export const FULL_DISK_BYTES = 2 * 1_024 * 1_024;
/** Bytes. With less free space `parley doctor` warns. */
export const LOW_DISK_BYTES = 100 * 1_000 * 1_000;

/** Free bytes on the disk of this directory. */
export async function freeBytes(directory: string): Promise<number> {
  const disk = await statfs(directory);
  return disk.bavail * disk.bsize;
}

/** Converts an out-of-space error to a `ParleyError` with this code; returns any other error unchanged. */
export function fullDiskError(error: unknown, code: string, disk: string): unknown {
  const cause = error instanceof Error && 'code' in error ? error.code : undefined;
  if (cause !== 'ENOSPC' && cause !== 'EDQUOT') return error;
  return new ParleyError(code, `${disk} is full: ${messageOf(error)}`, {
    hint: 'free space on the disk of the data directory, or choose another with --data; then try again',
    cause: error,
  });
}
