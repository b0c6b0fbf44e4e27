import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { ServerFiles } from '../directory.ts';

const TAIL_LINES = 12;
const TAIL_BYTES = 64 * 1024;
const KEPT_BACKUPS = 2;

/** Where the log ends now, so that a later tail shows only what was written since. */
export async function logLength(files: ServerFiles): Promise<number> {
  return (await stat(files.log).catch(() => null))?.size ?? 0;
}

/** The last lines the server wrote since `from`: what it printed, then its log. */
export async function tailOfLog(files: ServerFiles, from: number): Promise<string> {
  const printed = await readFile(files.output, 'utf8').catch(() => '');
  const bytes = await readFile(files.log).catch(() => Buffer.alloc(0));
  // A log shorter than before was rotated meanwhile: all of it is new.
  const logged = bytes.subarray(bytes.length >= from ? from : 0).toString('utf8');
  const lines = `${printed.slice(-TAIL_BYTES)}\n${logged.slice(-TAIL_BYTES)}`.split('\n');
  return lines
    .filter((line) => line.trim() !== '')
    .slice(-TAIL_LINES)
    .join('\n');
}

/** The server keeps every rotated log for ever (only newer versions can be told otherwise): keep the newest few. */
export async function pruneRotatedLogs(files: ServerFiles): Promise<void> {
  const folder = dirname(files.log);
  const prefix = `${basename(files.log)}.`;
  // The suffix is the time, in an order that sorts.
  const backups = (await readdir(folder)).filter((name) => name.startsWith(prefix)).sort();
  for (const name of backups.slice(0, -KEPT_BACKUPS)) await rm(join(folder, name), { force: true });
}
