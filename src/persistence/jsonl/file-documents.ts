import { constants } from 'node:fs';
import { open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Adapter, Low } from 'lowdb';
import { z } from 'zod';
import { NAME_PATTERN } from '../../conversation/index.ts';
import {
  errnoOf,
  fieldFault,
  fullDiskError,
  InOrder,
  makeDirectory,
  messageOf,
  orNullIfMissing,
  ParleyError,
  readOwnText,
  replaceFile,
  syncDirectory,
  UNLINKED,
} from '../../kernel/index.ts';
import { refuseUnfinishedMigration } from '../archive.ts';
import type { AuditRecord, ConversationRow } from '../port.ts';
import { TEXT_HASH } from '../rules.ts';
import { type AuditLog, coalesce, type Documents, type Durability } from '../storage.ts';
import { folderOf, idOf, type StorePaths, storePaths } from './directory/layout.ts';
import { fileTimestamp, refuseFile, type StoreLog } from './log/durable.ts';

/**
 * Documents in a data directory. The kinds of `COLLECTIONS` share a file each, in memory while the directory is owned; every
 * other document is a file.
 *
 * FILE-DOCUMENTS-1 A file is replaced as a whole, under a temporary name. `durable`: it and its folder are synced; also the
 *                  folder of a text that is stored already, since an earlier process may have ended before its sync.
 * FILE-DOCUMENTS-2 A link is not followed, and only its owner can read a file.
 * FILE-DOCUMENTS-3 Without a folder of its conversation there is no state to save: nothing was appended, or it was deleted.
 */
export class FileDocuments implements Documents {
  readonly #paths: StorePaths;
  /** Null: the directory is not owned, and a collection is read from its file each time. */
  readonly #collections: ReadonlyMap<CollectionKind, Collection> | null;
  readonly #order = new InOrder();
  /** By folder: concurrent changes share a sync. */
  readonly #syncs = new Map<string, () => Promise<void>>();

  static async own(paths: StorePaths, log: StoreLog): Promise<FileDocuments> {
    const kinds = Object.keys(COLLECTIONS) as CollectionKind[];
    const opened = kinds.map(async (kind) => [kind, await openCollection(kind, paths, log)] as const);
    return new FileDocuments(paths, new Map(await Promise.all(opened)));
  }

  constructor(paths: StorePaths, collections: ReadonlyMap<CollectionKind, Collection> | null = null) {
    this.#paths = paths;
    this.#collections = collections;
  }

  async get(key: string): Promise<unknown> {
    const kind = collectionKindOf(key);
    if (kind !== null) return (await this.#members(kind)).get(memberOf(key)) ?? null;
    return readPlace(placeOf(this.#paths, key));
  }

  put(key: string, value: unknown, durability: Durability): Promise<void> {
    return this.#work(key, async () => {
      const kind = collectionKindOf(key);
      if (kind !== null) return this.#owned(kind).put(memberOf(key), value, durability);
      await this.#write(placeOf(this.#paths, key), value, durability);
    });
  }

  change(key: string, next: (known: unknown) => unknown): Promise<void> {
    return this.#work(key, async () => {
      const kind = collectionKindOf(key);
      if (kind !== null) {
        const owned = this.#owned(kind);
        const value = next(owned.members.get(memberOf(key)) ?? null);
        return value === null ? owned.flush() : owned.put(memberOf(key), value, 'durable'); // a save may have failed
      }
      const place = placeOf(this.#paths, key);
      const reading = readPlace(place);
      const known = await (place.form === 'text' ? reading.catch(() => null) : reading); // a damaged text is replaced
      const value = next(known);
      if (value !== null) await this.#write(place, value, 'durable');
      else if (known !== null) await this.#sync(dirname(place.path));
    });
  }

