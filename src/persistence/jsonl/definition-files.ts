import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { DefinitionTexts } from '../port.ts';
import { requireTextHash, TEXT_HASH } from '../rules.ts';
import { makeDirectory, orNullIfMissing, readOwnText, replaceFile, syncDirectory } from './log/durable.ts';

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

/** DEFINITION-FILES-2 */
function readText(path: string): Promise<string | null> {
  const hint = 'restore the file from a backup, with the owner and the permissions of the data directory';
  return readOwnText(path, { code: 'DEFINITION_UNREADABLE', hint });
}
