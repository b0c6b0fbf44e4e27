import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { NAME_PATTERN } from '../../../conversation/index.ts';
import {
  errnoOf,
  fullDiskError,
  messageOf,
  orNullIfMissing,
  ParleyError,
  replaceFile,
  VERSION,
} from '../../../kernel/index.ts';
import { refuseFile } from '../log/durable.ts';

/** The layout of a data directory: the names of its files, and the version of what they hold. */

/** The paths in a data directory. The only file that spells these names. */
export function storePaths(root: string) {
  const conversations = join(root, 'conversations');
  const blobs = join(root, 'blobs');
  const conversation = (id: string) => join(conversations, folderOf(id));
  return {
    root,
    lock: join(root, 'LOCK'),
    ingress: join(root, 'ingress.json'),
    deleted: join(root, 'deleted.json'),
    conversations,
    rows: join(conversations, 'index.json'),
    format: join(conversations, 'format.json'),
    /** The id of the logs. */
    identity: join(conversations, 'identity.json'),
    marks: join(root, 'open'),
    /** The texts of definitions, each in a file named by its hash. */
    definitions: join(root, 'definitions'),
    blobs,
    /** The content of a file, named by its hash below the first two digits of it. */
    blob: (sha256: string) => join(blobs, sha256.slice(0, 2), sha256),
    blobRecords: join(blobs, 'records'),
    /** Deletions that are not finished. */
    deleting: join(root, 'deleting'),
    people: join(root, 'people'),
    /** Exists while the directory is a backup on which no daemon has started. */
    backup: join(root, 'backup.json'),
    /** Exists while a migration or a backup into the directory is unfinished. */
    migration: join(root, 'migration.json'),
    conversation,
    log: (id: string) => join(conversation(id), 'log.jsonl'),
    state: (id: string) => join(conversation(id), 'state.json'),
    audit: (id: string) => join(conversation(id), 'audit.jsonl'),
    outputs: (id: string) => join(conversation(id), 'outputs'),
    /** The file behind `@state/logs/tool-results/<conversation>/<entry>.json`. */
    output: (id: string, entryId: string) => join(conversation(id), 'outputs', `${entryId}.json`),
  };
}
export type StorePaths = ReturnType<typeof storePaths>;

/**
 * The name of a conversation's folder and mark. Many file systems ignore case.
 *
 * FOLDER-1  A name has no capitals: the id in lower case and, if the id has capitals, `+` and a hexadecimal number whose
 *           bit n says that character n is a capital. `CIX` is `cix+7`. Each id has one name, of at most 161 characters.
 */
export function folderOf(id: string): string {
  let capitals = 0n;
  for (let at = 0; at < id.length; at++) if (/[A-Z]/.test(id.charAt(at))) capitals |= 1n << BigInt(at);
  return capitals === 0n ? id : `${id.toLowerCase()}+${capitals.toString(16)}`;
}

/** Null: not the folder of a conversation. */
export function idOf(folder: string): string | null {
  const [name = '', mask = '0'] = folder.split('+');
  if (!/^[0-9a-f]{1,32}$/.test(mask)) return null;
  const capitals = BigInt(`0x${mask}`);
  const letters = [...name].map((letter, at) =>
    (capitals >> BigInt(at)) & 1n ? letter.toUpperCase() : letter,
  );
  const id = letters.join('');
  return NAME_PATTERN.test(id) && folderOf(id) === folder ? id : null;
}

/**
 * The version of the stored data, in `conversations/format.json`: beside the logs, so that a copy of them includes it.
 *
 * FORMAT-1 Another version is refused by name, and nothing is changed. Fields and types of entries that this version does not
 *          know are kept and ignored: an addition that may be ignored needs no new version.
 * FORMAT-2 The version is durable before the first data in that format.
 */
export const FORMAT = 1;

/** Checks the version before anything else is read or written; a new directory gets that of this daemon. */
export async function writeFormat(root: string): Promise<void> {
  if (await checkFormat(root)) return;
  const text = JSON.stringify({ format: FORMAT, writtenBy: `parleyd ${VERSION}` });
  await replaceFile(storePaths(root).format, `${text}\n`);
}

/** For readers: throws `DATA_FORMAT_UNKNOWN` for another version. False: no such file. */
export async function checkFormat(root: string): Promise<boolean> {
  const path = storePaths(root).format;
  await refuseFile(root);
  const found = await readFormat(path);
  if (found === null) return false;
  const { format, writtenBy } = found;
  if (format === FORMAT) return true;
  throw new ParleyError(
    'DATA_FORMAT_UNKNOWN',
    `The data in ${root} has format ${format} (${path}, written by ${writtenBy}); this is parleyd ${VERSION}, which reads format ${FORMAT}`,
    { hint: `Nothing was changed. Start ${writtenBy} on it, or choose another --data directory.` },
  );
}

interface FormatFile {
  readonly format: number;
  readonly writtenBy: string;
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
          'Nothing was changed. Restore the file from a backup. If only this version of Parley ever ran on this data, you can ' +
          'remove the file instead.',
        cause,
      },
    );
  }
}

/** Checks the fields it needs, and ignores others. */
function parseFormat(value: unknown): FormatFile {
  const { format, writtenBy } = (value ?? {}) as { format?: unknown; writtenBy?: unknown };
  if (!Number.isSafeInteger(format) || (format as number) < 1) throw new Error('it holds no version');
  const writer =
    typeof writtenBy === 'string' && writtenBy !== '' ? writtenBy : 'an unknown version of Parley';
  return { format: format as number, writtenBy: writer };
}

/**
 * The id of these logs, in `conversations/identity.json`: beside the logs, so that a copy of them has the same id.
 * Created if it is missing or unreadable: the logs then count as another store (`src/bus/settled.ts`).
 */
export async function identityOf(root: string): Promise<string> {
  const path = storePaths(root).identity;
  try {
    const known = await knownIdentity(root);
    if (known !== null) return known;
    const id = randomUUID();
    await replaceFile(path, `${JSON.stringify({ id })}\n`);
    return id;
  } catch (cause) {
    const fault = fullDiskError(cause, 'STORE_FULL', `the disk of ${root}`);
    if (fault instanceof ParleyError) throw fault;
    throw new ParleyError(
      'DATA_DIRECTORY_UNWRITABLE',
      `${path} cannot be read or created: ${messageOf(cause)}`,
      {
        hint: 'Let this user read and write the file, or remove it: then this directory counts as another store.',
        cause,
      },
    );
  }
}

/** Null: there is no id, or it is damaged. */
export async function knownIdentity(root: string): Promise<string | null> {
  const text = await orNullIfMissing(readFile(storePaths(root).identity, 'utf8'));
  return text === null ? null : parseIdentity(text);
}

function parseIdentity(text: string): string | null {
  try {
    const { id } = JSON.parse(text) as { id?: unknown };
    return typeof id === 'string' && id !== '' ? id : null;
  } catch {
    return null; // not JSON: damaged
  }
}
