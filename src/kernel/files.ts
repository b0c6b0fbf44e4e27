import { closeSync, constants, fstatSync, openSync, type Stats } from 'node:fs';
import {
  chmod,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  realpath,
  rename,
  rm,
  stat,
  statfs,
} from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { errnoOf, messageOf, ParleyError } from './errors.ts';

/**
 * Directories, disk space, and files that only their owner can read, from their first byte on; and which files other users of this
 * machine may read or write, of which systems without such modes have none.
 */

export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Creates a directory and its missing parents, for the owner only; each name is durable. Node's recursive `mkdir` never returns on
 * file systems that report ENOENT for an existing directory, such as /proc.
 */
export async function makeDirectory(directory: string): Promise<void> {
  const target = resolve(directory);
  const parent = dirname(target);
  try {
    if (await isDirectory(target)) return;
    if (parent !== target) await makeDirectory(parent);
    await mkdir(target, { mode: 0o700 });
  } catch (error) {
    if (errnoOf(error) === 'EEXIST' && (await isDirectory(target))) return;
    throw error;
  }
  await syncDirectory(parent);
}

async function isDirectory(path: string): Promise<boolean> {
  return (await orNullIfMissing(stat(path)))?.isDirectory() ?? false;
}

/** Null instead of the error for a missing file. */
export async function orNullIfMissing<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null;
    throw error;
  }
}

/** Bytes. With less free space a disk counts as full: logs and streams may not grow. */
export const FULL_DISK_BYTES = 2 * 1_024 * 1_024;
/** Bytes. With less free space `parley doctor` warns. */
export const LOW_DISK_BYTES = 100 * 1_000 * 1_000;

export async function freeBytes(directory: string): Promise<number> {
  const disk = await statfs(directory);
  return disk.bavail * disk.bsize;
}

export async function bytesBelow(directory: string): Promise<number> {
  let bytes = 0;
  for (const name of await readdir(directory, { recursive: true }).catch(() => [])) {
    const facts = await stat(join(directory, name)).catch(() => null);
    if (facts?.isFile()) bytes += facts.size;
  }
  return bytes;
}

/** Converts an out-of-space error to a `ParleyError` with this code; returns any other error unchanged. */
export function fullDiskError(error: unknown, code: string, disk: string): unknown {
  const cause = errnoOf(error);
  if (cause !== 'ENOSPC' && cause !== 'EDQUOT') return error;
  return new ParleyError(code, `${disk} is full: ${messageOf(error)}`, {
    hint: 'free space on the disk of the data directory, or choose another with --data; then try again',
    cause: error,
  });
}

/**
 * To write without following a link: a program that can create names in the data directory would choose which file the
 * daemon writes.
 */
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
    if (errnoOf(error) !== 'ELOOP') throw error;
  }
  if (fd !== null) closeSync(fd);
  throw new Error(`${path} is a link: remove it`);
}

/** Replaces a file: readers see the old or the new content, never a part. `durable`: it and its name are synced. */
export async function replaceFile(
  path: string,
  content: string | AsyncIterable<Uint8Array>,
  { durable = true }: { readonly durable?: boolean } = {},
): Promise<void> {
  const temporary = `${path}.tmp`;
  const handle = await openTemporary(temporary);
  try {
    try {
      await handle.writeFile(content as string); // takes an iterable too, which its type does not say
      if (durable) await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  if (durable) await syncDirectory(dirname(path));
}

/** A file of that name, which a crash or a full disk left, is removed; a link is not followed. */
async function openTemporary(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', MODE);
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error;
    await rm(path);
    return await open(path, 'wx', MODE);
  }
}

/** Up to `length` bytes from `position`; fewer only at the end of the file. */
export async function readFrom(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(bytes, filled, length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}

/** Null: the file is missing. A link is not followed: it and other errors reject with `code` and `hint`. */
export async function readOwnText(
  path: string,
  { code, hint }: { readonly code: string; readonly hint: string },
): Promise<string | null> {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      return await file.readFile('utf8');
    } finally {
      await file.close();
    }
  } catch (cause) {
    if (errnoOf(cause) === 'ENOENT') return null;
    const why = errnoOf(cause) === 'ELOOP' ? 'it is a link' : messageOf(cause);
    throw new ParleyError(code, `${path} cannot be read: ${why}`, { hint, cause });
  }
}

/** Mode bits: any access by the group or others. */
const ANYTHING_BY_OTHERS = 0o077;
/** Writing, by the group or others. */
export const WRITING_BY_OTHERS = 0o022;
/** Writing, by every user. */
export const WRITING_BY_ALL = 0o002;

