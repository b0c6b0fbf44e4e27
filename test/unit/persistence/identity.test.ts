import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openFileStore } from '../../../src/persistence/jsonl/index.ts';
import { withDirectory, withScene } from './support.ts';

describe('the id of a data directory', () => {
  const idOf = async (directory: string) => {
    const store = await openFileStore(directory);
    await store.close();
    return store.id;
  };

  it('goes with a copy of the conversations, and is another one in another directory', () =>
    withScene(async ({ session, directory }) => {
      const id = await session(async (store) => store.id);
      await withDirectory(async (copy) => {
        expect(await idOf(join(copy, 'other'))).not.toBe(id);
        await cp(join(directory, 'conversations'), join(copy, 'conversations'), { recursive: true });
        expect(await idOf(copy)).toBe(id);
      });
    }));

  it('is made anew where it was removed or cannot be understood', () =>
    withScene(async ({ session, directory, path }) => {
      const id = await session(async (store) => store.id);
      await writeFile(path('conversations', 'identity.json'), '{"id":');
      const second = await idOf(directory);
      await rm(path('conversations', 'identity.json'));
      const third = await idOf(directory);
      expect(new Set([id, second, third]).size).toBe(3);
      expect(await idOf(directory)).toBe(third);
    }));

  it('is asked for by its path where no file can be read, and the directory is free again', () =>
    withScene(async ({ directory, path }) => {
      await mkdir(path('conversations', 'identity.json'), { recursive: true });
      const refused = {
        code: 'DATA_DIRECTORY_UNWRITABLE',
        message: expect.stringContaining('identity.json'),
      };
      await expect(openFileStore(directory)).rejects.toMatchObject(refused);
      await rm(path('conversations', 'identity.json'), { recursive: true });
      expect(await idOf(directory)).toMatch(/\S/);
    }));
});
