import { constants, existsSync, lstatSync, realpathSync, type Stats, statSync } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readlink, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import type { ResolvedPath } from '../../../agents/tool-port.ts';
import { errnoOf, ParleyError } from '../../../kernel/index.ts';
import { pathRefused, printable } from './names.ts';
import { isInside, isInsideFolded, type Protection, protectedBy, secretIn } from './protected.ts';

/**
 * The sandbox of the file tools: the project's folder and everything below it.
 *
 * SANDBOX-1 Symbolic links are followed; their target must be in the sandbox.
 * SANDBOX-2 The opened descriptor is checked, not the path: the system reports what a descriptor leads to, and later
 *    accesses go through it. So a folder that is replaced by a link in between gains nothing.
 * SANDBOX-3 Opening never blocks: anything but a file or folder (a pipe, a socket, a device) is refused unread.
 * SANDBOX-4 Closed folders and files stay closed inside the sandbox, by each of their names: the daemon's data and the files
 *    that it reads secrets from may be in the project. A closed file that does not exist is not created.
 * SANDBOX-5 Paths outside are refused with the same error, whether they exist or not.
 * SANDBOX-6 An opened file is permitted by its real path before it is read or written.
 */
export interface Access {
  /** The folder behind `@project`. */
  readonly project: string;
  /** Folders and files that file tools may not open (SANDBOX-4). */
  readonly closed?: readonly string[];
  readonly protection?: Protection;
  /** SANDBOX-6; absent: every path is permitted. */
  readonly permits?: ((place: ResolvedPath) => boolean) | undefined;
}

export interface Sandbox extends Pick<Access, 'protection' | 'permits'> {
  /** Real path of the project. */
  readonly root: string;
  /** Real paths, SANDBOX-4. */
  readonly closed: readonly string[];
  /** `device:inode` of the closed files: a hard link is another name of the same file. */
  readonly closedFiles: ReadonlySet<string>;
  /** The folder of the process's descriptors; null if the system has none (SANDBOX-2 then compares inodes). */
  readonly descriptors: string | null;
}

/** A folder that was opened and checked. */
export interface Folder {
  readonly handle: FileHandle;
  /** Real path when it was opened. */
  readonly real: string;
  /** A path for system calls to `name` in exactly this folder, even if the folder was moved. */
  at(name: string): string;
}

const DESCRIPTORS = '/proc/self/fd';
const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/** Synchronous, as `locate`: the decision on a call uses both. */
export function openSandbox({ project, closed = [], protection, permits }: Access): Sandbox {
  const root = realOrNull(project);
  if (root === null) {
    const message = "the project's folder is missing";
    throw new ParleyError('PROJECT_MISSING', message, { hint: 'tell the person' });
  }
  const real = closed.flatMap((path) => {
    const folder = realOrNull(dirname(path)) ?? dirname(path);
    return [join(folder, basename(path)), realOrNull(path) ?? []].flat();
  });
  const closedFiles = new Set(closed.flatMap((path) => valueOrNull(() => fileIdOf(path)) ?? []));
  const descriptors = existsSync(DESCRIPTORS) ? DESCRIPTORS : null;
  return { root, closed: real, closedFiles, descriptors, ...(protection && { protection }), permits };
}

function fileIdOf(path: string): string | null {
  const found = statSync(path, { bigint: true });
  return found.isFile() ? `${found.dev}:${found.ino}` : null;
}

function realOrNull(path: string): string | null {
  return valueOrNull(() => realpathSync.native(path));
}

export function isOpenTo(sandbox: Sandbox, real: string): boolean {
  return isInside(sandbox.root, real) && !sandbox.closed.some((folder) => isInsideFolded(folder, real));
}

/** An absolute path as policy rules see it. Both the given and the real path may be protected. */
export function placeOf(
  sandbox: Sandbox,
  real: string,
  names: readonly string[],
  writes: boolean,
): ResolvedPath {
  const { root, protection = { names: [], folders: [] } } = sandbox;
  const path = `@project${root === sep ? real : real.slice(root.length)}`;
  const written = join(root, ...names);
  const found = [written, real].flatMap((one) =>
    writes ? protectedBy(root, one, protection) : secretIn(root, one),
  );
  return { path, protectedBy: [...new Set(found)], isLinked: real !== written };
}

/** SANDBOX-6. `isBelow`: found by a search. */
function permit(
  sandbox: Sandbox,
  real: string,
  names: readonly string[],
  how: { writes?: true; isBelow?: true } = {},
) {
  if (!sandbox.permits) return;
  // Linux appends REMOVED to the path of a file that was deleted after it was opened.
  const paths = real.endsWith(REMOVED) ? [real, real.slice(0, -REMOVED.length)] : [real];
  for (const path of paths) {
    const place = placeOf(sandbox, path, names, how.writes === true);
    if (sandbox.permits(how.isBelow ? { ...place, isBelow: true } : place)) continue;
    throw new ParleyError('FORBIDDEN', `the policy does not permit this call at ${printable(place.path)}`);
  }
}

const REMOVED = ' (deleted)';

/** The path as shown to models. */
export function aliasOf(names: readonly string[]): string {
  return printable(['@project', ...names].join('/'));
}

