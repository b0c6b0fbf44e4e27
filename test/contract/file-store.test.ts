import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openFileStore } from '../../src/persistence/jsonl/index.ts';
import { describeStoreContract } from './store.contract.ts';

describeStoreContract('file', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'parley-store-'));
  return {
    owners: 'one',
    open: () => openFileStore(directory),
    dispose: () => rm(directory, { recursive: true, force: true }),
  };
});
