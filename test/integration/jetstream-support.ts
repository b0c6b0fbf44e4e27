import { connect } from 'nats';
import { afterEach } from 'vitest';
import { createSubjects } from '../../src/bus/index.ts';
import { createProxyActor } from '../../src/chaos/actors/proxy.ts';
import type { ConversationStore } from '../../src/persistence/index.ts';
import type { JetStreamStoreOptions } from '../../src/persistence/jetstream/index.ts';
import { openTestStore } from '../support/jetstream-store.ts';
import { startNatsServer, type TestNatsServer, type TestNatsServerOptions } from '../support/nats-server.ts';

/** Servers, stores and clients of one test; each ends with it. */

export const names = createSubjects();
const ending: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

export async function aServer(options: TestNatsServerOptions = {}): Promise<TestNatsServer> {
  const server = await startNatsServer(options);
  ending.push(() => server.stop());
  return server;
}

export async function aStore(
  url: string,
  options: Partial<JetStreamStoreOptions> = {},
): Promise<ConversationStore> {
  const giveUp = new AbortController();
  const store = await openTestStore(url, { timeoutMs: 500, signal: giveUp.signal, ...options });
  ending.push(() => {
    giveUp.abort(); // a test that failed leaves nothing that waits
    return store.close();
  });
  return store;
}

export async function aClient(url: string) {
  const client = await connect({ servers: url });
  ending.push(() => client.close());
  return client;
}

export async function aProxy(server: TestNatsServer) {
  const proxy = await createProxyActor(Number(new URL(server.url).port));
  ending.push(() => proxy.close());
  return proxy;
}
