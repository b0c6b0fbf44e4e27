import { createMemoryDisk, createMemoryStore } from '../../src/persistence/memory/index.ts';
import { describeStoreContract } from './store.contract.ts';

describeStoreContract('memory', async () => {
  const disk = createMemoryDisk();
  return {
    owners: 'one',
    open: async () => createMemoryStore(disk),
    dispose: async () => undefined,
  };
});
