import { isDeepStrictEqual } from 'node:util';
import { type ConversationState, type Entry, filesIn, hasOutstandingWork } from '../../conversation/index.ts';
import { batchesOf, hasCode, messageOf, ParleyError, sha256Of } from '../../kernel/index.ts';
import type {
  AuditRecord,
  BlobFacts,
  Deletion,
  IngressPosition,
  MigrationTarget,
  StoreArchive,
} from '../../persistence/index.ts';
import { rowOf, stateOf } from '../conversations/projections.ts';

/** Copies conversations and definitions from one store into another, for a migration and for a backup. */

/** Conversations copied at once: the server answers one while it reads another. */
export const AT_ONCE = 4;
/** Bytes of one append or batch of records; with its envelope less than the smallest broker payload. */
const GROUP_BYTES = 32 * 1_024;
/** Texts of definitions that are read at once. */
const TEXTS_AT_ONCE = 100;

export interface Content {
  /** The conversation. */
  readonly id: string;
  readonly entries: readonly Entry[];
  /** Where an append of the source ended, as far as it is known: the copy has the same appends. */
  readonly ends?: readonly number[];
  readonly audit: readonly AuditRecord[];
  readonly outputs: readonly (readonly [id: string, content: string])[];
}

/** Entries first: beside a running daemon, records and outputs may be newer than the entries, never older. */
export async function contentOf(archive: StoreArchive, id: string): Promise<Content> {
  const entries = await archive.entries(id);
  const ends = await archive.appendEnds(id);
  const audit = await archive.audit(id);
  const outputs: (readonly [string, string])[] = [];
  for (const entryId of await archive.outputs(id)) {
    const content = await archive.output(id, entryId);
    if (content !== null) outputs.push([entryId, content]); // null: a crash before it was stored, and no entry names it
  }
  return { id, entries, audit, outputs, ...(ends && { ends }) };
}

/** Writes a conversation that the target does not have, and compares it with what was read. `divides`: its large appends too. */
export async function copy(
  source: StoreArchive,
  target: MigrationTarget,
  content: Content,
  { divides }: { readonly divides: boolean },
): Promise<void> {
  await copyFiles(source, target, content);
  await write(target, content, divides);
  const difference = await differenceOf(target.archive, content);
  if (difference !== null) throw differs(difference);
}

/** Before the entries that name them. What the target has is verified, and not read from the source again. */
export async function copyFiles(
  source: StoreArchive,
  { store, archive }: MigrationTarget,
  { id, entries }: Content,
): Promise<void> {
  for (const [sha256, [index]] of filesIn(entries)) {
    const damaged = () => damagedFile(`conversation ${id}, entry ${index}`, sha256, source.name);
    const facts = await source.blobs.facts(sha256);
    if (facts === null) throw damaged();
    await store.blobs.put(facts, () => contentIn(source, sha256, damaged));
    await verifyFile(archive, sha256, facts);
  }
}

export async function verifyFiles(source: StoreArchive, archive: StoreArchive, content: Content) {
  for (const sha256 of filesIn(content.entries).keys())
    await verifyFile(archive, sha256, await source.blobs.facts(sha256));
}

async function verifyFile(archive: StoreArchive, sha256: string, facts: BlobFacts | null): Promise<void> {
  const other = () => differs(`the file ${sha256}`);
  for await (const _ of contentIn(archive, sha256, other));
  if (!isDeepStrictEqual(await archive.blobs.facts(sha256), facts)) throw other();
}

/** `fault`: for content that is not there as a whole. */
async function* contentIn(
  { blobs }: StoreArchive,
  sha256: string,
  fault: () => ParleyError,
): AsyncGenerator<Uint8Array> {
  try {
    const content = await blobs.read(sha256);
    if (content === null) throw fault();
    yield* content;
  } catch (error) {
    throw hasCode(error, 'BLOB_DAMAGED') ? fault() : error;
  }
}

async function write({ store }: MigrationTarget, content: Content, divides: boolean): Promise<void> {
  const { id } = content;
  for (const [entryId, output] of content.outputs) await store.toolRecords.saveOutput(id, entryId, output);
  for (const records of batchesOf(content.audit, GROUP_BYTES)) await store.toolRecords.append(id, records);
  const { log } = await store.open(id);
  try {
    const batches = appendsOf(content).flatMap((entries) =>
      divides ? batchesOf(entries, GROUP_BYTES) : [entries],
    );
    await Promise.all(batches.map((entries) => log.append(entries[0]?.index ?? 0, entries)));
  } catch (cause) {
    throw new ParleyError('MIGRATION_FAILED', `conversation ${id} could not be copied: ${messageOf(cause)}`, {
      hint: 'fix the cause and run the same command again',
      cause,
    });
  } finally {
    await log.close();
  }
}

