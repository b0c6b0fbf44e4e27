import { lstat, readdir, realpath, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { createSubjects } from '../../bus/index.ts';
import { closeConnection, type NatsOptions, openNats, watchConnection } from '../../bus/nats/index.ts';
import { messageOf, orNullIfMissing, ParleyError, Releasers, writePrivateFile } from '../../kernel/index.ts';
import type { MigrationTarget, StoreArchive } from '../../persistence/index.ts';
import { openStreamSource } from '../../persistence/jetstream/index.ts';
import {
  openFileArchive,
  openFileTarget,
  publishBackup,
  readOwnText,
} from '../../persistence/jsonl/index.ts';
import { type BackupReport, backUpStore } from '../offline/backup.ts';
import type { Log } from '../runtime.ts';
import { composeWhatIfTexts } from './files.ts';
import { acceptedToolsPath } from './tools.ts';

/** Opens the store to back up and the folder of the backup, which gets its name when it is whole. */

export interface BackupOptions {
  /** The folder to make. */
  readonly to: string;
  /** The data directory: with streams, only for results of what-ifs and accepted tools. */
  readonly data: string;
  /** The server of the jetstream store; null: the conversations are in `data`. */
  readonly streams: { readonly nats: NatsOptions; readonly prefix?: string } | null;
  readonly log: Log;
}

export async function backup(options: BackupOptions): Promise<BackupReport> {
  const { to, data, log } = options;
  const releasers = new Releasers();
  const partial = `${to}.partial`;
  await refuseTaken(to, data);
  let target: MigrationTarget | null = null;
  try {
    const source = await openSource(options, releasers);
    target = await openTarget(partial, log);
    const whatIfs = { from: composeWhatIfTexts(data), to: composeWhatIfTexts(partial) };
    const report = await backUpStore(source, target, whatIfs);
    await copyAcceptedTools(data, partial);
    const bytes = await bytesIn(partial);
    await publishBackup(partial, to);
    return { ...report, to, bytes };
  } catch (error) {
    await target?.store.close().catch(() => undefined); // the first failure is the one to report
    if (target) await rm(partial, { recursive: true, force: true }).catch(() => undefined);
    throw ofBackup(error, to);
  } finally {
    for (const failure of await releasers.release()) log.error({ failure }, 'a resource was not released');
  }
}

async function openSource(
  { data, streams, log }: BackupOptions,
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
async function openTarget(partial: string, log: Log): Promise<MigrationTarget> {
  await refuseLink(partial);
  const report = (event: { readonly type: string }) => log.warn(event, `the backup reports: ${event.type}`);
  const options = { log: report };
  const found = await openFileTarget(partial, options);
  if ((await found.archive.migration()) === null) return found;
  await found.store.close();
  await rm(partial, { recursive: true, force: true });
  return openFileTarget(partial, options);
}

async function refuseTaken(to: string, data: string): Promise<void> {
  await refuseLink(to);
  const [target, source] = [await withoutLinks(to), await withoutLinks(data)];
  if (`${target}${sep}`.startsWith(`${source}${sep}`)) throw taken(to, 'it is in the data directory');
  const names = await orNullIfMissing(readdir(to)).catch((error: unknown) => {
    throw taken(to, messageOf(error));
  });
  if (names !== null && names.length > 0) throw taken(to, 'it is not empty');
}

/** The path with the links in it resolved; its last parts may not exist. */
async function withoutLinks(path: string): Promise<string> {
  const real = await realpath(path).catch(() => null);
  return real ?? join(await withoutLinks(dirname(path)), basename(path));
}

async function refuseLink(path: string): Promise<void> {
  if ((await orNullIfMissing(lstat(path)))?.isSymbolicLink()) throw taken(path, 'it is a link');
}

/** Without it, the next start would accept the tools of MCP servers as they are then. */
async function copyAcceptedTools(from: string, to: string): Promise<void> {
  const hint = 'let this user read the file';
  const text = await readOwnText(acceptedToolsPath(from), { code: 'BACKUP_FAILED', hint });
  if (text !== null) await writePrivateFile(acceptedToolsPath(to), text);
}

async function bytesIn(directory: string): Promise<number> {
  let bytes = 0;
  for (const name of await readdir(directory, { recursive: true })) {
    const found = await stat(join(directory, name));
    if (found.isFile()) bytes += found.size;
  }
  return bytes;
}

function taken(path: string, why: string): ParleyError {
  return new ParleyError('BACKUP_TARGET_IN_USE', `${path} cannot become a backup: ${why}`, {
    hint: 'name a folder that does not exist yet, one for each backup',
  });
}

/** Failures of the copy. Others, such as a server that cannot be reached, have a hint that fits. */
const OF_COPY: ReadonlySet<string> = new Set([
  'AUDIT_WRITE_FAILED',
  'DATA_DIRECTORY_UNWRITABLE',
  'MIGRATION_FAILED',
  'MIGRATION_NOT_SAME',
  'STORE_FULL',
]);

function ofBackup(error: unknown, to: string): unknown {
  if (error instanceof ParleyError && error.code === 'DATA_DIRECTORY_IN_USE')
    return taken(to, `another backup is being written there (${error.message})`);
  if (error instanceof ParleyError && !OF_COPY.has(error.code)) return error;
  return new ParleyError('BACKUP_FAILED', `there is no backup ${to}: ${messageOf(error)}`, {
    hint: 'fix the cause and run the same command again; nothing is left of this one',
    cause: error,
  });
}
