import type { Entry } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import { archiveOf, migrationTarget, refuseUnfinishedMigration } from '../archive.ts';
import type { MigrationSource, MigrationTarget, StoreArchive } from '../offline-port.ts';
import { createStreamAudit } from './audit.ts';
import { openBroker } from './broker.ts';
import { BucketDocuments } from './documents.ts';
import { conversationsIn, follow, Placement } from './log-reader.ts';
import {
  type JetStreamStoreOptions,
  type OpenedStore,
  openStore,
  unfinishedRemovals,
} from './stream-store.ts';
import { findStream, idOf } from './streams.ts';

/**
 * A JetStream store as the source or target of a migration.
 *
 * JETSTREAM-MIGRATION-1 The source is not changed: nothing is created, and a deletion that a crash interrupted is not
 *                       finished, but its conversation counts as deleted.
 * JETSTREAM-MIGRATION-2 The caller makes sure that no daemon serves these subjects during the migration.
 */

export async function openStreamSource(options: JetStreamStoreOptions): Promise<MigrationSource> {
  const { names } = options;
  const broker = await openBroker(options);
  const buckets = [`KV_${names.stateBucket}`, `OBJ_${names.outputBucket}`];
  for (const stream of [names.logStream, names.auditStream, ...buckets]) {
    if ((await findStream(broker.manager, stream)) === null) throw missingSource(stream);
  }
  const documents = await BucketDocuments.open(broker, names, { mayCreate: false });
  await refuseUnfinishedMigration(`stream ${names.logStream}`, documents);
  const archive = streamArchive({ broker, names, documents });
  return { id: await idOf(broker.manager, names), archive, close: async () => undefined };
}

export async function openStreamTarget(options: JetStreamStoreOptions): Promise<MigrationTarget> {
  const opened = await openStore({ ...options, isMigrating: true });
  const name = `stream ${options.names.logStream}`;
  return migrationTarget(name, opened.store, streamArchive(opened), opened.documents);
}

function streamArchive({ broker, names, documents }: Omit<OpenedStore, 'store'>): StoreArchive {
  return archiveOf(`jetstream:${names.logStream}`, {
    documents,
    audit: createStreamAudit(broker, names, documents),
    async conversations() {
      const gone = new Set(await unfinishedRemovals(documents));
      return (await conversationsIn(broker, names)).filter((id) => !gone.has(id));
    },
    async log(conversation) {
      const entries: Entry[] = [];
      const ends: number[] = [];
      const [stream, subject] = [names.logStream, names.log(conversation)];
      const source = { broker, conversation, stream, subject, isFenced: true, onForeign: () => undefined };
      await follow(source, new Placement(), (_, found) => {
        for (const entry of found) entries.push(entry);
        ends.push(entries.length);
      });
      return { entries, ends };
    },
  });
}

function missingSource(stream: string): ParleyError {
  return new ParleyError('MIGRATION_NO_SOURCE', `there is no stream ${stream} on this server`, {
    hint: 'check --nats, the account and --prefix: no daemon has run there with --store jetstream',
  });
}