/** A cut of the copy loses what a cut of the source would lose: its last append. */
function appendsOf({ entries, ends = [] }: Content): Entry[][] {
  if (ends.length === 0) return batchesOf(entries, GROUP_BYTES);
  const within = ends.filter((end) => end < entries.length);
  return [...within, entries.length].map((end, at) => entries.slice(within[at - 1] ?? 0, end));
}

/** Null: the archive has exactly this. */
export async function differenceOf(archive: StoreArchive, wanted: Content): Promise<string | null> {
  const { id } = wanted;
  const found = await contentOf(archive, id);
  for (const kind of ['entries', 'audit', 'outputs'] as const) {
    const at = differsAt(wanted[kind], found[kind]);
    if (at !== null) return `conversation ${id}: ${kind} differ at ${at}`;
  }
  return null;
}

/** The first index at which two lists differ; null: they are equal. */
function differsAt(wanted: readonly unknown[], found: readonly unknown[]): number | null {
  for (let at = 0; at < Math.max(wanted.length, found.length); at++) {
    if (JSON.stringify(wanted[at]) !== JSON.stringify(found[at])) return at;
  }
  return null;
}

/** Writes the row in the list, and the mark by which the next start finds outstanding work. */
export async function list({ store }: MigrationTarget, content: Content): Promise<ConversationState> {
  const { id, entries } = content;
  const state = stateOf(entries);
  if (hasOutstandingWork(state)) await store.markOpen(id);
  await store.saveRow(rowOf(id, state, entries));
  return state;
}

/** Their number is small: each text is stored once. `onDamaged` may throw. Returns the hashes of those that were copied. */
export async function copyDefinitions(
  source: StoreArchive,
  { store }: MigrationTarget,
  onDamaged: (hash: string) => void,
): Promise<string[]> {
  const hashes = await source.definitions();
  const copied: string[] = [];
  for (let at = 0; at < hashes.length; at += TEXTS_AT_ONCE) {
    const texts = new Map<string, string>();
    for (const hash of hashes.slice(at, at + TEXTS_AT_ONCE)) {
      const text = await source.definition(hash);
      if (text === null || sha256Of(text) !== hash) onDamaged(hash);
      else texts.set(hash, text);
    }
    await store.definitions.put(texts);
    copied.push(...texts.keys());
  }
  return copied;
}

export async function verifyDefinitions(archive: StoreArchive, hashes: readonly string[]): Promise<void> {
  for (const hash of hashes) {
    const text = await archive.definition(hash);
    if (text === null || sha256Of(text) !== hash) throw differs(`the text ${hash} of a definition differs`);
  }
}

/** Deletions of the newest stream. Older streams are gone with their posts, and stores may drop their deletions. */
export function ofNewestStream(deletions: readonly Deletion[]): Deletion[] {
  const beganAt = ({ stream }: Deletion) => Date.parse(stream) || 0;
  const newest = deletions.reduce((known, one) => Math.max(known, beganAt(one)), 0);
  return deletions.filter((one) => beganAt(one) === newest);
}

export function positionsOf(deletions: readonly Deletion[]): ReadonlyMap<string, IngressPosition> {
  return new Map(deletions.map((one) => [one.conversation, one]));
}

export function isSamePosition(one: IngressPosition, other: IngressPosition | null | undefined): boolean {
  return one.stream === other?.stream && one.sequence === other.sequence;
}

function damagedFile(place: string, sha256: string, name: string): ParleyError {
  const message = `${place}: its file ${sha256} is missing or damaged in ${name}`;
  return new ParleyError('MIGRATION_SOURCE_DAMAGED', message, {
    hint: 'restore it from a backup, or upload the same file again, and repeat the command',
  });
}

export function differs(what: string): ParleyError {
  return new ParleyError('MIGRATION_NOT_SAME', `the copy differs from the source: ${what}`, {
    hint: 'the target stays closed to daemons: check its disk, and run the same command again',
  });
}
