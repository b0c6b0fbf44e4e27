import type { Stats } from 'node:fs';
import { chmod, lstat, readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';

/** What other users of this machine may do with files. Systems without such modes report none. */

/** Bits of a mode: anything for the group and others. */
const ANYTHING_BY_OTHERS = 0o077;
/** Writing, by the group or others. */
export const WRITING_BY_OTHERS = 0o022;
/** Writing, by every user. */
export const WRITING_BY_ALL = 0o002;

/** The names that Parley writes in a data directory, and their temporary and set-aside forms. */
const DATA_NAMES =
  /^\.?(LOCK|accepted-tools|attempts|connection|conversations|deciding|deleted|http-token|ingress|migration|nats|open|quarantine|write-probe)(\.json)?(\.|-|$)/;

/** Of a path and all below it, what has one of these bits. Links are not followed, what is gone is left out. */
export async function findOpen(path: string, bits: number, isDeep = true): Promise<string[]> {
  const facts = await factsOf(path);
  if (facts === null) return [];
  const found = (facts.mode & bits) === 0 ? [] : [path];
  if (!isDeep || !facts.isDirectory()) return found;
  for (const name of await readdir(path, { recursive: true }).catch(() => [])) {
    const inside = join(path, name);
    if ((((await factsOf(inside))?.mode ?? 0) & bits) !== 0) found.push(inside);
  }
  return found;
}

/** Null: a link, or nothing, or a system without such modes. */
async function factsOf(path: string): Promise<Stats | null> {
  const facts = await lstat(path).catch(() => null);
  return facts === null || facts.isSymbolicLink() || process.platform === 'win32' ? null : facts;
}

export interface OpenData {
  /** What Parley wrote; the directory too, if it holds nothing else. */
  readonly own: readonly string[];
  /** The directory is open, and a person uses it for other things too: its mode is the person's to change. */
  readonly isShared: boolean;
  /** Others may replace what is in it. */
  readonly isWritable: boolean;
}

export async function findOpenData(directory: string): Promise<OpenData> {
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

/** Closes what Parley wrote, `last` at the end: as long as that is open, not everything was closed. */
export async function closeData(directory: string, last: string): Promise<void> {
  const { own } = await findOpenData(directory);
  for (const path of [...own.filter((one) => one !== last), last]) {
    const facts = await factsOf(path);
    if (facts) await chmod(path, facts.mode & 0o700).catch(() => undefined); // another owner's: doctor reports it
  }
}
