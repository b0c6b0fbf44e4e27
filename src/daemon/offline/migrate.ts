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
 * MIGRATE-1 The target refuses everybody else from before the first write until everything was read back and compared.
 * MIGRATE-2 A move that was ended in the middle goes on when it is begun again: what is there and the same stays, whatever
 *    else there is of a conversation is removed and copied anew. So the result is the same.
 * MIGRATE-3 Nothing of the target's own is lost: one that holds what the source does not is refused before anything is written.
 * MIGRATE-4 The source is only read.
 * MIGRATE-5 What has no entry is no conversation: a stream of logs may keep the feed of a daemon with the file store.
 * MIGRATE-6 Of two runs into one target one has the mark. The other one may have ended between the check and the mark, so the
 *    check is repeated after the mark: a target that was filled meanwhile is refused, and left as it is.
 */

export interface MigrationReport {
  readonly from: string;
  readonly to: string;
  readonly conversations: number;
  /** Of them, those that had to be copied. */
  readonly copied: number;
  readonly entries: number;
  /** Of calls of tools. */
  readonly records: number;
  readonly outputs: number;
  readonly deletions: number;
}

/** Conversations under way at once: a server answers one of them while it reads another. */
const SIDE_BY_SIDE = 4;
/** Bytes of one append and of one group of records: with its envelope less than the least payload that brokers have. */
const GROUP_BYTES = 32 * 1_024;

interface Content {
  readonly entries: readonly Entry[];
  readonly audit: readonly AuditRecord[];
  readonly outputs: readonly (readonly [id: string, content: string])[];
}

export async function migrateStore(source: StoreArchive, target: MigrationTarget): Promise<MigrationReport> {
  const { archive, store } = target;
  const ids = await source.conversations();
  const goesOn = await begin(source, target, ids); // MIGRATE-1
  const totals = { conversations: 0, copied: 0, entries: 0, records: 0, outputs: 0 };
  const moved = new Set<string>();
  const deletions = newestLife(await source.deletions());
  const places = placesOf(await archive.deletions());
  for (const { conversation, ...upTo } of deletions) {
    if (!isPlace(upTo, places.get(conversation))) await store.delete(conversation, upTo);
  }
  const there = new Set(goesOn ? await archive.conversations() : []);
  const known = new Set(ids);
  for (const id of there) if (!known.has(id)) await store.delete(id); // copied, and deleted in the source since
  await sideBySide(ids, async (id) => {
    const content = await contentOf(source, id);
    if (content.entries.length === 0) return; // MIGRATE-5
    moved.add(id);
    const isThere = there.has(id) && isSame(content, await contentOf(archive, id));
    if (!isThere) {
      if (goesOn) await store.delete(id); // MIGRATE-2: tool records may stand there without a log
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
  await verifyRest(archive, { ids: moved, deletions, position });
  await target.end();
  const { name: from } = source;
  return { from, to: archive.name, deletions: deletions.length, ...totals };
}

/** True: something may be there already, of an earlier run or of one that was complete. */
async function begin(
  source: StoreArchive,
  target: MigrationTarget,
  ids: readonly string[],
): Promise<boolean> {
  const { archive } = target;
  const from = await archive.migration();
  if (from !== null && from !== source.name) throw otherSource(archive.name, from, source.name);
  const isFilled = from !== null || (await holdsSame(source, archive, ids));
  await target.begin(source.name);
  if (from !== null) return true;
  try {
    if ((await holdsSame(source, archive, ids)) === isFilled) return isFilled; // MIGRATE-6
    throw notEmpty(archive.name, 'another move filled it since this one began');
  } catch (error) {
    await target.end();
    throw error;
  }
}

/** M3. False: it is empty. */
async function holdsSame(
  source: StoreArchive,
  target: StoreArchive,
  ids: readonly string[],
): Promise<boolean> {
  const there = await target.conversations();
  const [stranger] = await strangers(target, new Set(ids));
  if (stranger !== undefined)
    throw notEmpty(target.name, `conversation ${stranger} is not in ${source.name}`);
  const deletions = placesOf(newestLife(await source.deletions()));
  const deleted = (await target.deletions()).find((one) => !isPlace(one, deletions.get(one.conversation)));
  if (deleted) throw notEmpty(target.name, `it knows that conversation ${deleted.conversation} was deleted`);
  const [own, position] = [await target.ingressPosition(), await source.ingressPosition()];
  if (own !== null && !isPlace(own, position)) throw notEmpty(target.name, 'it has read posts of its own');
  await sideBySide(there, async (id) => {
    if (isSame(await contentOf(source, id), await contentOf(target, id))) return;
    throw notEmpty(target.name, `conversation ${id} is another one there`);
  });
  return there.length > 0;
}

/** M5. What an archive holds besides these. */
async function strangers(archive: StoreArchive, known: ReadonlySet<string>): Promise<string[]> {
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
    if (content !== null) outputs.push([entryId, content]); // null: a crash before it was kept, and nothing names it
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
    const appends: Promise<unknown>[] = [];
    for (const entries of groups(content.entries)) {
      const at = entries[0]?.index ?? 0;
      appends.push(log.append(at, entries));
    }
    await Promise.all(appends);
  } catch (cause) {
    throw new ParleyError('MIGRATION_FAILED', `conversation ${id} could not be copied: ${messageOf(cause)}`, {
      hint: 'see to the cause and run the same command again: it goes on where it was ended',
      cause,
    });
  } finally {
    await log.close();
  }
}

/** What is large stands alone: two records of one group must not overtake one another, nor entries exceed a message. */
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

/** The projections, and the mark by which the next start finds what is owed. */
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
    if (at !== null) throw unlike(`conversation ${id}: ${kind} differ at ${at}`);
  }
}

