import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openFileStore } from '../../src/persistence/jsonl/index.ts';
import { checkAfterKill, contentsIn, type Kill, killAt } from '../support/blob-kills.ts';
import { folderPerTest } from '../support/lifetime.ts';

/** BLOBS-1 to BLOBS-5. `blob-kills.long.test.ts` kills at every step, and on both stores. */
const SAMPLE: readonly Kill[] = ['half-uploaded:1', 'blob-claimed:3', 'log-removed:1', 'blob-erasing:1'];

describe('a program that is killed while it uses files', () => {
  const directory = folderPerTest();
  it.each(SAMPLE)(
    'a kill at %s loses no file that is named, and leaves none of a deleted conversation',
    async (point) => {
      const data = join(directory, 'data');
      await killAt('file', data, point);
      const store = await openFileStore(data);
      try {
        await checkAfterKill(store, point, () => contentsIn(data));
        expect(await readdir(join(data, 'deleting')).catch(() => [])).toEqual([]);
      } finally {
        await store.close();
      }
    },
  );
});
