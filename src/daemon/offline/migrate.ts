import { hashOf } from '../../agents/index.ts';
import { type Entry, hasOutstandingWork } from '../../conversation/index.ts';
import { messageOf, ParleyError } from '../../kernel/index.ts';
import type {
  AuditRecord,
  Deletion,
  IngressPosition,
  MigrationTarget,
  StoreArchive,
} from '../../persistence/index.ts';
import { rowOf } from '../conversations/projections.ts';
import { stateOf } from './findings.ts';

/**
 * Moves all conversations of one store into another.
 *
 * MIGRATE-1  The target is closed to daemons and other migrations until everything is read back and compared.
 * MIGRATE-2  An interrupted migration continues when it is started again: an equal conversation is kept, any other content
 *            of the target is removed and copied again.
 * MIGRATE-3  A target that contains anything that the source does not is refused before the first write.
 * MIGRATE-4  The source is only read.
 * MIGRATE-5  A log without entries is no conversation: the stream of logs may be the feed of a daemon with the file store.
 * MIGRATE-6  The mark of the target excludes a second run. The second may have ended between the check and the mark, so the
 *            check is repeated after the mark: a target that was filled meanwhile is refused and left as it is.
 */

export interface MigrationReport {
  readonly from: string;
  readonly to: string;
  readonly conversations: number;
  /** Of them, those that had to be copied. */
  readonly copied: number;
  readonly entries: number;
  /** Of tool calls. */
  readonly records: number;
  readonly outputs: number;
  readonly deletions: number;
}

/** Conversations copied at once: the server answers one while it reads another. */
const CONCURRENCY = 4;
/** Bytes of one append or group of records; with its envelope less than the smallest broker payload. */
const GROUP_BYTES = 32 * 1_024;
/** Texts of definitions that are read at once. */
const TEXTS_AT_ONCE = 100;

interface Content {
  readonly entries: readonly Entry[];
  readonly audit: readonly AuditRecord[];
  readonly outputs: readonly (readonly [id: string, content: string])[];
}

export async function migrateStore(source: StoreArchive, target: MigrationTarget): Promise<MigrationReport> {
  const { archive, store } = target;
  const ids = await source.conversations();
  const isResumed = await begin(source, target, ids); // MIGRATE-1
  const definitions = await copyDefinitions(source, target);
  const totals = { conversations: 0, copied: 0, entries: 0, records: 0, outputs: 0 };
  const moved = new Set<string>();
  const deletions = ofNewestStream(await source.deletions());
  const deletedThere = positionsOf(await archive.deletions());
  for (const { conversation, ...upTo } of deletions) {
    if (!isSamePosition(upTo, deletedThere.get(conversation))) await store.delete(conversation, upTo);
  }
  const there = new Set(isResumed ? await archive.conversations() : []);
  const known = new Set(ids);
  for (const id of there) if (!known.has(id)) await store.delete(id); // copied, and deleted in the source since
  await concurrently(ids, async (id) => {
    const content = await contentOf(source, id);
    if (content.entries.length === 0) return; // MIGRATE-5
    moved.add(id);
    const isThere = there.has(id) && isSame(content, await contentOf(archive, id));
    if (!isThere) {
      if (isResumed) await store.delete(id); // MIGRATE-2: tool records may exist without a log
      await copy(target, id, content);
      await verify(archive, id, content);
      totals.copied += 1;
    }
    await project(target, id, content.entries);
    totals.conversations += 1;
    totals.entries += content.entries.length;
    totals.records += content.audit.length;
    totals.outputs += content.outputs.length;
  });
  const position = await source.ingressPosition();
  if (position !== null) await store.saveIngressPosition(position);
  await store.initialiseMarks();
  await store.close(); // writes what is pending
  await verifyDefinitions(archive, definitions);
  await verifyRest(archive, { ids: moved, deletions, position });
  await target.end();
  const { name: from } = source;
  return { from, to: archive.name, deletions: deletions.length, ...totals };
}