/** In a directory with this bit, only its owner and that of a file may remove or rename the file. */
const STICKY = 0o1000;

/** The names that Parley writes in a data directory, and their temporary and set-aside forms. */
const DATA_NAMES =
  /^\.?(LOCK|accepted-tools|backup|blobs|connection|conversations|definitions|deleted|deleting|http-token|incoming|ingress|mcp-logins|migration|nats|open|people|quarantine|search|traces|write-probe)(\.json)?(\.|-|$)/;

/** Finds what has one of these bits, at a path and below it. Links are not followed, what is gone is left out. */
export function findOpen(path: string, bits: number, isDeep = true): Promise<string[]> {
  return find(path, isDeep, ({ mode }) => (mode & bits) !== 0);
}

async function find(path: string, isDeep: boolean, fits: (facts: Stats) => boolean): Promise<string[]> {
  const facts = await factsOf(path);
  if (facts === null) return [];
  const found = fits(facts) ? [path] : [];
  if (!isDeep || !facts.isDirectory()) return found;
  for (const name of await readdir(path, { recursive: true }).catch(() => [])) {
    const inside = await factsOf(join(path, name));
    if (inside !== null && fits(inside)) found.push(join(path, name));
  }
  return found;
}

/** Finds what belongs to none of these users, at a path and below it. */
export function findForeign(path: string, users: ReadonlySet<number>, isDeep = true): Promise<string[]> {
  return find(path, isDeep, ({ uid }) => !users.has(uid));
}

/** The same of what Parley wrote in a data directory, and of the directory. */
export async function findForeignData(directory: string, users: ReadonlySet<number>): Promise<string[]> {
  const root = await realpath(directory).catch(() => directory);
  const found = await findForeign(root, users, false);
  for (const name of await readdir(root).catch(() => []))
    if (DATA_NAMES.test(name)) append(found, await findForeign(join(root, name), users));
  return found;
}

/** `push(...list)` fails on very long lists. */
function append(found: string[], more: readonly string[]): void {
  for (const one of more) found.push(one);
}

/** The directories above a path in which another user may put something else in its place. */
export async function findReplaceable(
  path: string,
  users: ReadonlySet<number>,
): Promise<{ readonly writable: string[]; readonly foreign: string[] }> {
  const above = new Set([...parentsOf(resolve(path)), ...parentsOf(await realpath(path).catch(() => '/'))]);
  const writable: string[] = [];
  const foreign: string[] = [];
  for (const parent of above) {
    const facts = await factsOf(parent);
    if (facts === null) continue;
    if ((facts.mode & WRITING_BY_ALL) !== 0 && (facts.mode & STICKY) === 0) writable.push(parent);
    else if (!users.has(facts.uid)) foreign.push(parent);
  }
  return { writable, foreign };
}

function parentsOf(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [] : [parent, ...parentsOf(parent)];
}

/** Null: a link, or nothing, or a system without such modes. */
async function factsOf(path: string): Promise<Stats | null> {
  const facts = await lstat(path).catch(() => null);
  return facts === null || facts.isSymbolicLink() || process.platform === 'win32' ? null : facts;
}

/**
 * `own`: open files of Parley; also the directory, if it contains nothing else. `isShared`: the directory is open and contains other
 * files too, so only a person may change its mode. `isWritable`: other users may replace files in it.
 */
export async function findOpenData(directory: string) {
  const root = await realpath(directory).catch(() => directory);
  const names = await readdir(root).catch(() => []);
  const own: string[] = [];
  for (const name of names.filter((one) => DATA_NAMES.test(one)))
    append(own, await findOpen(join(root, name), ANYTHING_BY_OTHERS));
  const mode = (await factsOf(root))?.mode ?? 0;
  const isOpen = (mode & ANYTHING_BY_OTHERS) !== 0;
  const isShared = isOpen && !(names.length > 0 && names.every((name) => DATA_NAMES.test(name)));
  if (isOpen && !isShared) own.push(root);
  return { own, isShared, isWritable: (mode & WRITING_BY_OTHERS) !== 0 };
}

/**
 * Closes the files of Parley, `last` at the end: while that is open, the work is unfinished. A token that others could read is emptied,
 * since its mode no longer says so: then the daemon makes another one.
 */
export async function closeData(directory: string, last: string): Promise<void> {
  const { own } = await findOpenData(directory);
  for (const path of [...own.filter((one) => one !== last), last]) {
    const facts = await factsOf(path);
    if (facts?.isFile() && basename(path) === 'http-token')
      await replaceFile(path, '').catch(() => undefined);
    else if (facts) await chmod(path, facts.mode & 0o700).catch(() => undefined); // another owner's: doctor reports it
  }
}
