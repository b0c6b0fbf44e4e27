import { createSubjects } from '../../bus/index.ts';
import {
  afterLeaderElection,
  closeConnection,
  enforceReplicas,
  type NatsConnection,
  type NatsOptions,
  openNats,
  requireReplicas,
  reserveSubjects,
  transferSettledRecord,
  watchConnection,
} from '../../bus/nats/index.ts';
import { messageOf, ParleyError, Releasers } from '../../kernel/index.ts';
import type { MigrationSource, MigrationTarget } from '../../persistence/index.ts';
import { openStreamSource, openStreamTarget } from '../../persistence/jetstream/index.ts';
import { openFileSource, openFileTarget } from '../../persistence/jsonl/index.ts';
import { type MigrationReport, migrateStore } from '../offline/migrate.ts';
import type { Log } from '../runtime.ts';
import { storeName } from './hidden-conversations.ts';

/** Opens both stores of a migration, locked so that no daemon serves either of them meanwhile. */

export interface MigrateOptions {
  /** The target. */
  readonly to: 'file' | 'jetstream';
  /** The data directory. */
  readonly directory: string;
  readonly nats: NatsOptions;
  readonly prefix?: string;
  /** The replicas of the target's streams; null: unchanged. */
  readonly replicas: number | null;
  readonly log: Log;
}

export async function migrate(options: MigrateOptions): Promise<MigrationReport> {
  const releasers = new Releasers();
  try {
    const stores = await bothStores(options, releasers);
    const report = await migrateStore(stores.source.archive, stores.target);
    await passOn(options, stores);
    return report;
  } catch (error) {
    throw withOwnHint(error);
  } finally {
    for (const failure of await releasers.release())
      options.log.error({ failure }, 'a resource was not released');
  }
}

interface Stores {
  readonly source: MigrationSource;
  readonly target: MigrationTarget;
  readonly connection: NatsConnection;
}

/** What the source settled is settled by the target now. Without that the next daemon only reports too much. */
async function passOn({ to, directory, prefix, log }: MigrateOptions, stores: Stores): Promise<void> {
  const { source, target, connection } = stores;
  if (source.id === null) return;
  const name = storeName({ daemon: { store: to, data: directory }, subjectPrefix: prefix });
  await transferSettledRecord(connection, createSubjects(prefix), source.id, {
    id: target.store.id,
    name,
  }).catch((error: unknown) =>
    log.warn(
      { reason: messageOf(error) },
      'the next daemon may report posts that were moved as settled elsewhere',
    ),
  );
}

/** A source directory is locked first, so that a running daemon is noticed at once; a target directory is created last. */
async function bothStores(
  { to, directory, nats, prefix, replicas, log }: MigrateOptions,
  releasers: Releasers,
): Promise<Stores> {
  const report = (event: { readonly type: string }) => log.warn(event, `the store reports: ${event.type}`);
  const fileSource = to === 'file' ? null : await openFileSource(directory);
  if (fileSource) releasers.add('source', () => fileSource.close());
  const connection = await openNats({ ...nats, name: 'parley-migrate' });
  releasers.add('nats', () => closeConnection(connection));
  requireReplicas(connection, replicas);
  const names = createSubjects(prefix);
  const held = await reserveSubjects(connection, names, log);
  releasers.add('subjects', () => held.release());
  const watch = watchConnection(connection, log, () => undefined);
  const streams = { connection, watch, names, log: report };
  const source = fileSource ?? (await openStreamSource(streams));
  const target = fileSource
    ? await afterLeaderElection(connection, () => openStreamTarget(streams))
    : await openFileTarget(directory, { log: report });
  releasers.add('target', () => target.store.close());
  if (fileSource)
    await afterLeaderElection(connection, () => enforceReplicas(connection, names, replicas, log));
  return { source, target, connection };
}

/** Replaces hints that are meant for a starting daemon. */
function withOwnHint(error: unknown): unknown {
  if (!(error instanceof ParleyError)) return error;
  if (!['DATA_DIRECTORY_IN_USE', 'DAEMON_ALREADY_SERVING'].includes(error.code)) return error;
  const hint = 'a migration needs exclusive access: stop that daemon first';
  return new ParleyError(error.code, error.message, { hint, cause: error });
}
