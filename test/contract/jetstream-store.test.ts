import { afterAll, beforeAll } from 'vitest';
import { createSubjects } from '../../src/bus/index.ts';
import { closeConnection, openNats } from '../../src/bus/nats/index.ts';
import { openTestStore } from '../support/jetstream-store.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';
import { describeStoreContract } from './store.contract.ts';

let server: TestNatsServer;
let rounds = 0;
beforeAll(async () => {
  server = await startNatsServer();
});
afterAll(() => server.stop());

describeStoreContract('jetstream', async () => {
  rounds += 1;
  const prefix = `round-${rounds}`;
  return {
    owners: 'many',
    open: () => openTestStore(server.url, { prefix }),
    dispose: () => deleteStreams(prefix),
  };
});

async function deleteStreams(prefix: string): Promise<void> {
  const connection = await openNats({ url: server.url });
  const { streams } = await connection.jetstreamManager();
  const { logStream, auditStream, blobStream, stateBucket, outputBucket } = createSubjects(prefix);
  for (const name of [logStream, auditStream, blobStream, `KV_${stateBucket}`, `OBJ_${outputBucket}`])
    await streams.delete(name);
  await closeConnection(connection);
}
