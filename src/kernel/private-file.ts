import { randomBytes } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';

/**
 * Files that only their owner can read, from their first byte on. None is opened through a link: a program that may make
 * names in the data directory would choose which file the daemon writes.
 */

/** To write without following a link. */
export const UNLINKED = constants.O_RDWR | constants.O_NOFOLLOW;
const MODE = 0o600;

/**
 * Opens a file whose content may be replaced (a lock, an output), and makes it if it is missing. Throws for links, hard ones
 * too. It never truncates.
 */
export function openPrivate(path: string): number {
  let fd: number | null = null;
  try {
    fd = openSync(path, UNLINKED | constants.O_CREAT | constants.O_NONBLOCK, MODE);
    const { nlink } = fstatSync(fd);
    if (nlink === 1) return fd;
  } catch (error) {
    if (!hasCode(error, 'ELOOP')) throw error;
  }
  if (fd !== null) closeSync(fd);
  throw new Error(`${path} is a link: remove it`);
}

/** Makes the file that replaces another one. A file of that name, which a crash left, is removed; a link is not followed. */
export async function openTemporary(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', MODE);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
    await rm(path);
    return await open(path, 'wx', MODE);
  }
}

/** Replaces a file as a whole. */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    const file = await open(temporary, 'wx', MODE);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {}); // the first failure is the one to report
    throw error;
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
