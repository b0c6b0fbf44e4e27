import { lstat, readdir, realpath, rm } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { filesIn, recordsOfBackup } from '../../conversation/index.ts';
import {
  bytesBelow,
  concurrently,
  hasCode,
  messageOf,
  orNullIfMissing,
  ParleyError,
  Releasers,
} from '../../kernel/index.ts';
import type { ConversationStore, Deletion, MigrationTarget, StoreArchive } from '../../persistence/index.ts';
import {
  type ArchiveOptions,
  composeArchive,
  composeBackupTarget,
  copyAcceptedTools,
  publishBackup,
} from '../compose/archives.ts';
import {
  AT_ONCE,
  contentOf,
  copy,
  copyDefinitions,
  isSamePosition,
  list,
  ofNewestStream,
  positionsOf,
  verifyDefinitions,
} from './copy.ts';
import type { MigrationReport } from './migrate.ts';

/**
 * Copies a store, which a daemon may be using, into an empty data directory.
 *
 * BACKUP-1  Each conversation is the beginning of its log. The position in the ingress stream is read before the logs, so it
 *           may lag them and never leads them: no post is taken for answered that is in no log.
 * BACKUP-2  What a log names is in the copy: definitions, files and outputs are stored before the entries that name them, and read
 *           after these.
 * BACKUP-3  A conversation that was deleted meanwhile is not in the copy, and its deletion is.
 * BACKUP-4  The copy is closed to daemons and commands until it is whole, read back and compared (MIGRATE-1).
 * BACKUP-5  A conversation that cannot be read does not prevent the copy of the others. The report names it.
 * BACKUP-6  The copy proves nothing about calls that may run after it is made (RESTORED-2). It is another store than the
 *           original: it has no id.
 * BACKUP-7  A log keeps its appends: a cut of the copy loses its last append alone.
 */

export interface BackupOptions extends ArchiveOptions {
  /** The folder to make. */
  readonly to: string;
}

export interface BackupReport extends Omit<MigrationReport, 'records'> {
  /** ISO 8601. */
  readonly madeAt: string;
  /** Bytes of all files of the copy. */
  readonly bytes: number;
  /** What could not be read. */
  readonly missing: readonly Missing[];
}

interface Missing {
  /** A conversation, or the hash of a text of a definition. */
  readonly id: string;
  readonly reason: string;
}

/** A conversation with one of these was damaged before. */
const DAMAGED: ReadonlySet<string> = new Set([
  'LOG_CORRUPT',
  'LOG_UNREADABLE',
  'MIGRATION_SOURCE_DAMAGED',
  'OUTPUT_CORRUPT',
  'OUTPUT_UNREADABLE',
]);
/** The conversation was deleted while it was read. */
const GONE: ReadonlySet<string> = new Set(['LOG_NOT_FOUND', 'LOG_UNAVAILABLE']);

