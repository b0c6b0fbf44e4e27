import { filesIn } from '../../conversation/index.ts';
import { concurrently, hasCode, ParleyError, Releasers } from '../../kernel/index.ts';
import type { Deletion, IngressPosition, MigrationTarget, StoreArchive } from '../../persistence/index.ts';
import { composeMigration, type MigrateOptions, passOn } from '../compose/archives.ts';
import { holdCalls } from '../conversations/restored-logs.ts';
import {
  AT_ONCE,
  type Content,
  contentOf,
  copy,
  copyDefinitions,
  copyFiles,
  differenceOf,
  differs,
  isSamePosition,
  list,
  ofNewestStream,
  positionsOf,
  verifyDefinitions,
  verifyFiles,
} from './copy.ts';
/**
 * Moves all conversations of one store into another.
 *
 * MIGRATE-1  The target is closed to daemons and other migrations until everything is read back and compared.
 * MIGRATE-2  An interrupted migration continues when it is started again: conversations that it copied as they are stay, with their
 *            files, and others are removed first.
 * MIGRATE-3  A target that contains anything else is refused before the first write.
 * MIGRATE-4  The source is only read.
 * MIGRATE-5  A log without entries is no conversation: the stream of logs may be the feed of a daemon with the file store.
 * MIGRATE-6  The mark of the target excludes a second run. The second may have ended between the check and the mark, so the
 *            check is repeated after the mark: a target that was filled meanwhile is refused and left as it is.
 * MIGRATE-7  Of a backup, calls that may have run since it was made are held in the target (RESTORED-1), and the target counts
 *             as a backup until a daemon starts on it.
 * MIGRATE-8  A run may be killed after its last step: a target that has all of the source and nothing else is done. It is not written.
 */

export interface MigrationReport {
  readonly from: string;
  readonly to: string;
  readonly conversations: number;
  readonly entries: number;
  /** The records of tool calls. */
  readonly records: number;
  readonly outputs: number;
  /** In messages, each counted once. */
  readonly files: number;
  readonly deletions: number;
}

