import { join } from 'node:path';
import { NAME_PATTERN } from '../../../conversation/index.ts';

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
    /** The format of the logs. */
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