/** The first place, from 0, where two lists differ; null: they are the same. */
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
  const others = await strangers(archive, ids);
  const found = [...ids].filter((id) => there.has(id)).length + others.length;
  if (found !== ids.size || others.length > 0) throw unlike(`${found} conversations instead of ${ids.size}`);
  const known = placesOf(await archive.deletions());
  const missing = deletions.find((one) => !isPlace(one, known.get(one.conversation)));
  if (missing) throw unlike(`that conversation ${missing.conversation} was deleted is not known there`);
  const place = await archive.ingressPosition();
  if (position !== null && !isPlace(position, place))
    throw unlike('the position in the ingress stream differs');
}

/** Those of another life of the stream than the newest: their posts are gone with it, and stores may forget them. */
function newestLife(deletions: readonly Deletion[]): Deletion[] {
  const newest = Math.max(...deletions.map(({ stream }) => Date.parse(stream) || 0));
  return deletions.filter(({ stream }) => (Date.parse(stream) || 0) === newest);
}

function placesOf(deletions: readonly Deletion[]): ReadonlyMap<string, IngressPosition> {
  return new Map(deletions.map((one) => [one.conversation, one]));
}

function isPlace(one: IngressPosition, other: IngressPosition | null | undefined): boolean {
  return one.stream === other?.stream && one.sequence === other.sequence;
}

async function sideBySide<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const waiting = items.values(); // shared: each takes the next
  await Promise.all(
    Array.from({ length: SIDE_BY_SIDE }, async () => {
      for (const item of waiting) await work(item);
    }),
  );
}

function otherSource(to: string, from: string, own: string): ParleyError {
  return new ParleyError(
    'MIGRATION_UNFINISHED',
    `${to} holds a part of what is being moved from ${from}, not from ${own}`,
    {
      hint: 'end that move first, by the same command with its source',
    },
  );
}

function notEmpty(to: string, why: string): ParleyError {
  return new ParleyError('MIGRATION_TARGET_IN_USE', `${to} holds conversations of its own: ${why}`, {
    hint: 'nothing was changed: move into an empty directory, or under another --prefix',
  });
}

function unlike(what: string): ParleyError {
  return new ParleyError('MIGRATION_NOT_SAME', `what was read back is not what was written: ${what}`, {
    hint: 'the target stays closed to daemons: check its disk, and run the same command again',
  });
}
