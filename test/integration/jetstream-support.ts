import { connect } from 'nats';
import { onTestFinished } from 'vitest';
import { createSubjects } from '../../src/bus/index.ts';
import type { ConversationStore } from '../../src/persistence/index.ts';
import type { JetStreamStoreOptions } from '../../src/persistence/jetstream/stream-store.ts';
import { createProxyActor } from '../chaos/actors/proxy.ts';
import { openTestStore } from '../support/jetstream-store.ts';
import { startNatsServer, type TestNatsServer, type TestNatsServerOptions } from '../support/nats-server.ts';
import { AMONG_OTHERS, createDaemon } from '../unit/daemon/daemon.ts';

/** Servers, stores, daemons and clients of one test. They end with it. */

export const names = createSubjects();

export async function aServer(options: TestNatsServerOptions = {}): Promise<TestNatsServer> {
  const server = await startNatsServer(options);
  onTestFinished(() => server.stop());
  return server;
}

export async function aStore(
  url: string,
  options: Partial<JetStreamStoreOptions> = {},
): Promise<ConversationStore> {
  const giveUp = new AbortController();
  const store = await openTestStore(url, { timeoutMs: 500, signal: giveUp.signal, ...options });
  onTestFinished(() => {
    giveUp.abort(); // A failed test leaves nothing that waits.
    return store.close();
  });
  return store;
}

/** A server with a store on it. */
export async function aServedStore() {
  const server = await aServer();
  return { server, store: await aStore(server.url) };
}

/** A daemon in this process that shares its logs. 's1' is the life of its stream of posts. */
export async function aDaemon(url: string, name: string) {
  const self = { ...AMONG_OTHERS, daemon: name, ingressCreated: () => 's1' };
  const daemon = createDaemon({ store: await aStore(url), self, reply: () => 'noted' });
  onTestFinished(() => daemon.end());
  return daemon;
}

export async function aClient(url: string) {
  const client = await connect({ servers: url });
  onTestFinished(() => client.close());
  return client;
}

export async function aProxy(server: TestNatsServer) {
  const proxy = await createProxyActor(Number(new URL(server.url).port));
  onTestFinished(() => proxy.close());
  return proxy;
}
