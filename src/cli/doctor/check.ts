import { constants } from 'node:fs';
import { access, readdir, realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  FULL_DISK_BYTES,
  findForeign,
  findForeignData,
  findOpen,
  findOpenData,
  findReplaceable,
  freeBytes,
  isAtLeast,
  LOW_DISK_BYTES,
  WRITING_BY_ALL,
  WRITING_BY_OTHERS,
} from '../../kernel/index.ts';
import type { Context } from '../context.ts';
import { dataDirectoryOf } from '../find-daemon.ts';
import { quoted } from '../options/options.ts';
import { failureOf } from '../render/text.ts';

/** What a check is, and those of this machine: Node.js, the data directory, and files that other users may read or change. */

/** The result of one check. `fix`: the next step. */
export interface Check {
  readonly name: string;
  readonly status: 'ok' | 'warn' | 'fail';
  readonly message: string;
  readonly fix?: string;
}

export function named(name: string) {
  const result =
    (status: Check['status']) =>
    (message: string, fix?: string): Check => ({ name, status, message, ...(fix !== undefined && { fix }) });
  return { ok: result('ok'), warn: result('warn'), fail: result('fail') };
}

const NEEDED = [20, 19] as const;

export function nodeCheck(version: string): Check {
  const { ok, fail } = named('node');
  if (isAtLeast(version, NEEDED)) return ok(version);
  return fail(
    `${version} is too old: Parley needs ${NEEDED.join('.')} or newer`,
    'install a newer Node.js, for example from https://nodejs.org',
  );
}

/** Checks that the daemon can write to the data directory and other users can neither read nor replace it. Changes nothing. */
export async function dataCheck(context: Context, freeOn = freeBytes): Promise<Check> {
  const check = named('data directory');
  let directory: string;
  try {
    directory = dataDirectoryOf(context);
  } catch (error) {
    return check.fail(failureOf(error).message);
  }
  const existing = await nearestExisting(directory);
  const isFolder = (await stat(existing)).isDirectory();
  const isWritable = await access(existing, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!isFolder || !isWritable)
    return check.fail(
      `${existing} is not ${isFolder ? 'writable' : 'a directory'}`,
      'make it writable for this user, or give another directory with --data DIR',
    );
  const free = await freeOn(existing);
  if (free < LOW_DISK_BYTES)
    return check[free < FULL_DISK_BYTES ? 'fail' : 'warn'](
      `${directory}: ${Math.floor(free / 1_000_000)} MB are free on its disk`,
      'free space on that disk: without it no post is accepted and no conversation can be deleted',
    );
  const open = (await foreignData(directory)) ?? (await openData(directory));
  if (open) return check[open.status](open.message, `run: ${open.command}`);
  return check.ok(existing === directory ? directory : `${directory} (will be created)`);
}

async function nearestExisting(path: string): Promise<string> {
  const isThere = await stat(path).catch(() => null);
  return isThere || dirname(path) === path ? path : nearestExisting(dirname(path));
}

/** Files that other users of this machine may read, change or replace, and the command that prevents it. */
interface OpenFiles {
  readonly status: 'warn' | 'fail';
  readonly message: string;
  readonly command: string;
}

const FOLDERS = new Set(['agents', 'prompts', 'workflows']);
const SHOWN = 3;
/** Undefined on a system without numeric user ids. */
const ME = process.geteuid?.();
const asRoot = ME === 0 ? '' : 'sudo ';

/** A user with write access to the configuration controls what the daemon runs. */
export async function openConfiguration(directory: string): Promise<OpenFiles | null> {
  const found = await inConfiguration(directory, (path, isDeep) => findOpen(path, WRITING_BY_ALL, isDeep));
  if (found.length === 0) return null;
  const message = `every user of this machine may change the configuration: ${few(found)}`;
  return { status: 'fail', message, command: `chmod o-w ${found.map(quoted).join(' ')}` };
}

async function inConfiguration(
  directory: string,
  find: (path: string, isDeep: boolean) => Promise<string[]>,
): Promise<string[]> {
  const root = await realpath(directory).catch(() => directory);
  const found = await find(root, false);
  for (const entry of await readdir(root, { withFileTypes: true }).catch(() => [])) {
    if (entry.isDirectory() && !FOLDERS.has(entry.name)) continue;
    const path = await realpath(join(root, entry.name)).catch(() => null); // a broken link is not read
    if (path !== null) found.push(...(await find(path, true)));
  }
  return found;
}

