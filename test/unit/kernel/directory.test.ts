import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeDirectory } from '../../../src/kernel/index.ts';

describe('a directory', () => {
  let root = '';
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'parley-directory-'));
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  it('is made with what is missing above it, and may exist already', async () => {
    const path = join(root, 'a', 'b', 'c');
    await makeDirectory(path);
    await makeDirectory(path);
    expect((await stat(path)).isDirectory()).toBe(true);
  });

  it('is refused where a file stands in its place, or above it', async () => {
    await writeFile(join(root, 'file'), '');
    await expect(makeDirectory(join(root, 'file'))).rejects.toThrow(/EEXIST/);
    await expect(makeDirectory(join(root, 'file', 'below'))).rejects.toThrow(/ENOTDIR/);
  });

  it.skipIf(process.platform !== 'linux')(
    'is refused, not tried for ever, where none can be made',
    async () => {
      await expect(makeDirectory('/proc/parley-test/data')).rejects.toThrow(/ENOENT|EACCES|EPERM/);
    },
  );
});