/** Before the logs that name them. Their number is small: each text is stored once. Returns the hashes. */
async function copyDefinitions(source: StoreArchive, { store }: MigrationTarget): Promise<string[]> {
  const hashes = await source.definitions();
  for (let at = 0; at < hashes.length; at += TEXTS_AT_ONCE) {
    const texts = new Map<string, string>();
    for (const hash of hashes.slice(at, at + TEXTS_AT_ONCE)) {
      const text = await source.definition(hash);
      if (text === null || hashOf(text) !== hash) throw damagedDefinition(hash, source.name);
      texts.set(hash, text);
    }
    await store.definitions.put(texts);
  }
  return hashes;
}

async function verifyDefinitions(archive: StoreArchive, hashes: readonly string[]): Promise<void> {
  for (const hash of hashes) {
    const text = await archive.definition(hash);
    if (text === null || hashOf(text) !== hash) throw differs(`the text ${hash} of a definition differs`);
  }
}

/** True: the target may contain conversations of an earlier run. */
async function begin(source: StoreArchive, target: MigrationTarget, ids: string[]): Promise<boolean> {
  const { archive } = target;
  const from = await archive.migration();
  if (from !== null && from !== source.name) throw otherSource(archive.name, from, source.name);
  const isFilled = from !== null || (await holdsSame(source, archive, ids));
  await target.begin(source.name);
  if (from !== null) return true;
  try {
    if ((await holdsSame(source, archive, ids)) === isFilled) return isFilled; // MIGRATE-6
    throw notEmpty(archive.name, 'another migration filled it after this one began');
  } catch (error) {
    await target.end();
    throw error;
  }
}

/** MIGRATE-3. False: the target is empty. */
async function holdsSame(source: StoreArchive, target: StoreArchive, ids: string[]): Promise<boolean> {
  const there = await target.conversations();
  const [foreign] = await foreignConversations(target, new Set(ids));
  if (foreign !== undefined) throw notEmpty(target.name, `conversation ${foreign} is not in ${source.name}`);
  const deletions = positionsOf(ofNewestStream(await source.deletions()));
  const deleted = (await target.deletions()).find(
    (one) => !isSamePosition(one, deletions.get(one.conversation)),
  );
  if (deleted) throw notEmpty(target.name, `it has a deletion of conversation ${deleted.conversation}`);
  const [own, position] = [await target.ingressPosition(), await source.ingressPosition()];
  if (own !== null && !isSamePosition(own, position)) throw notEmpty(target.name, 'it has read other posts');
  await concurrently(there, async (id) => {
    if (isSame(await contentOf(source, id), await contentOf(target, id))) return;
    throw notEmpty(target.name, `its conversation ${id} has other content`);
  });
  return there.length > 0;
}

/** MIGRATE-5. The conversations of an archive besides these. */
async function foreignConversations(archive: StoreArchive, known: ReadonlySet<string>): Promise<string[]> {
  const found: string[] = [];
  for (const id of await archive.conversations()) {
    if (!known.has(id) && (await archive.entries(id)).length > 0) found.push(id);
  }
  return found;
}

async function contentOf(archive: StoreArchive, id: string): Promise<Content> {
  const outputs: (readonly [string, string])[] = [];
  for (const entryId of await archive.outputs(id)) {
    const content = await archive.output(id, entryId);
    if (content !== null) outputs.push([entryId, content]); // null: a crash before it was stored, and no entry names it
  }
  return { entries: await archive.entries(id), audit: await archive.audit(id), outputs };
}

function isSame(left: Content, right: Content): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}

