import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeDirectory } from '../../../src/kernel/index.ts';
import { folderPerTest } from '../../support/lifetime.ts';

describe('makeDirectory', () => {
  const root = folderPerTest();

  it('a directory is created with its missing parents, and may already exist', async () => {
    const path = join(root, 'a', 'b', 'c');
    await makeDirectory(path);
    await makeDirectory(path);
    expect((await stat(path)).isDirectory()).toBe(true);
  });

  it('a file in the place of the directory or of a parent is refused', async () => {
    await writeFile(join(root, 'file'), '');
    await expect(makeDirectory(join(root, 'file'))).rejects.toThrow(/EEXIST/);
    await expect(makeDirectory(join(root, 'file', 'below'))).rejects.toThrow(/ENOTDIR/);
  });

  it.skipIf(process.platform !== 'linux')(
    'the call ends with an error where no directory can be created',
    async () => {
      await expect(makeDirectory('/proc/parley-test/data')).rejects.toThrow(/ENOENT|EACCES|EPERM/);
    },
  );
});
