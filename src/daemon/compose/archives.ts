import { rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
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
import type { Config } from '../../config/index.ts';
import type { Entry } from '../../conversation/index.ts';
import {
  type Log,
  messageOf,
  ParleyError,
  type Releasers,
  readOwnText,
  replaceFile,
} from '../../kernel/index.ts';
import type {
  ConversationStore,
  MigrationSource,
  MigrationTarget,
  StoreArchive,
} from '../../persistence/index.ts';
import { openStreamSource, openStreamTarget } from '../../persistence/jetstream/index.ts';
import {
  checkFormat,
  keepAside,
  openFileArchive,
  openFileSource,
  openFileStore,
  openFileTarget,
  readLogFile,
  refuseFile,
  refuseUnfinished,
  storePaths,
} from '../../persistence/jsonl/index.ts';
/** Opens stores for commands that run without a daemon. */

/** Reads the log of a conversation without a daemon. Takes no lock and changes nothing. */
export async function composeLogReader(
  dataDirectory: string,
  conversation: string,
): Promise<readonly Entry[]> {
  await checkFormat(dataDirectory);
  await refuseUnfinished(dataDirectory);
  const { entries } = await readLogFile(storePaths(dataDirectory).log(conversation));
  return entries;
}

/** Keeps a refused file, once per content; resolves to its path. */
export async function composeQuarantine(
  dataDirectory: string,
  name: string,
  content: Buffer,
): Promise<string> {
  await refuseFile(dataDirectory);
  return keepAside(join(dataDirectory, 'quarantine'), name, content);
}

/** Opens the store of a data directory that no daemon uses. */
export function composeOwnStore(dataDirectory: string): Promise<ConversationStore> {
  return openFileStore(dataDirectory).catch((error: unknown) => {
    if (!(error instanceof ParleyError) || error.code !== 'DATA_DIRECTORY_IN_USE') throw error;
    throw new ParleyError(error.code, error.message, {
      hint: 'this command changes files that a running daemon owns: stop that daemon first',
      cause: error,
    });
  });
}

export { inspectFiles as composeInspector, publishBackup } from '../../persistence/jsonl/index.ts';

export interface ArchiveOptions {
  /** The data directory: with streams, only for accepted tools. */
  readonly data: string;
  /** The server of the jetstream store; null: the conversations are in `data`. */
  readonly streams: { readonly nats: NatsOptions; readonly prefix?: string } | null;
  readonly log: Log;
}

export async function composeArchive(
  { data, streams, log }: ArchiveOptions,
  releasers: Releasers,
): Promise<StoreArchive> {
  if (streams === null) return openFileArchive(data);
  const connection = await openNats({ ...streams.nats, name: 'parley-backup' });
  releasers.add('nats', () => closeConnection(connection));
  const watch = watchConnection(connection, log, () => undefined);
  const names = createSubjects(streams.prefix);
  return (await openStreamSource({ connection, watch, names })).archive;
}

/** A folder that an interrupted backup left is removed. Its lock shows whether another backup is writing it. */
export async function composeBackupTarget(partial: string, log: Log): Promise<MigrationTarget> {
  const report = (event: { readonly type: string }) => log.warn(event, `the backup reports: ${event.type}`);
  const options = { log: report };
  const found = await openFileTarget(partial, options);
  if ((await found.archive.migration()) === null) return found;
  await found.store.close();
  await rm(partial, { recursive: true, force: true });
  return openFileTarget(partial, options);
}

export function acceptedToolsPath(data: string): string {
  return join(data, 'accepted-tools.json');
}

/** Without it, the next start would accept the tools of MCP servers as they are then. */
export async function copyAcceptedTools(from: string, to: string): Promise<void> {
  const hint = 'let this user read the file';
  const text = await readOwnText(acceptedToolsPath(from), { code: 'BACKUP_FAILED', hint });
  if (text !== null) await replaceFile(acceptedToolsPath(to), text);
}

export interface MigrateOptions {
  /** The target. */
  readonly to: 'file' | 'jetstream';
  readonly directory: string;
  readonly nats: NatsOptions;
  readonly prefix?: string;
  /** The replicas of the target's streams; null: unchanged. */
  readonly replicas: number | null;
  readonly log: Log;
}

/** The name of the store in messages. */
export function storeName({
  daemon,
  subjectPrefix,
}: {
  readonly daemon: Pick<Config['daemon'], 'store' | 'data'>;
  readonly subjectPrefix?: string | undefined;
}): string {
  if (daemon.store === 'file') return `data directory ${daemon.data} on ${hostname()}`;
  return `store jetstream, stream ${createSubjects(subjectPrefix).logStream}`;
}

export interface MigrationStores {
  readonly source: MigrationSource;
  readonly target: MigrationTarget;
  readonly connection: NatsConnection;
}

/** What the source settled is settled by the target now. Without that the next daemon only reports too much. */
export async function passOn(
  { to, directory, prefix, log }: MigrateOptions,
  stores: MigrationStores,
): Promise<void> {
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

/**
 * Opens both stores of a migration, locked so that no daemon serves either of them meanwhile. A source directory is locked first, so that a running daemon is noticed at once; a target
 * directory is created last.
 */
export async function composeMigration(
  { to, directory, nats, prefix, replicas, log }: MigrateOptions,
  releasers: Releasers,
): Promise<MigrationStores> {
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