async function copy({ store }: MigrationTarget, id: string, content: Content): Promise<void> {
  for (const [entryId, output] of content.outputs) await store.toolRecords.saveOutput(id, entryId, output);
  for (const records of groups(content.audit)) await store.toolRecords.append(id, records);
  const { log } = await store.open(id);
  try {
    const batches = [...groups(content.entries)];
    await Promise.all(batches.map((entries) => log.append(entries[0]?.index ?? 0, entries)));
  } catch (cause) {
    throw new ParleyError('MIGRATION_FAILED', `conversation ${id} could not be copied: ${messageOf(cause)}`, {
      hint: 'fix the cause and run the same command again: it continues where it was interrupted',
      cause,
    });
  } finally {
    await log.close();
  }
}

/** A large item is a group of its own: an append must fit one message. */
function* groups<T>(items: readonly T[]): Generator<T[]> {
  let group: T[] = [];
  let bytes = 0;
  for (const item of items) {
    const size = Buffer.byteLength(JSON.stringify(item));
    if (group.length > 0 && bytes + size > GROUP_BYTES) {
      yield group;
      [group, bytes] = [[], 0];
    }
    group.push(item);
    bytes += size;
  }
  if (group.length > 0) yield group;
}

/** Writes the projections, and the mark by which the next start finds outstanding work. */
async function project({ store }: MigrationTarget, id: string, entries: readonly Entry[]): Promise<void> {
  const state = stateOf(entries);
  if (hasOutstandingWork(state)) await store.markOpen(id);
  await store.saveRow(rowOf(id, state, entries));
  await store.saveState(id, { id, ...state });
}

async function verify(archive: StoreArchive, id: string, wanted: Content): Promise<void> {
  const found = await contentOf(archive, id);
  for (const kind of ['entries', 'audit', 'outputs'] as const) {
    const at = differsAt(wanted[kind], found[kind]);
    if (at !== null) throw differs(`conversation ${id}: ${kind} differ at ${at}`);
  }
}

/** The first index at which two lists differ; null: they are equal. */
function differsAt(wanted: readonly unknown[], found: readonly unknown[]): number | null {
  for (let at = 0; at < Math.max(wanted.length, found.length); at++) {
    if (JSON.stringify(wanted[at]) !== JSON.stringify(found[at])) return at;
  }
  return null;
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

/** Deletions of the newest stream. Older streams are gone with their posts, and stores may drop their deletions. */
function ofNewestStream(deletions: readonly Deletion[]): Deletion[] {
  const newest = Math.max(...deletions.map(({ stream }) => Date.parse(stream) || 0));
  return deletions.filter(({ stream }) => (Date.parse(stream) || 0) === newest);
}

function positionsOf(deletions: readonly Deletion[]): ReadonlyMap<string, IngressPosition> {
  return new Map(deletions.map((one) => [one.conversation, one]));
}

function isSamePosition(one: IngressPosition, other: IngressPosition | null | undefined): boolean {
  return one.stream === other?.stream && one.sequence === other.sequence;
}

async function concurrently<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const waiting = items.values(); // shared: each takes the next
  await Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      for (const item of waiting) await work(item);
    }),
  );
}

function otherSource(to: string, from: string, own: string): ParleyError {
  const message = `${to} contains an unfinished migration from ${from}, not from ${own}`;
  return new ParleyError('MIGRATION_UNFINISHED', message, {
    hint: 'finish that migration first: run the same command with its source',
  });
}

function notEmpty(to: string, why: string): ParleyError {
  return new ParleyError('MIGRATION_TARGET_IN_USE', `${to} contains conversations of its own: ${why}`, {
    hint: 'nothing was changed: migrate into an empty directory, or under another --prefix',
  });
}

function damagedDefinition(hash: string, name: string): ParleyError {
  const message = `the text ${hash} of a definition is damaged in ${name}`;
  return new ParleyError('MIGRATION_SOURCE_DAMAGED', message, {
    hint: 'restore it from a backup, or remove it: then the requests that it belongs to cannot be explained',
  });
}

function differs(what: string): ParleyError {
  return new ParleyError('MIGRATION_NOT_SAME', `the copy differs from the source: ${what}`, {
    hint: 'the target stays closed to daemons: check its disk, and run the same command again',
  });
}
