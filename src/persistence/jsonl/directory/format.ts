import { readFile } from 'node:fs/promises';
import { messageOf, ParleyError, VERSION } from '../../../kernel/index.ts';
import { errnoOf, refuseFile, replaceFile } from '../log/durable.ts';
import type { StoreLog } from '../log/log-file.ts';
import { storePaths } from './paths.ts';

/**
 * The version of the stored data, in `conversations/format.json`: beside the logs, so that a copy of them includes it.
 *
 * FORMAT-1 A newer major version changes existing data: an older daemon refuses it and names both versions. This version
 *          reads all older ones; 2.0 changed the names of folders (`folders.ts`).
 * FORMAT-2 A newer minor version only adds fields or kinds of entries: an older daemon keeps and ignores them.
 * FORMAT-3 The version is durable before the first data in that format, and never decreases.
 * FORMAT-4 Logs without this file have format 1.0.
 */

export interface StoredFormat {
  readonly major: number;
  readonly minor: number;
}

/** What this daemon writes. An addition that older daemons may ignore raises `minor`; any other change, `major`. */
export const FORMAT: StoredFormat = { major: 2, minor: 0 };

interface FormatFile {
  readonly format: StoredFormat;
  readonly writtenBy: string;
}

/** Checks the version before anything else is read or written, and writes the version of this daemon. */
export async function upgradeFormat(root: string, log: StoreLog, own: StoredFormat = FORMAT): Promise<void> {
  const path = storePaths(root).format;
  const found = await checkFormat(root, own);
  const isOwn = found?.format.major === own.major;
  if (found !== null && isOwn && found.format.minor > own.minor) {
    const { format, writtenBy } = found;
    log({ type: 'format-newer', file: path, stored: nameOf(format), own: nameOf(own), writtenBy });
    return; // FORMAT-3
  }
  if (isOwn && found.format.minor === own.minor) return;
  const file: FormatFile = { format: own, writtenBy: `parleyd ${VERSION}` };
  await replaceFile(path, `${JSON.stringify(file)}\n`, { durable: true });
}

/** For readers: throws on a newer major version. Null: no such file (FORMAT-4). */
export async function checkFormat(root: string, own: StoredFormat = FORMAT): Promise<FormatFile | null> {
  const path = storePaths(root).format;
  await refuseFile(root);
  const found = await readFormat(path);
  if (found === null || found.format.major <= own.major) return found;
  const { format, writtenBy } = found;
  throw new ParleyError(
    'DATA_FORMAT_UNKNOWN',
    `The data in ${root} has format ${nameOf(format)} (${path}, written by ${writtenBy}); this is parleyd ${VERSION}, which reads ${own.major}.x and older`,
    {
      hint: `Nothing was changed. Start ${writtenBy} or a later version on it, or choose another --data directory.`,
    }, // FORMAT-1
  );
}

async function readFormat(path: string): Promise<FormatFile | null> {
  try {
    return parseFormat(JSON.parse(await readFile(path, 'utf8')));
  } catch (cause) {
    if (errnoOf(cause) === 'ENOENT') return null;
    throw new ParleyError(
      'DATA_FORMAT_UNREADABLE',
      `${path} does not say which format the data has: ${messageOf(cause)}`,
      {
        hint:
          'Nothing was changed. Restore the file from a backup. If no newer Parley ever ran on this data, you can ' +
          'remove the file instead: then the data counts as format 1.0.',
        cause,
      },
    );
  }
}

/** Checks the fields it needs, and ignores others, which a later version may add (FORMAT-2). */
function parseFormat(value: unknown): FormatFile {
  const { format, writtenBy } = (value ?? {}) as { format?: Partial<StoredFormat>; writtenBy?: unknown };
  const { major, minor } = format ?? {};
  if (!isCount(major) || major === 0 || !isCount(minor)) throw new Error('it holds no version');
  const writer =
    typeof writtenBy === 'string' && writtenBy !== '' ? writtenBy : 'an unknown version of Parley';
  return { format: { major, minor }, writtenBy: writer };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function nameOf({ major, minor }: StoredFormat): string {
  return `${major}.${minor}`;
}
