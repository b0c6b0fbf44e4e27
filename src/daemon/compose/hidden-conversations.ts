import { createSubjects } from '../../bus/index.ts';
import { closeConnection, openNats, watchConnection } from '../../bus/nats/index.ts';
import { messageOf, ParleyError, urlWithoutSecrets } from '../../kernel/index.ts';
import type { ConversationStore } from '../../persistence/index.ts';
import { openStreamSource } from '../../persistence/jetstream/index.ts';
import { composeInspector } from './archives.ts';
import type { Composition } from './compose.ts';
/** Finds conversations in the other store: in the data directory, or in the streams of the server. */

/** Reads the other store and changes nothing. A failed read does not prevent the start. */
export async function warnOfHidden(composition: Composition, store: ConversationStore): Promise<void> {
  const { config, log } = composition;
  const { data, nats, store: kind } = config.daemon;
  try {
    const others = kind === 'file' ? await inStreams(composition) : await inFiles(data);
    if (others.length === 0) return;
    const known = new Set(await store.conversations());
    const hidden: string[] = [];
    for (const id of others) if (!known.has(id) && (await store.deletedUpTo(id)) === null) hidden.push(id);
    if (hidden.length === 0) return;
    const [from, to] = kind === 'file' ? ['jetstream', `file:${data}`] : [`file:${data}`, 'jetstream'];
    const url = nats.kind === 'managed' ? 'URL' : urlWithoutSecrets(nats.url);
    log.warn(
      { conversations: hidden.length, in: from },
      `these conversations are in the other store and are not shown; \`parley migrate --from ${from} --to ${to} --nats ${url}\` moves all into an empty one`,
    );
  } catch (error) {
    log.info({ reason: messageOf(error) }, 'the other store could not be checked for conversations');
  }
}

async function inFiles(data: string): Promise<string[]> {
  try {
    return await composeInspector(data).conversations();
  } catch (error) {
    if (error instanceof ParleyError && error.code === 'USAGE_NO_DATA') return [];
    throw error;
  }
}

async function inStreams({ config, log, server }: Composition): Promise<string[]> {
  const { address } = await server();
  const connection = await openNats({ ...address, name: 'parleyd-look' });
  try {
    const watch = watchConnection(connection, log, () => undefined);
    const source = await openStreamSource({ connection, watch, names: createSubjects(config.subjectPrefix) });
    return await source.archive.conversations();
  } catch (error) {
    if (error instanceof ParleyError && error.code === 'MIGRATION_NO_SOURCE') return [];
    throw error;
  } finally {
    await closeConnection(connection);
  }
}