  async #write({ path, form, mayCreate }: Place, value: unknown, durability: Durability): Promise<void> {
    const folder = dirname(path);
    if (mayCreate) await makeDirectory(folder);
    if (form === 'flag') {
      await (await open(path, 'w', 0o600)).close();
      return this.#sync(folder);
    }
    const content =
      form === 'text' ? String(value) : `${JSON.stringify(value, null, form === 'pretty' ? 2 : 0)}\n`;
    await replaceFile(path, content, { durable: durability === 'durable' }).catch((error: unknown) => {
      if (mayCreate || errnoOf(error) !== 'ENOENT') throw error;
    });
  }

  remove(key: string, durability: Durability = 'durable'): Promise<void> {
    return this.#work(key, async () => {
      const kind = collectionKindOf(key);
      if (kind !== null) return this.#owned(kind).remove(memberOf(key), durability);
      const { path } = placeOf(this.#paths, key);
      await rm(path, { force: true });
      if (durability === 'durable') await this.#sync(dirname(path));
    });
  }

  removeIf(key: string, when: (known: unknown) => boolean): Promise<void> {
    return this.#work(key, async () => {
      const place = placeOf(this.#paths, key);
      const known = await readPlace(place);
      if (known === null || !when(known)) return;
      await rm(place.path);
      await this.#sync(dirname(place.path));
    });
  }

  removeAll(start: string): Promise<void> {
    return this.#work(start, async () => {
      const folder = dirname(placeOf(this.#paths, `${start}any`).path);
      await rm(folder, { recursive: true, force: true });
      await orNullIfMissing(this.#sync(dirname(folder)));
    });
  }

  async keys(start: string): Promise<string[]> {
    const kind = collectionKindOf(start);
    if (kind !== null) return [...(await this.#members(kind)).keys()].sort();
    const { path, form, decode } = placeOf(this.#paths, `${start}any`);
    const names = namesIn(dirname(path), decode);
    return form === 'flag' ? names.catch((cause) => unreadableMarks(path, cause)) : names;
  }

  async entries(start: string): Promise<ReadonlyMap<string, unknown>> {
    const kind = collectionKindOf(start);
    if (kind !== null) return new Map(await this.#members(kind));
    const found = new Map<string, unknown>();
    for (const name of await this.keys(start)) found.set(name, await this.get(start + name));
    return found;
  }

  async flush(kind: CollectionKind): Promise<void> {
    await this.#owned(kind).flush();
  }

  /** Saves what is pending. A failure is reported, not thrown. */
  async close(): Promise<void> {
    await this.#order.idle();
    for (const collection of this.#collections?.values() ?? []) await collection.close();
  }

  /** Changes of the documents with the same first name are made one after the other (DOCUMENTS-2). */
  async #work(key: string, change: () => Promise<void>): Promise<void> {
    try {
      await this.#order.run(key.split('.', 2).join('.'), change);
    } catch (error) {
      throw fullDiskError(error, 'STORE_FULL', `the disk of ${this.#paths.root}`);
    }
  }

  #owned(kind: CollectionKind): Collection {
    const found = this.#collections?.get(kind);
    if (found) return found;
    throw new Error(`the directory is not owned: ${kind} cannot be changed`);
  }

  async #members(kind: CollectionKind): Promise<ReadonlyMap<string, unknown>> {
    const opened = this.#collections?.get(kind);
    if (opened) return opened.members;
    const path = COLLECTIONS[kind].path(this.#paths);
    const text = await orNullIfMissing(readFile(path, 'utf8'));
    if (text === null) return new Map();
    try {
      return membersOf(kind, JSON.parse(text));
    } catch (cause) {
      throw new ParleyError('MIGRATION_SOURCE_DAMAGED', `${path} cannot be read: ${messageOf(cause)}`, {
        hint: 'start a daemon on that directory once: it replaces the file and keeps the old one; then stop it and try again',
        cause,
      });
    }
  }

  #sync(folder: string): Promise<void> {
    const sync = this.#syncs.get(folder) ?? coalesce(() => syncDirectory(folder));
    this.#syncs.set(folder, sync);
    return sync();
  }
}

export async function refuseUnfinished(directory: string): Promise<void> {
  await refuseFile(directory);
  await refuseUnfinishedMigration(directory, new FileDocuments(storePaths(directory)));
}

/** A member of a collection that is one document has the name ''. */
function memberOf(key: string): string {
  return key.split('.')[1] ?? '';
}

async function openCollection(kind: CollectionKind, paths: StorePaths, log: StoreLog) {
  const parse = (value: unknown) => contentOf(kind, membersOf(kind, value));
  const path = COLLECTIONS[kind].path(paths);
  const document = await openLazyDocument<unknown>({ path, empty: null, parse, log });
  const members = document.data === null ? new Map<string, unknown>() : membersOf(kind, document.data);
  const changed = async (durability: Durability) => {
    document.change(() => contentOf(kind, members));
    if (durability === 'durable') await document.flush();
  };
  return {
    members,
    flush: document.flush,
    close: document.close,
    put(name: string, value: unknown, durability: Durability): Promise<void> {
      members.set(name, value);
      return changed(durability);
    },
    async remove(name: string, durability: Durability): Promise<void> {
      if (members.delete(name)) await changed(durability);
    },
  };
}
type Collection = Awaited<ReturnType<typeof openCollection>>;

/** A document that is a file. */
interface Place {
  readonly path: string;
  /** `flag`: an empty file. `mark`: JSON that may be damaged, and is its text then. */
  readonly form: 'text' | 'flag' | 'mark' | 'pretty';
  /** Null: not the name of a document of this kind. */
  readonly decode: (file: string) => string | null;
  readonly unreadable?: { readonly code: string; readonly hint: string };
  /** Whether its folder is made. */
  readonly mayCreate: boolean;
}

const RESTORE = 'restore the file from a backup, with the owner and the permissions of the data directory';
const LET_READ = 'let this user read the file; without it the directory counts as a store that is no backup';
const withoutJson = (file: string) => (file.endsWith('.json') ? basename(file, '.json') : null);
const folderWithoutJson = (file: string) => idOf(withoutJson(file) ?? '');
const none = () => null;

function ofBlobs(path: string, decode: Place['decode']): Place {
  const unreadable = { code: 'BLOB_RECORD_UNREADABLE', hint: RESTORE };
  return { path, form: 'pretty', decode, unreadable, mayCreate: true };
}

function placeOf(paths: StorePaths, key: string): Place {
  const [kind, name = '', id = ''] = key.split('.');
  switch (kind) {
    case 'state':
      return { path: paths.state(name), form: 'pretty', decode: none, mayCreate: false };
    case 'output': {
      const unreadable = { code: 'OUTPUT_UNREADABLE', hint: RESTORE };
      return { path: paths.output(name, id), form: 'text', decode: withoutJson, unreadable, mayCreate: true };
    }
    case 'definition': {
      const decode = (file: string) => (TEXT_HASH.test(file) ? file : null);
      const unreadable = { code: 'DEFINITION_UNREADABLE', hint: RESTORE };
      return { path: join(paths.definitions, name), form: 'text', decode, unreadable, mayCreate: true };
    }
    case 'blob':
      return ofBlobs(join(paths.blobRecords, `${name}.json`), withoutJson);
    case 'deleting':
      return ofBlobs(join(paths.deleting, `${folderOf(name)}.json`), folderWithoutJson);
    case 'person':
      return {
        path: join(paths.people, `${name}.json`),
        form: 'mark',
        decode: withoutJson,
        mayCreate: true,
      };
    case 'open':
      return { path: join(paths.marks, folderOf(name)), form: 'flag', decode: idOf, mayCreate: true };
    case 'marks':
      return { path: join(paths.marks, '.complete'), form: 'flag', decode: none, mayCreate: true };
    case 'backup': {
      const unreadable = { code: 'BACKUP_UNREADABLE', hint: LET_READ };
      return { path: paths.backup, form: 'mark', decode: none, unreadable, mayCreate: true };
    }
    case 'migration':
      return { path: paths.migration, form: 'mark', decode: none, mayCreate: true };
    default:
      throw new Error(`${key} is no document`);
  }
}

async function readPlace({ path, form, unreadable }: Place): Promise<unknown> {
  if (form === 'flag') {
    const found = await orNullIfMissing(stat(path)).catch((cause) => unreadableMarks(path, cause));
    return found && true;
  }
  const reading = unreadable ? readOwnText(path, unreadable) : orNullIfMissing(readFile(path, 'utf8'));
  const text = await reading;
  if (text === null || form === 'text') return text;
  try {
    return JSON.parse(text);
  } catch (error) {
    if (form === 'mark') return text;
    if (unreadable)
      throw new ParleyError(unreadable.code, `${path} is damaged: ${messageOf(error)}`, unreadable);
    throw error;
  }
}

function unreadableMarks(path: string, cause: unknown): never {
  throw new ParleyError('MARKS_UNREADABLE', `${dirname(path)} cannot be read: ${messageOf(cause)}`, {
    hint: 'It only contains marks, and may be removed: then the next start reads every log.',
    cause,
  });
}

async function namesIn(folder: string, decode: (file: string) => string | null): Promise<string[]> {
  const files = (await orNullIfMissing(readdir(folder))) ?? [];
  return files.flatMap((file) => decode(file) ?? []).sort();
}

/** `audit.jsonl` of each conversation: one record is one line. One append at a time for each file, so that lines never mix. */
export function createAuditFiles(paths: StorePaths): AuditLog {
  const order = new InOrder();
  return {
    append: (conversation, records) =>
      order.run(conversation, () => appendLines(paths.audit(conversation), records)),
    read: (conversation) => readAuditLines(paths.audit(conversation)),
  };
}

/** The last line has no line break: it is empty, incomplete or being written. */
export async function readAuditLines(path: string): Promise<string[]> {
  return ((await orNullIfMissing(readFile(path, 'utf8'))) ?? '').split('\n');
}

async function appendLines(path: string, records: readonly AuditRecord[]): Promise<void> {
  try {
    const isNew = (await orNullIfMissing(open(path, 'r').then((handle) => handle.close()))) === null;
    if (isNew) await makeDirectory(dirname(path));
    const file = await open(path, UNLINKED | constants.O_CREAT | constants.O_APPEND, 0o600);
    try {
      // After an incomplete line, the next record needs a line break first.
      const { size } = await file.stat();
      const { buffer } = await file.read(Buffer.from('\n'), 0, size === 0 ? 0 : 1, Math.max(0, size - 1));
      const before = buffer.toString() === '\n' ? '' : '\n';
      await file.writeFile(`${before}${records.map((record) => JSON.stringify(record)).join('\n')}\n`);
      await file.datasync();
    } finally {
      await file.close();
    }
    if (isNew) await syncDirectory(dirname(path));
  } catch (error) {
    throw new ParleyError('AUDIT_WRITE_FAILED', `cannot write ${path}: ${messageOf(error)}`, {
      hint: 'Free space on its disk.',
      cause: error,
    });
  }
}

/** The kinds of documents that share a file. With a value of another form the file is set aside (LAZY-DOCUMENT-2). */
interface CollectionFile {
  readonly path: (paths: StorePaths) => string;
  /** The field with the list of all members, each with its name as `id`; null: the file is the only member. */
  readonly list: string | null;
  readonly form: z.ZodType;
}

const text = z.string();
const texts = z.array(text);
const amount = z.number().nonnegative();
const count = z.int().nonnegative();
const name = text.regex(NAME_PATTERN);

const row = z.object({
  id: name,
  title: text.nullable(),
  newest: text.nullable(),
  phase: text,
  mode: text,
  activeAgent: text.nullable(),
  length: count,
  updatedAt: text,
  activeAt: text,
  activeLength: count,
  tokens: amount,
  usd: amount,
  unpricedCalls: count,
  spent: z.array(
    z.object({ day: text, agent: text, calls: count, tokens: amount, usd: amount, unpricedCalls: count }),
  ),
  waiting: texts,
  limited: texts,
  stopped: texts,
  allStopped: z.literal(true).optional(),
  archived: z.boolean(),
  agents: texts,
  people: texts,
  activity: z.array(
    z.object({
      agent: text,
      status: text,
      since: text.nullable(),
      for: text.optional(),
      of: text.optional(),
      entry: count.optional(),
      position: count.optional(),
    }),
  ),
} satisfies Readonly<Record<keyof ConversationRow, z.ZodType>>);

const POSITION = { stream: text, sequence: count };

const COLLECTIONS = {
  row: { path: ({ rows }) => rows, list: 'rows', form: row },
  deleted: { path: ({ deleted }) => deleted, list: 'deleted', form: z.object({ id: name, ...POSITION }) },
  ingress: { path: ({ ingress }) => ingress, list: null, form: z.object(POSITION) },
} satisfies Readonly<Record<string, CollectionFile>>;

type CollectionKind = keyof typeof COLLECTIONS;

function collectionKindOf(key: string): CollectionKind | null {
  const [kind = ''] = key.split('.');
  return Object.hasOwn(COLLECTIONS, kind) ? (kind as CollectionKind) : null;
}

export function membersOf(kind: CollectionKind, value: unknown): Map<string, unknown> {
  const { list, form }: CollectionFile = COLLECTIONS[kind];
  if (list === null) {
    check(form, value);
    return new Map([['', value]]);
  }
  const found: unknown = Reflect.get(Object(value), list);
  if (!Array.isArray(found)) throw new Error(`it contains no list of ${list}`);
  return new Map(
    found.map((member: { readonly id: string }) => {
      check(form, member);
      const { id, ...rest } = member;
      return [id, kind === 'row' ? member : rest];
    }),
  );
}

function check(form: z.ZodType, value: unknown): void {
  const [issue] = form.safeParse(value).error?.issues ?? [];
  if (issue) throw new Error(fieldFault(issue, value));
}

function contentOf(kind: CollectionKind, members: ReadonlyMap<string, unknown>): unknown {
  const { list }: CollectionFile = COLLECTIONS[kind];
  if (list === null) return members.get('');
  const sorted = [...members].sort(([one], [other]) => (one < other ? -1 : 1));
  return { [list]: sorted.map(([id, member]) => ({ id, ...Object(member) })) };
}

const SAVE_DELAY_MS = 500;
const REPORT_AGAIN_MS = 60_000;

/**
 * A document that is saved later, kept with lowdb.
 *
 * LAZY-DOCUMENT-1 A document is replaced as a whole, under a temporary name, and synced; lowdb's own writer does not sync.
 * LAZY-DOCUMENT-2 A missing document is empty. A damaged one is set aside and starts empty; it is never fatal.
 * LAZY-DOCUMENT-3 Saves are lazy: a change is on the disk after `SAVE_DELAY_MS`, or earlier after `flush`.
 * LAZY-DOCUMENT-4 A failed save keeps the change and is retried. It is reported once, and then each minute while saves fail.
 */
interface LazyDocument<T> {
  /** The last state that was loaded or saved. */
  readonly data: T;
  /** The next save writes what `data` returns then. */
  change(data: () => T): void;
  /** Resolves when every change so far is durable; calls share a save. */
  flush(): Promise<void>;
  /** Saves pending changes. A failure is reported, not thrown: the document can be rebuilt. */
  close(): Promise<void>;
}

export async function openLazyDocument<T>(options: {
  readonly path: string;
  readonly empty: T;
  /** Throws on a document of another form. */
  readonly parse: (value: unknown) => T;
  readonly log: StoreLog;
}): Promise<LazyDocument<T>> {
  const { path, parse, log } = options;
  const file: Adapter<T> = {
    async read() {
      try {
        const text = await orNullIfMissing(readFile(path, 'utf8'));
        return text === null ? null : parse(JSON.parse(text));
      } catch (error) {
        const keptIn = `${path}.bad-${fileTimestamp()}`;
        await rename(path, keptIn);
        log({ type: 'projection-set-aside', file: path, keptIn, reason: messageOf(error) });
        return null;
      }
    },
    // Encoded before anything is awaited, so that it contains no later change.
    write: (data) => replaceFile(path, `${JSON.stringify(data)}\n`),
  };
  const low = new Low<T>(file, options.empty);
  await low.read();
  let changed: (() => T) | null = null;
  let timer: NodeJS.Timeout | null = null;
  let closed = false;
  let reportedAt = Number.NEGATIVE_INFINITY;

  const save = coalesce(async () => {
    const latest = changed;
    if (latest === null) return;
    changed = null;
    if (timer !== null) clearTimeout(timer);
    timer = null;
    try {
      low.data = latest();
      await low.write();
      reportedAt = Number.NEGATIVE_INFINITY;
    } catch (error) {
      changed ??= latest;
      schedule();
      throw error;
    }
  });

  async function saveOrReport(): Promise<void> {
    await save().catch((error: unknown) => {
      if (performance.now() - reportedAt < REPORT_AGAIN_MS) return;
      reportedAt = performance.now();
      log({ type: 'projection-not-saved', file: path, reason: messageOf(error) });
    });
  }

  /** The delay begins with the first change, so that continuous changes cannot postpone the save forever. */
  function schedule(): void {
    if (timer !== null || closed) return;
    timer = setTimeout(() => {
      timer = null;
      void saveOrReport();
    }, SAVE_DELAY_MS);
    timer.unref();
  }

  return {
    get data() {
      return low.data;
    },
    change(data) {
      changed = data;
      schedule();
    },
    flush: save,
    async close() {
      closed = true;
      await saveOrReport();
      if (timer !== null) clearTimeout(timer);
      timer = null;
    },
  };
}
