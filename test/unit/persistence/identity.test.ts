import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openFileStore } from '../../../src/persistence/jsonl/index.ts';
import { errorWith } from '../../support/error-with.ts';
import { storeFolderPerTest, withDirectory } from './support.ts';

const { directory, path, session } = storeFolderPerTest();

describe('the id of a data directory', () => {
  const idOf = async (directory: string) => {
    const store = await openFileStore(directory);
    await store.close();
    return store.id;
  };

  it('a copy of the conversations has the same id, and another directory has another id', async () => {
    const id = await session(async (store) => store.id);
    await withDirectory(async (copy) => {
      expect(await idOf(join(copy, 'other'))).not.toBe(id);
      await cp(join(directory, 'conversations'), join(copy, 'conversations'), { recursive: true });
      expect(await idOf(copy)).toBe(id);
    });
  });

  it('a missing or damaged id is replaced by a new one', async () => {
    const id = await session(async (store) => store.id);
    await writeFile(path('conversations', 'identity.json'), '{"id":');
    const second = await idOf(directory);
    await rm(path('conversations', 'identity.json'));
    const third = await idOf(directory);
    expect(new Set([id, second, third]).size).toBe(3);
    expect(await idOf(directory)).toBe(third);
  });

  it('an id file that cannot be read or replaced is refused by its path, and the lock is released', async () => {
    await mkdir(path('conversations', 'identity.json'), { recursive: true });
    const refused = errorWith('DATA_DIRECTORY_UNWRITABLE', 'identity.json');
    await expect(openFileStore(directory)).rejects.toMatchObject(refused);
    await rm(path('conversations', 'identity.json'), { recursive: true });
    expect(await idOf(directory)).toMatch(/\S/);
  });
});
