import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { ServerFiles } from '../directory.ts';

const TAIL_LINES = 12;
const TAIL_BYTES = 64 * 1024;
const KEPT_BACKUPS = 2;

/** The current length of the log, so that a later tail shows only newer lines. */
export async function logLength(files: ServerFiles): Promise<number> {
  return (await stat(files.log).catch(() => null))?.size ?? 0;
}

/** The last lines since `from`: of the server's output, then of its log. */
export async function tailOfLog(files: ServerFiles, from: number): Promise<string> {
  const printed = await readFile(files.output, 'utf8').catch(() => '');
  const bytes = await readFile(files.log).catch(() => Buffer.alloc(0));
  // A shorter log was rotated meanwhile, so all of it is new.
  const logged = bytes.subarray(bytes.length >= from ? from : 0).toString('utf8');
  const lines = `${printed.slice(-TAIL_BYTES)}\n${logged.slice(-TAIL_BYTES)}`.split('\n');
  return lines
    .filter((line) => line.trim() !== '')
    .slice(-TAIL_LINES)
    .join('\n');
}

/** Removes old rotated logs. Only newer servers have a setting for that. */
export async function pruneRotatedLogs(files: ServerFiles): Promise<void> {
  const folder = dirname(files.log);
  const prefix = `${basename(files.log)}.`;
  // The suffix is a sortable time.
  const backups = (await readdir(folder)).filter((name) => name.startsWith(prefix)).sort();
  for (const name of backups.slice(0, -KEPT_BACKUPS)) await rm(join(folder, name), { force: true });
}
