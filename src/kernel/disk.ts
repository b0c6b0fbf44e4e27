import { statfs } from 'node:fs/promises';
import { messageOf, ParleyError } from './errors.ts';

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
