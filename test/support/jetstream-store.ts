import { createSubjects } from '../../src/bus/index.ts';
import { closeConnection, openNats, watchConnection } from '../../src/bus/nats/index.ts';
import type { ConversationStore } from '../../src/persistence/index.ts';
import { openJetStreamStore } from '../../src/persistence/jetstream/index.ts';
import type { JetStreamStoreOptions } from '../../src/persistence/jetstream/stream-store.ts';

const SILENT = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** A store on this server, with a connection of its own that closes with it. */
export async function openTestStore(
  url: string,
  options: Partial<JetStreamStoreOptions> & { readonly prefix?: string } = {},
): Promise<ConversationStore> {
  const connection = await openNats({ url, name: 'store-test' });
  const watch = watchConnection(connection, SILENT, () => undefined);
  try {
    const names = createSubjects(options.prefix);
    const store = await openJetStreamStore({ connection, watch, names, ...options });
    const close = store.close.bind(store);
    let closing: Promise<void> | null = null;
    store.close = () => {
      closing ??= close().finally(() => closeConnection(connection));
      return closing;
    };
    return store;
  } catch (error) {
    await closeConnection(connection);
    throw error;
  }
}