export async function migrate(options: MigrateOptions): Promise<MigrationReport> {
  const releasers = new Releasers();
  try {
    const stores = await composeMigration(options, releasers);
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

export async function migrateStore(source: StoreArchive, target: MigrationTarget): Promise<MigrationReport> {
  const { archive, store } = target;
  const ids = await source.conversations();
  const deletions = ofNewestStream(await source.deletions());
  const position = await source.ingressPosition();
  const whole = await movedBefore(source, archive, { deletions, position });
  if (whole) return reportOf(source, archive, whole, deletions);
  const isRepeated = await begin(source, target);
  const copied = new Set(isRepeated ? await keepCopied(source, target, ids) : []);
  const definitions = await copyDefinitions(source, target, (hash) => {
    throw damagedDefinition(hash, source.name);
  });
  const totals = new Totals();
  const deletedThere = positionsOf(await archive.deletions());
  for (const { conversation, ...upTo } of deletions) {
    if (isSamePosition(upTo, deletedThere.get(conversation))) continue;
    await store.delete(conversation, upTo);
    copied.delete(conversation);
  }
  await concurrently(ids, AT_ONCE, async (id) => {
    const content = await contentOf(source, id);
    if (content.entries.length === 0) return;
    if (!copied.has(id)) await copy(source, target, content, { divides: true }); // an append of a file may exceed a message
    const state = await list(target, content);
    await store.saveState(id, { id, ...state });
    totals.add(content);
  });
  if (position !== null) await store.saveIngressPosition(position);
  await store.initialiseMarks();
  const backup = await source.backup();
  if (backup) {
    await holdCalls(store);
    await store.backupMark.put(backup);
  }
  await store.close(); // writes what is pending
  await verifyDefinitions(archive, definitions);
  await verifyRest(archive, { ids: totals.ids, deletions, position });
  await target.end();
  return reportOf(source, archive, totals, deletions);
}

class Totals {
  readonly ids = new Set<string>();
  readonly files = new Set<string>();
  readonly counts = { entries: 0, records: 0, outputs: 0 };

  add({ id, entries, audit, outputs }: Content): void {
    this.ids.add(id);
    this.counts.entries += entries.length;
    this.counts.records += audit.length;
    this.counts.outputs += outputs.length;
    for (const sha256 of filesIn(entries).keys()) this.files.add(sha256);
  }
}

function reportOf(
  { name: from }: StoreArchive,
  { name: to }: StoreArchive,
  { ids, files, counts }: Totals,
  deletions: readonly Deletion[],
): MigrationReport {
  return { from, to, conversations: ids.size, ...counts, files: files.size, deletions: deletions.length };
}

/** MIGRATE-8. Null: the target is empty, is being filled, or has something else. */
async function movedBefore(
  source: StoreArchive,
  archive: StoreArchive,
  rest: Omit<Rest, 'ids'>,
): Promise<Totals | null> {
  if ((await archive.migration()) !== null || (await archive.conversations()).length === 0) return null;
  const totals = new Totals();
  try {
    for (const id of await source.conversations()) {
      const content = await contentOf(source, id);
      if (content.entries.length === 0) continue;
      if ((await differenceOf(archive, content)) !== null) return null;
      await verifyFiles(source, archive, content);
      totals.add(content);
    }
    await verifyDefinitions(archive, await source.definitions());
    await verifyRest(archive, { ...rest, ids: totals.ids });
    return totals.ids.size === 0 ? null : totals;
  } catch (error) {
    if (hasCode(error, 'MIGRATION_NOT_SAME')) return null;
    throw error;
  }
}

/** MIGRATE-2. Tool records may exist without a log. */
async function keepCopied(
  source: StoreArchive,
  target: MigrationTarget,
  ids: readonly string[],
): Promise<string[]> {
  const kept: string[] = [];
  for (const id of new Set([...ids, ...(await target.archive.conversations())])) {
    const content = ids.includes(id) ? await contentOf(source, id) : null;
    if (content && (await differenceOf(target.archive, content)) === null) {
      await copyFiles(source, target, content);
      kept.push(id);
    } else await target.store.delete(id);
  }
  return kept;
}

/** MIGRATE-2, MIGRATE-3. True: an earlier run may have left something. */
async function begin(source: StoreArchive, target: MigrationTarget): Promise<boolean> {
  const { archive } = target;
  const from = await archive.migration();
  if (from !== null && from !== source.name) throw otherSource(archive.name, from, source.name);
  if (from === null) await refuseFilled(archive);
  await target.begin(source.name);
  if (from !== null) return true;
  try {
    await refuseFilled(archive);
    return false;
  } catch (error) {
    await target.end();
    throw error;
  }
}

async function refuseFilled(target: StoreArchive): Promise<void> {
  const [own] = await foreignConversations(target, new Set());
  if (own !== undefined) throw inUse(target.name, `conversation ${own}`);
  const [deleted] = await target.deletions();
  if (deleted) throw inUse(target.name, `a deletion of conversation ${deleted.conversation}`);
  if ((await target.ingressPosition()) !== null) throw inUse(target.name, 'a position in the ingress stream');
}

/** MIGRATE-5. The conversations of an archive besides these. */
async function foreignConversations(archive: StoreArchive, known: ReadonlySet<string>): Promise<string[]> {
  const found: string[] = [];
  for (const id of await archive.conversations()) {
    if (!known.has(id) && (await archive.entries(id)).length > 0) found.push(id);
  }
  return found;
}

interface Rest {
  readonly ids: ReadonlySet<string>;
  readonly deletions: readonly Deletion[];
  readonly position: IngressPosition | null;
}

async function verifyRest(archive: StoreArchive, { ids, deletions, position }: Rest): Promise<void> {
  const there = new Set(await archive.conversations());
  const others = await foreignConversations(archive, ids);
  const found = [...ids].filter((id) => there.has(id)).length + others.length;
  if (found !== ids.size || others.length > 0) throw differs(`${found} conversations instead of ${ids.size}`);
  const known = positionsOf(await archive.deletions());
  const missing = deletions.find((one) => !isSamePosition(one, known.get(one.conversation)));
  if (missing) throw differs(`the deletion of conversation ${missing.conversation} is missing`);
  const stored = await archive.ingressPosition();
  if (position !== null && !isSamePosition(position, stored))
    throw differs('the position in the ingress stream differs');
}

function otherSource(to: string, from: string, own: string): ParleyError {
  const message = `${to} contains an unfinished migration from ${from}, not from ${own}`;
  return new ParleyError('MIGRATION_UNFINISHED', message, {
    hint: 'finish that migration first: run the same command with its source',
  });
}

function inUse(to: string, what: string): ParleyError {
  return new ParleyError('MIGRATION_TARGET_IN_USE', `${to} is not empty: it contains ${what}`, {
    hint: 'nothing was changed: migrate into an empty directory, or under another --prefix',
  });
}

function damagedDefinition(hash: string, name: string): ParleyError {
  const message = `the text ${hash} of a definition is damaged in ${name}`;
  return new ParleyError('MIGRATION_SOURCE_DAMAGED', message, {
    hint: 'restore it from a backup, or remove it: then the requests that it belongs to cannot be explained',
  });
}

/** Replaces hints that are meant for a starting daemon. */
function withOwnHint(error: unknown): unknown {
  if (!(error instanceof ParleyError)) return error;
  if (!['DATA_DIRECTORY_IN_USE', 'DAEMON_ALREADY_SERVING'].includes(error.code)) return error;
  const hint = 'a migration needs exclusive access: stop that daemon first';
  return new ParleyError(error.code, error.message, { hint, cause: error });
}