export async function backup(options: BackupOptions): Promise<BackupReport> {
  const { to, data, log } = options;
  const releasers = new Releasers();
  const partial = `${to}.partial`;
  await refuseTaken(to, data);
  let target: MigrationTarget | null = null;
  try {
    const source = await composeArchive(options, releasers);
    await refuseLink(partial);
    target = await composeBackupTarget(partial, log);
    const report = await backUpStore(source, target);
    await copyAcceptedTools(data, partial);
    const bytes = await bytesBelow(partial);
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

export async function backUpStore(
  source: StoreArchive,
  target: MigrationTarget,
): Promise<Omit<BackupReport, 'to' | 'bytes'>> {
  const { store, archive } = target;
  const madeAt = new Date().toISOString();
  await target.begin(source.name); // BACKUP-4
  const position = await source.ingressPosition(); // BACKUP-1
  const copying = new Copying(source, target);
  await copying.noteDeletions();
  await concurrently(await source.conversations(), AT_ONCE, (id) => copying.copy(id));
  await copying.dropGone();
  for (let more = true; more; ) {
    const deleted = await copying.noteDeletions(); // BACKUP-3
    for (const id of deleted) await copying.copy(id); // what began again
    more = deleted.length > 0;
  }
  const definitions = await copyDefinitions(source, target, (hash) =>
    copying.missing.set(hash, 'this text of a definition is damaged'),
  );
  if (position !== null) await store.saveIngressPosition(position);
  await store.initialiseMarks();
  await store.backupMark.put({ from: source.name, madeAt });
  await store.close();
  await verifyDefinitions(archive, definitions);
  await target.end();
  const missing = [...copying.missing].map(([id, reason]) => ({ id, reason }));
  return { from: source.name, madeAt, ...copying.totals(), deletions: copying.deletions, missing };
}

interface Copied {
  readonly entries: number;
  readonly outputs: number;
  readonly files: readonly string[];
}

class Copying {
  readonly copied = new Map<string, Copied>();
  /** Reasons by id. */
  readonly missing = new Map<string, string>();
  readonly #source: StoreArchive;
  readonly #target: MigrationTarget;
  readonly #store: ConversationStore;
  #deletions: readonly Deletion[] = [];

  constructor(source: StoreArchive, target: MigrationTarget) {
    this.#source = source;
    this.#target = target;
    this.#store = target.store;
  }

  get deletions(): number {
    return this.#deletions.length;
  }

  totals(): Pick<BackupReport, 'conversations' | 'entries' | 'outputs' | 'files'> {
    const all = [...this.copied.values()];
    const sum = (of: 'entries' | 'outputs') => all.reduce((total, one) => total + one[of], 0);
    const files = new Set(all.flatMap((one) => one.files)).size;
    return { conversations: all.length, entries: sum('entries'), outputs: sum('outputs'), files };
  }

  async copy(id: string): Promise<void> {
    try {
      const found = await contentOf(this.#source, id);
      const { entries, outputs } = found;
      if (entries.length === 0) return;
      const audit = recordsOfBackup(entries, found.audit);
      await copy(this.#source, this.#target, { ...found, audit }, { divides: false }); // BACKUP-7
      await list(this.#target, found);
      const files = [...filesIn(entries).keys()];
      this.copied.set(id, { entries: entries.length, outputs: outputs.length, files });
    } catch (error) {
      const code = error instanceof ParleyError ? error.code : '';
      if (GONE.has(code)) return;
      if (!DAMAGED.has(code)) throw error;
      this.missing.set(id, (error as ParleyError).message);
    }
  }

  /** Repeats the deletions that are new. Returns the conversations. */
  async noteDeletions(): Promise<string[]> {
    const known = positionsOf(this.#deletions);
    this.#deletions = ofNewestStream(await this.#source.deletions());
    const fresh = this.#deletions.filter((one) => !isSamePosition(one, known.get(one.conversation)));
    for (const { conversation, ...upTo } of fresh) {
      await this.#store.delete(conversation, upTo);
      this.#forget(conversation);
    }
    return fresh.map(({ conversation }) => conversation);
  }

  /** A deletion of a conversation without posts leaves no record. */
  async dropGone(): Promise<void> {
    const present = new Set(await this.#source.conversations());
    for (const id of [...this.copied.keys(), ...this.missing.keys()]) {
      if (present.has(id)) continue;
      await this.#store.delete(id);
      this.#forget(id);
    }
  }

  #forget(id: string): void {
    this.copied.delete(id);
    this.missing.delete(id);
  }
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
  const facts = await orNullIfMissing(lstat(path)).catch((error: unknown) => {
    throw taken(path, messageOf(error));
  });
  if (facts?.isSymbolicLink()) throw taken(path, 'it is a link');
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
  if (hasCode(error, 'DATA_DIRECTORY_IN_USE'))
    return taken(to, `another backup is being written there (${error.message})`);
  if (error instanceof ParleyError && !OF_COPY.has(error.code)) return error;
  return new ParleyError('BACKUP_FAILED', `there is no backup ${to}: ${messageOf(error)}`, {
    hint: 'fix the cause and run the same command again; nothing is left of this one',
    cause: error,
  });
}