/** Resolves a path: the real path of the part that exists, and the components that do not exist. */
export function locate(sandbox: Sandbox, names: readonly string[]) {
  for (let existing = names.length; ; existing -= 1) {
    const real = realOrNull(join(sandbox.root, ...names.slice(0, existing)));
    if (real === null && existing > 0) continue;
    if (real === null || !isOpenTo(sandbox, real)) throw outside(names);
    const missing = names.slice(existing);
    if (!isOpenTo(sandbox, join(real, ...missing))) throw outside(names);
    if (isLink(real, missing[0])) throw outside(names); // SANDBOX-5: a dangling link
    return { real, missing };
  }
}

function isLink(folder: string, name: string | undefined): boolean {
  if (name === undefined) return false;
  return valueOrNull(() => lstatSync(join(folder, name)))?.isSymbolicLink() ?? false;
}

/** For reading. The caller closes it. */
export async function openFile(sandbox: Sandbox, names: readonly string[]): Promise<FileHandle> {
  const { real, missing } = locate(sandbox, names);
  if (missing.length > 0) throw notFound(names);
  return openChecked(sandbox, real, names, {});
}

/** A file that a search found in an opened folder; links are not followed. The caller closes it. */
export function openFileIn(
  sandbox: Sandbox,
  folder: Folder,
  name: string,
  names: readonly string[],
): Promise<FileHandle> {
  return openChecked(sandbox, folder.at(name), names, { isBelow: true });
}

async function openChecked(
  sandbox: Sandbox,
  path: string,
  names: readonly string[],
  how: { isBelow?: true },
): Promise<FileHandle> {
  const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  return orClose(handle, async () => {
    const real = await realPathOf(sandbox, handle, path);
    if (!isOpenTo(sandbox, real)) throw outside(names);
    permit(sandbox, real, names, how);
    const found = await handle.stat({ bigint: true });
    requireFile(found, aliasOf(names));
    if (sandbox.closedFiles.has(`${found.dev}:${found.ino}`)) throw outside(names);
    return handle;
  });
}

/** SANDBOX-3. `shown`: the path as shown to the model. */
export function requireFile(found: Pick<Stats, 'isDirectory' | 'isFile'>, shown: string): void {
  if (found.isDirectory()) throw new ParleyError('NOT_A_FILE', `${shown} is a folder`);
  if (!found.isFile()) throw new ParleyError('NOT_A_FILE', `${shown} is not an ordinary file`);
}

/** The caller closes its handle. `isBelow`: found by a search; then only its files are checked (SANDBOX-6). */
export async function openFolder(
  sandbox: Sandbox,
  names: readonly string[],
  { isBelow = false }: { readonly isBelow?: boolean } = {},
): Promise<Folder> {
  const { real, missing } = locate(sandbox, names);
  if (missing.length > 0) throw notFound(names);
  const folder = await openFolderAt(sandbox, real, names);
  return orClose(folder.handle, async () => {
    if (!isBelow) permit(sandbox, folder.real, names);
    return folder;
  });
}

/** `path`: real, or from `Folder.at`. */
export async function openFolderAt(
  sandbox: Sandbox,
  path: string,
  names: readonly string[],
): Promise<Folder> {
  const handle = await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  return orClose(handle, async () => {
    const real = await realPathOf(sandbox, handle, path);
    if (!isOpenTo(sandbox, real)) throw outside(names);
    const base = sandbox.descriptors === null ? real : `${sandbox.descriptors}/${handle.fd}`;
    return { handle, real, at: (name: string) => `${base}/${name}` };
  });
}

/** The folder and name of a file to write. `make`: the file and its folders may be missing. */
export async function openParent(
  sandbox: Sandbox,
  names: readonly string[],
  options: { readonly make: boolean },
): Promise<{ readonly folder: Folder; readonly name: string }> {
  const { real, missing } = locate(sandbox, names);
  const name = missing.at(-1);
  if (name !== undefined && !options.make) throw notFound(names);
  permit(sandbox, join(real, ...missing), names, { writes: true }); // before a folder is made
  if (real === sandbox.root && name === undefined) requireFile(await stat(real), aliasOf(names));
  const exists = name === undefined;
  let folder = await openFolderAt(sandbox, exists ? dirname(real) : real, names);
  for (const below of missing.slice(0, -1)) folder = await enterNew(sandbox, folder, below, names);
  const found = { folder, name: exists ? basename(real) : name };
  return orClose(folder.handle, async () => {
    permit(sandbox, join(folder.real, found.name), names, { writes: true });
    return found;
  });
}

async function enterNew(
  sandbox: Sandbox,
  parent: Folder,
  name: string,
  names: readonly string[],
): Promise<Folder> {
  try {
    await mkdir(parent.at(name)).catch((error: unknown) => {
      if (errnoOf(error) !== 'EEXIST') throw error;
    });
    await parent.handle.sync();
    return await openFolderAt(sandbox, parent.at(name), names);
  } finally {
    await parent.handle.close();
  }
}

/** SANDBOX-2: the real path of the descriptor. */
async function realPathOf(sandbox: Sandbox, handle: FileHandle, path: string): Promise<string> {
  if (sandbox.descriptors !== null) return readlink(`${sandbox.descriptors}/${handle.fd}`);
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
  return pathRefused(aliasOf(names), 'that path is outside the folders that tools may use');
}

function notFound(names: readonly string[]): ParleyError {
  return new ParleyError('NOT_FOUND', `${aliasOf(names)} does not exist`);
}

/** Null if the file does not exist. */
function valueOrNull<T>(work: () => T): T | null {
  try {
    return work();
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT' || errno === 'ENOTDIR') return null;
    throw error;
  }
}
