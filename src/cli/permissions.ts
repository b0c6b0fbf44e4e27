import { readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { findOpen, findOpenData, WRITING_BY_ALL, WRITING_BY_OTHERS } from '../kernel/index.ts';
import { quoted } from './command-line.ts';

/** Files that other users of this machine may read or change, with the command that closes them. */

export interface OpenFiles {
  readonly status: 'warn' | 'fail';
  readonly message: string;
  readonly command: string;
}

/** What a configuration is read from, besides the files directly in its folder. */
const FOLDERS = new Set(['agents', 'prompts', 'workflows']);
const SHOWN = 3;

/** Who may write there decides what the daemon runs. */
export async function openConfiguration(directory: string): Promise<OpenFiles | null> {
  const root = await realpath(directory).catch(() => directory);
  const found = await findOpen(root, WRITING_BY_ALL, false);
  for (const entry of await readdir(root, { withFileTypes: true }).catch(() => [])) {
    if (entry.isDirectory() && !FOLDERS.has(entry.name)) continue;
    const path = await realpath(join(root, entry.name)).catch(() => null); // a link to nothing is not read
    if (path !== null) found.push(...(await findOpen(path, WRITING_BY_ALL)));
  }
  if (found.length === 0) return null;
  const message = `every user of this machine may change the configuration: ${few(found)}`;
  return { status: 'fail', message, command: `chmod o-w ${found.map(quoted).join(' ')}` };
}

export async function openData(directory: string): Promise<OpenFiles | null> {
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

/** What is worth a line at each start: the rest is what `doctor` looks for. */
export async function startWarnings(configuration: string, data: string): Promise<string[]> {
  const root = await realpath(data).catch(() => data);
  const isWritable = (await findOpen(root, WRITING_BY_OTHERS, false)).length > 0;
  const found = [await openConfiguration(configuration), isWritable ? writableData(root) : null];
  return found.flatMap((one) => (one === null ? [] : [`${one.message}; to change that: ${one.command}`]));
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
