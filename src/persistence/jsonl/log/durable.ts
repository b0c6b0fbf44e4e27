import { constants } from 'node:fs';
import { type FileHandle, open, rename, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  errnoOf,
  messageOf,
  openTemporary,
  orNullIfMissing,
  ParleyError,
  syncDirectory,
} from '../../../kernel/index.ts';

/**
 * File operations that survive a power cut: a name is durable only after its directory is synced. Files and directories are
 * for their owner only.
 */

/** Refuses a data directory that is a file, or below one. A missing directory is accepted. */
export async function refuseFile(root: string, code = 'USAGE_NO_DATA'): Promise<void> {
  const isFile = await orNullIfMissing(stat(root)).then(
    (found) => found !== null && !found.isDirectory(),
    (error: unknown) => errnoOf(error) === 'ENOTDIR',
  );
  if (isFile) {
    throw new ParleyError(code, `${root} is not a directory`, {
      hint: 'name the data directory of a daemon with --data DIR',
    });
  }
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

/** Replaces a file: readers see the old or the new content, never a part. `durable: false` skips the syncs. */
export async function replaceFile(
  path: string,
  content: string,
  options: { durable: boolean },
): Promise<void> {
  const temporary = `${path}.tmp`;
  const handle = await openTemporary(temporary);
  try {
    await handle.writeFile(content);
    if (options.durable) await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, path);
  if (options.durable) await syncDirectory(dirname(path));
}

/** Durably writes a new file named `name`, with a number appended if that exists. Returns its path. */
export async function writeNewFile(
  directory: string,
  name: string,
  content: Buffer | string,
): Promise<string> {
  for (let attempt = 0; ; attempt += 1) {
    const path = join(directory, attempt === 0 ? name : `${name}-${attempt}`);
    const handle = await createExclusively(path);
    if (handle === null) continue;
    try {
      await handle.writeFile(content);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await syncDirectory(directory);
    return path;
  }
}

async function createExclusively(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, 'wx', 0o600);
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return null;
    throw error;
  }
}

/** A moment as part of a file name: `20261121T203900123Z`. */
export function fileTimestamp(moment: Date = new Date()): string {
  return moment.toISOString().replaceAll(/[-:.]/g, '');
}
