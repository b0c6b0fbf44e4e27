import { constants, type Stats } from 'node:fs';
import { access, type FileHandle, lstat, mkdir, open, readlink, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { ParleyError } from '../../kernel/index.ts';
import { errnoOf, orNullIfMissing } from './errors.ts';
import { pathRefused, printable } from './names.ts';

/**
 * The ground that tools may tread: the project's folder and what is below it.
 *
 * P1 Links are followed to where they lead, and that must be on the ground.
 * P2 What was opened is checked, not what was named: the system says where a descriptor leads, and what follows goes
 *    through that descriptor. A folder that becomes a link in between gains nothing.
 * P3 Opening waits for nobody: what is neither file nor folder (a pipe, a socket, a device) is refused, not read.
 * P4 Closed folders stay closed though they lie on the ground: the daemon's own data may stand in the project.
 * P5 What is outside is refused alike, whether it exists or not.
 */
export interface Ground {
  /** Real path of the project. */
  readonly root: string;
  /** Real paths, P4. */
  readonly closed: readonly string[];
  /** Where the system shows what descriptors lead to; null where it does not (P2 then rests on names and inodes). */
  readonly descriptors: string | null;
}

/** A folder that was opened and checked. */
export interface Folder {
  readonly handle: FileHandle;
  /** Real path when it was opened. */
  readonly real: string;
  /** A path for system calls that leads to `name` in exactly this folder, wherever it is by now. */
  at(name: string): string;
}

const DESCRIPTORS = '/proc/self/fd';
const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

export async function survey(project: string, closed: readonly string[] = []): Promise<Ground> {
  const root = await realpath(project).catch((error: unknown) => {
    const message = "the project's folder is missing";
    throw new ParleyError('PROJECT_MISSING', message, { hint: 'tell the person', cause: error });
  });
  const real = await Promise.all(closed.map((folder) => orNullIfMissing(realpath(folder))));
  const descriptors = await access(DESCRIPTORS).then(
    () => DESCRIPTORS,
    () => null,
  );
  return { root, closed: real.filter((folder) => folder !== null), descriptors };
}

export function isInside(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/** P1, P4 */
export function isOpenTo(ground: Ground, real: string): boolean {
  return isInside(ground.root, real) && !ground.closed.some((folder) => isInside(folder, real));
}

/** The path as a model reads it. */
export function aliasOf(names: readonly string[]): string {
  return printable(['@project', ...names].join('/'));
}

/** Where names lead: the real path of what exists of them, and the names that do not exist yet. */
export interface Place {
  readonly real: string;
  readonly missing: readonly string[];
}

export async function locate(ground: Ground, names: readonly string[]): Promise<Place> {
  for (let existing = names.length; ; existing -= 1) {
    const real = await orNullIfMissing(realpath(join(ground.root, ...names.slice(0, existing))));
    if (real === null && existing > 0) continue;
    if (real === null || !isOpenTo(ground, real)) throw outside(names); // P1, P5
    const missing = names.slice(existing);
    if (await isLink(real, missing[0])) throw outside(names); // P5: where it leads does not exist, wherever that is
    return { real, missing };
  }
}

async function isLink(folder: string, name: string | undefined): Promise<boolean> {
  if (name === undefined) return false;
  return (await orNullIfMissing(lstat(join(folder, name))))?.isSymbolicLink() ?? false;
}

/** For reading. The caller closes it. */
export async function openFile(ground: Ground, names: readonly string[]): Promise<FileHandle> {
  const { real, missing } = await locate(ground, names);
  if (missing.length > 0) throw notFound(names);
  return openChecked(ground, real, names);
}

/** A file in a folder that was opened before; links are not followed. The caller closes it. */
export function openFileIn(
  ground: Ground,
  folder: Folder,
  name: string,
  names: readonly string[],
): Promise<FileHandle> {
  return openChecked(ground, folder.at(name), names);
}

async function openChecked(ground: Ground, path: string, names: readonly string[]): Promise<FileHandle> {
  const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK); // P3
  return orClose(handle, async () => {
    if (!isOpenTo(ground, await whereIs(ground, handle, path))) throw outside(names); // P2
    requireFile(await handle.stat(), aliasOf(names));
    return handle;
  });
}

/** P3. `shown`: the path as the model knows it. */
export function requireFile(found: Pick<Stats, 'isDirectory' | 'isFile'>, shown: string): void {
  if (found.isDirectory()) throw new ParleyError('NOT_A_FILE', `${shown} is a folder`);
  if (!found.isFile()) throw new ParleyError('NOT_A_FILE', `${shown} is not an ordinary file`);
}

/** The caller closes its handle. */
export async function openFolder(ground: Ground, names: readonly string[]): Promise<Folder> {
  const { real, missing } = await locate(ground, names);
  if (missing.length > 0) throw notFound(names);
  return openFolderAt(ground, real, names);
}

/** `path`: real, or from `Folder.at`. */
export async function openFolderAt(ground: Ground, path: string, names: readonly string[]): Promise<Folder> {
  const handle = await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  return orClose(handle, async () => {
    const real = await whereIs(ground, handle, path);
    if (!isOpenTo(ground, real)) throw outside(names); // P2
    const base = ground.descriptors === null ? real : `${ground.descriptors}/${handle.fd}`;
    return { handle, real, at: (name: string) => `${base}/${name}` };
  });
}

/** The folder of a file that is to be written, and the file's name in it. `make`: the file and its folders may be missing. */
export async function openParent(
  ground: Ground,
  names: readonly string[],
  options: { readonly make: boolean },
): Promise<{ readonly folder: Folder; readonly name: string }> {
  const { real, missing } = await locate(ground, names);
  const name = missing.at(-1);
  if (name !== undefined && !options.make) throw notFound(names);
  if (real === ground.root && name === undefined) requireFile(await stat(real), aliasOf(names));
  if (name === undefined) {
    return { folder: await openFolderAt(ground, dirname(real), names), name: basename(real) };
  }
  let folder = await openFolderAt(ground, real, names);
  for (const below of missing.slice(0, -1)) folder = await enterNew(ground, folder, below, names);
  return { folder, name };
}

async function enterNew(
  ground: Ground,
  parent: Folder,
  name: string,
  names: readonly string[],
): Promise<Folder> {
  try {
    await mkdir(parent.at(name)).catch((error: unknown) => {
      if (errnoOf(error) !== 'EEXIST') throw error;
    });
    await parent.handle.sync();
    return await openFolderAt(ground, parent.at(name), names);
  } finally {
    await parent.handle.close();
  }
}

/** P2: what the descriptor leads to. */
async function whereIs(ground: Ground, handle: FileHandle, path: string): Promise<string> {
  if (ground.descriptors !== null) return readlink(`${ground.descriptors}/${handle.fd}`);
  const real = await realpath(path);
  const [opened, named] = [await handle.stat({ bigint: true }), await lstat(real, { bigint: true })];
  if (opened.ino === named.ino && opened.dev === named.dev) return real;
  throw new ParleyError('PATH_REFUSED', 'the path leads somewhere else by now', { hint: 'try again' });
}

async function orClose<T>(handle: FileHandle, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function outside(names: readonly string[]): ParleyError {
  return pathRefused(aliasOf(names), 'that leads to where tools may not go');
}

function notFound(names: readonly string[]): ParleyError {
  return new ParleyError('NOT_FOUND', `${aliasOf(names)} does not exist`);
}
