import type { Entry } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import { MigrationRun } from '../migration-run.ts';
import type { MigrationSource, MigrationTarget, StoreArchive } from '../offline-port.ts';
import type { IngressPosition } from '../port.ts';
import { type Broker, openBroker } from './broker.ts';
import { createDefinitions } from './definitions.ts';
import { Deletions } from './deletions.ts';
import { Documents } from './documents.ts';
import { conversationsIn, follow, Placement } from './log-reader.ts';
import {
  createBackupMark,
  readMigration,
  refuseUnfinishedMigration,
  removeMigration,
  writeMigration,
} from './migration-mark.ts';

import { type JetStreamStoreOptions, openJetStreamStore } from './stream-store.ts';
import { findStream, idOf, type StoreNames } from './streams.ts';
import { openToolRecords, type StreamToolRecords } from './tool-records.ts';

/**
 * A JetStream store as the source or target of a migration.
 *
 * JETSTREAM-MIGRATION-1 The source is not changed: nothing is created, and a deletion that a crash interrupted is not
 *                       finished, but its conversation counts as deleted.
 * JETSTREAM-MIGRATION-2 The caller makes sure that no daemon serves these subjects during the migration.
 */

interface Parts {
  readonly broker: Broker;
  readonly names: StoreNames;
  readonly documents: Documents;
  readonly toolRecords: StreamToolRecords;
}

export async function openStreamSource(options: JetStreamStoreOptions): Promise<MigrationSource> {
  const { names } = options;
  const broker = await openBroker(options);
  const buckets = [`KV_${names.stateBucket}`, `OBJ_${names.outputBucket}`];
  for (const stream of [names.logStream, names.auditStream, ...buckets]) {
    if ((await findStream(broker.manager, stream)) === null) throw missingSource(stream); // JETSTREAM-MIGRATION-1
  }
  const documents = await Documents.bind(broker, names.stateBucket);
  await refuseUnfinishedMigration(documents, names.logStream);
  const toolRecords = await openToolRecords(broker, names, documents);
  const archive = streamArchive({ broker, names, documents, toolRecords });
  return { id: await idOf(broker.manager, names), archive, close: async () => undefined };
}

export async function openStreamTarget(options: JetStreamStoreOptions): Promise<MigrationTarget> {
  const { names } = options;
  const store = await openJetStreamStore({ ...options, isMigrating: true });
  const broker = await openBroker(options);
  const documents = await Documents.bind(broker, names.stateBucket);
  const toolRecords = await openToolRecords(broker, names, documents);
  const run = new MigrationRun(`stream ${names.logStream}`);
  const archive = streamArchive({ broker, names, documents, toolRecords });
  return {
    store,
    archive: { ...archive, migration: async () => run.noteSeen(await readMigration(documents)) },
    begin: (from) => writeMigration(documents, run, from),
    end: () => removeMigration(documents, run),
  };
}

function streamArchive({ broker, names, documents, toolRecords }: Parts): StoreArchive {
  const deletions = new Deletions(documents);
  const definitions = createDefinitions(broker, documents);
  const appendsOf = async (conversation: string) => {
    const appends: (readonly Entry[])[] = [];
    const subject = names.log(conversation);
    const stream = names.logStream;
    const source = { broker, conversation, stream, subject, isFenced: true, onForeign: () => undefined };
    await follow(source, new Placement(), (_, entries) => void appends.push(entries));
    return appends;
  };
  return {
    name: `jetstream:${names.logStream}`,
    async conversations() {
      const gone = new Set(await deletions.unfinished());
      return (await conversationsIn(broker, names)).filter((id) => !gone.has(id));
    },
    entries: async (conversation) => (await appendsOf(conversation)).flat(),
    async appendEnds(conversation) {
      let end = 0;
      return (await appendsOf(conversation)).map((entries) => (end += entries.length));
    },
    audit: async (conversation) => (await toolRecords.read(conversation)).records,
    outputs: (conversation) => toolRecords.outputs(conversation),
    output: (conversation, entryId) => toolRecords.readOutput(conversation, entryId),
    definitions: () => definitions.list(),
    definition: (hash) => definitions.get(hash),
    deletions: () => deletions.all(),
    ingressPosition: async () => (await documents.get('ingress')) as IngressPosition | null,
    backup: createBackupMark(documents).get,
    migration: async () => (await readMigration(documents))?.from ?? null,
  };
}

function missingSource(stream: string): ParleyError {
  return new ParleyError('MIGRATION_NO_SOURCE', `there is no stream ${stream} on this server`, {
    hint: 'check --nats, the account and --prefix: no daemon has run there with --store jetstream',
  });
}