/** Ignores root, which may change anything. */
export async function foreignConfiguration(directory: string): Promise<OpenFiles | null> {
  if (ME === undefined) return null;
  const users = new Set([ME, 0]);
  const found = await inConfiguration(directory, (path, isDeep) => findForeign(path, users, isDeep));
  if (found.length === 0) return replaceable('the configuration', directory);
  const message = `another user owns ${few(found)}, and may change the configuration`;
  return { status: 'warn', message, command: chown(found) };
}

/** Includes files of root, because the daemon of another user cannot write to them. */
async function foreignData(directory: string): Promise<OpenFiles | null> {
  if (ME === undefined) return null;
  const found = await findForeignData(directory, new Set([ME]));
  if (found.length === 0) return replaceable('the data directory', directory);
  const message = `another user owns ${few(found)}; if the daemon runs as that user, run doctor as that user`;
  const root = await realpath(directory).catch(() => directory);
  const inside = found.filter((path) => path !== root);
  const commands = [
    ...(found.length > inside.length ? [chown([root])] : []),
    ...(inside.length > 0 ? [chown(topsOf(root, inside), '-R ')] : []),
  ];
  return { status: 'fail', message, command: commands.join(' && ') };
}

async function replaceable(what: string, directory: string): Promise<OpenFiles | null> {
  const { writable, foreign } = await findReplaceable(directory, new Set([ME ?? 0, 0]));
  if (writable.length > 0) {
    const message = `every user of this machine may replace ${what}: they may write to ${few(writable)}`;
    return { status: 'fail', message, command: `${asRoot}chmod o-w ${writable.map(quoted).join(' ')}` };
  }
  if (foreign.length === 0) return null;
  const message = `another user may replace ${what}: that user owns ${few(foreign)}`;
  return { status: 'warn', message, command: chown(foreign) };
}

function chown(paths: readonly string[], option: '' | '-R ' = ''): string {
  return `${asRoot}chown ${option}${ME} ${paths.map(quoted).join(' ')}`;
}

async function openData(directory: string): Promise<OpenFiles | null> {
  const { own, isShared, isWritable } = await findOpenData(directory);
  const root = await realpath(directory).catch(() => directory);
  const inside = own.filter((path) => path !== root);
  if (inside.length > 0) {
    const tops = isShared ? topsOf(root, inside) : [root];
    const command = `chmod -R go= ${tops.map(quoted).join(' ')}`;
    return { status: 'fail', message: `other users may read or change ${few(inside)}`, command };
  }
  return isWritable ? writableData(root) : listedData(root, isShared || own.length > 0);
}

/** The warnings of each start; `doctor` checks more. */
export async function startWarnings(configuration: string, data: string): Promise<string[]> {
  const root = await realpath(data).catch(() => data);
  const isWritable = (await findOpen(root, WRITING_BY_OTHERS, false)).length > 0;
  const found = [await openConfiguration(configuration), isWritable ? writableData(root) : null];
  return found.flatMap((one) =>
    one === null ? [] : [`${one.message}. To prevent that, run: ${one.command}`],
  );
}

function writableData(root: string): OpenFiles {
  const message = `other users may remove and replace files in the data directory ${root}`;
  return { status: 'fail', message, command: `chmod go-w ${quoted(root)}` };
}

function listedData(root: string, isOpen: boolean): OpenFiles | null {
  if (!isOpen) return null;
  const message = `other users may list the names of the files in ${root}, not read them`;
  return { status: 'warn', message, command: `chmod go= ${quoted(root)}` };
}

function topsOf(root: string, paths: readonly string[]): string[] {
  const names = paths.map((path) => path.slice(root.length + 1).split('/')[0] ?? '');
  return [...new Set(names)].map((name) => join(root, name));
}

function few(paths: readonly string[]): string {
  const more = paths.length - SHOWN;
  return [...paths.slice(0, SHOWN), ...(more > 0 ? [`${more} more`] : [])].join(', ');
}
