import { constants } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, ParleyError } from '../../kernel/index.ts';
import type { DefinitionTexts } from '../port.ts';
import { requireTextHash, TEXT_HASH } from '../rules.ts';
import { errnoOf, makeDirectory, orNullIfMissing, replaceFile, syncDirectory } from './log/durable.ts';

/**
 * `definitions/`: one file for each text, named by the hash of its content.
 *
 * DEFINITION-FILES-1 A file is there as a whole or not at all: temporary name, sync, rename. The directory is synced in each
 *                    `put`, also for files of an earlier process: it may have ended before its sync.
 * DEFINITION-FILES-2 A link is not followed, and only its owner can read a file.
 */
export function createDefinitionFiles(directory: string): DefinitionTexts {
  let tail: Promise<void> = Promise.resolve();
  return {
    /** One at a time: two turns may start with the same texts, and a temporary name is the hash with `.tmp`. */
    put(texts) {
      const putting = tail.then(() => putAll(directory, texts));
      tail = putting.catch(() => undefined);
      return putting;
    },
    async get(hash) {
      requireTextHash(hash);
      return readText(join(directory, hash));
    },
  };
}

/** The hashes of the stored texts, in order. */
export async function listDefinitionFiles(directory: string): Promise<string[]> {
  const names = (await orNullIfMissing(readdir(directory))) ?? [];
  return names.filter((name) => TEXT_HASH.test(name)).sort();
}

async function putAll(directory: string, texts: ReadonlyMap<string, string>): Promise<void> {
  if (texts.size === 0) return;
  await makeDirectory(directory);
  for (const [hash, text] of texts) {
    requireTextHash(hash);
    const path = join(directory, hash);
    const stored = await readText(path).catch(() => null); // a link or a damaged file: replaced
    if (stored !== text) await replaceFile(path, text, { durable: true });
  }
  await syncDirectory(directory); // DEFINITION-FILES-1
}

async function readText(path: string): Promise<string | null> {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW); // DEFINITION-FILES-2
    try {
      return await file.readFile('utf8');
    } finally {
      await file.close();
    }
  } catch (cause) {
    if (errnoOf(cause) === 'ENOENT') return null;
    const why = errnoOf(cause) === 'ELOOP' ? 'it is a link' : messageOf(cause);
    throw new ParleyError('DEFINITION_UNREADABLE', `${path} cannot be read: ${why}`, {
      hint: 'restore the file from a backup, with the owner and the permissions of the data directory',
      cause,
    });
  }
}
