import type { Stats } from 'node:fs';
import { chmod, lstat, readdir, realpath } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

/** Finds files that other users of this machine may read or write. On systems without such modes it finds none. */

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
  /^\.?(LOCK|accepted-tools|backup|connection|conversations|definitions|deleted|http-token|ingress|migration|nats|open|quarantine|traces|write-probe)(\.json)?(\.|-|$)/;

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
    if (DATA_NAMES.test(name)) found.push(...(await findForeign(join(root, name), users)));
  return found;
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
    own.push(...(await findOpen(join(root, name), ANYTHING_BY_OTHERS)));
  const mode = (await factsOf(root))?.mode ?? 0;
  const isOpen = (mode & ANYTHING_BY_OTHERS) !== 0;
  const isShared = isOpen && !(names.length > 0 && names.every((name) => DATA_NAMES.test(name)));
  if (isOpen && !isShared) own.push(root);
  return { own, isShared, isWritable: (mode & WRITING_BY_OTHERS) !== 0 };
}

/** Closes the files of Parley, `last` at the end: while that is open, the work is unfinished. */
export async function closeData(directory: string, last: string): Promise<void> {
  const { own } = await findOpenData(directory);
  for (const path of [...own.filter((one) => one !== last), last]) {
    const facts = await factsOf(path);
    if (facts) await chmod(path, facts.mode & 0o700).catch(() => undefined); // another owner's: doctor reports it
  }
}
