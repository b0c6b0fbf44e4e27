import { mkdir, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf, ParleyError } from './errors.ts';

/**
 * Makes a directory, and what is missing above it, for its owner only. Node's own recursive `mkdir` never returns on file systems that
 * answer ENOENT for a directory that exists, such as /proc.
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

/** Bytes. With less a disk counts as full: neither logs nor streams grow reliably. */
export const FULL_BELOW = 2 * 1_024 * 1_024;
/** Bytes. With less `parley doctor` warns. */
export const LITTLE_ROOM = 100 * 1_000 * 1_000;

/** Bytes that are left on the disk of this directory. */
export async function freeBytes(directory: string): Promise<number> {
  const disk = await statfs(directory);
  return disk.bavail * disk.bsize;
}

/** The error for a write that found no room, under this code; any other error as it is. */
export function fullDiskError(error: unknown, code: string, disk: string): unknown {
  const cause = error instanceof Error && 'code' in error ? error.code : undefined;
  if (cause !== 'ENOSPC' && cause !== 'EDQUOT') return error;
  return new ParleyError(code, `${disk} is full: ${messageOf(error)}`, {
    hint: 'free space on the disk of the data directory, or choose another with --data; then try again',
    cause: error,
  });
}
