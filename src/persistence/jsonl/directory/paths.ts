import { join } from 'node:path';
import { NAME_PATTERN } from '../../../conversation/index.ts';

/** The paths in a data directory. The only file that spells these names. */
export interface StorePaths {
  readonly root: string;
  readonly lock: string;
  readonly ingress: string;
  readonly deleted: string;
  readonly conversations: string;
  readonly rows: string;
  /** The format of the logs. */
  readonly format: string;
  /** The id of the logs. */
  readonly identity: string;
  readonly marks: string;
  /** The texts of definitions, each in a file named by its hash. */
  readonly definitions: string;
  /** Content of files, each named by its hash below the first two digits of it. */
  blob(sha256: string): string;
  readonly blobs: string;
  readonly blobRecords: string;
  /** Deletions that are not finished. */
  readonly deleting: string;
  readonly people: string;
  /** Exists while the directory is a backup on which no daemon has started. */
  readonly backup: string;
  /** Exists while a migration or a backup into the directory is unfinished. */
  readonly migration: string;
  conversation(id: string): string;
  log(id: string): string;
  state(id: string): string;
  audit(id: string): string;
  outputs(id: string): string;
  /** The file behind `@state/logs/tool-results/<conversation>/<entry>.json`. */
  output(id: string, entryId: string): string;
}

/** `folder`: the folder of a conversation, if it may be in the old layout. */
export function storePaths(root: string, folder: (id: string) => string = folderOf): StorePaths {
  const conversations = join(root, 'conversations');
  return {
    root,
    lock: join(root, 'LOCK'),
    ingress: join(root, 'ingress.json'),
    deleted: join(root, 'deleted.json'),
    conversations,
    rows: join(conversations, 'index.json'),
    format: join(conversations, 'format.json'),
    identity: join(conversations, 'identity.json'),
    marks: join(root, 'open'),
    definitions: join(root, 'definitions'),
    blob: (sha256) => join(root, 'blobs', sha256.slice(0, 2), sha256),
    blobs: join(root, 'blobs'),
    blobRecords: join(root, 'blobs', 'records'),
    deleting: join(root, 'deleting'),
    people: join(root, 'people'),
    backup: join(root, 'backup.json'),
    migration: join(root, 'migration.json'),
    conversation: (id) => join(conversations, folder(id)),
    log: (id) => join(conversations, folder(id), 'log.jsonl'),
    state: (id) => join(conversations, folder(id), 'state.json'),
    audit: (id) => join(conversations, folder(id), 'audit.jsonl'),
    outputs: (id) => join(conversations, folder(id), 'outputs'),
    output: (id, entryId) => join(conversations, folder(id), 'outputs', `${entryId}.json`),
  };
}

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
