import { readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openFileStore } from '../../../src/persistence/jsonl/index.ts';
import { putBlob } from '../../contract/blobs.contract.ts';
import { folderPerTest } from '../../support/lifetime.ts';

const root = folderPerTest();

it('a sweep removes what a killed upload left of a file, also while the file itself is stored', async () => {
  const store = await openFileStore(root);
  const { facts } = await putBlob(store, 'a picture');
  const folder = join(root, 'blobs', facts.sha256.slice(0, 2));
  const left = join(folder, `${facts.sha256}.tmp`);
  await writeFile(left, 'a pic');
  await utimes(left, new Date(0), new Date(0));
  await store.blobs.sweep(new Date(60_000).toISOString());
  expect(await readdir(folder)).toEqual([facts.sha256]);
  await store.close();
});
