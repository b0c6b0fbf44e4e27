import { constants } from 'node:fs';
import { open, readdir, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  fullDiskError,
  makeDirectory,
  orNullIfMissing,
  replaceFile,
  syncDirectory,
} from '../../kernel/index.ts';
import type { BlobContents } from '../storage.ts';
import type { StorePaths } from './directory/paths.ts';

/** The content of blobs: `blobs/<2 digits>/<sha256>`, each a file that is there as a whole or not at all. */
export function createBlobFiles(paths: StorePaths): BlobContents {
  return {
    async put(sha256, content) {
      const path = paths.blob(sha256);
      try {
        await makeDirectory(dirname(path));
        await replaceFile(path, content);
      } catch (error) {
        await rm(`${path}.tmp`, { force: true });
        throw fullDiskError(error, 'STORE_FULL', `the disk of ${paths.root}`);
      }
      return sha256;
    },
    async read(name, from) {
      const path = paths.blob(name);
      return (await orNullIfMissing(stat(path))) && piecesOf(path, from);
    },
    async remove(name) {
      const path = paths.blob(name);
      await rm(path, { force: true });
      await orNullIfMissing(syncDirectory(dirname(path)));
    },
    async list() {
      const folders = (await orNullIfMissing(readdir(paths.blobs))) ?? [];
      const contents = folders.filter((folder) => /^[0-9a-f]{2}$/.test(folder));
      return (await Promise.all(contents.map((folder) => readdir(join(paths.blobs, folder))))).flat();
    },
    async storedAt(name) {
      return (await orNullIfMissing(stat(paths.blob(name))))?.mtime.toISOString() ?? null;
    },
  };
}

/** A picture of 1 MB is read in two steps and not in sixteen. */
const READ_BYTES = 512 * 1024;

async function* piecesOf(path: string, start = 0): AsyncGenerator<Uint8Array> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  yield* file.createReadStream({ start, highWaterMark: READ_BYTES });
}
