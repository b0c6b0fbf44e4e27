import { randomUUID } from 'node:crypto';
import type { Entry } from '../../conversation/index.ts';
import type { ConversationLog, ConversationStore } from '../port.ts';
import { directoryInUse, logClosed, readRange, serialiseBatch } from '../rules.ts';
import { type BlobContents, bytesFrom, type Documents, type Storage } from '../storage.ts';
import { Store } from '../store.ts';

/**
 * The store in memory: for tests and for programs that keep nothing. It passes the contract suite of the other stores, and
 * touches no file. It lives as long as its `MemoryDisk`. Entries are kept as JSON, so that reads return copies without what
 * JSON loses.
 */
export interface MemoryDisk {
  readonly id: string;
  readonly logs: Map<string, string[]>;
  readonly audits: Map<string, string[]>;
  /** By key. */
  readonly documents: Map<string, unknown>;
  /** By SHA-256. */
  readonly blobs: Map<string, { readonly pieces: readonly Uint8Array[]; readonly storedAt: string }>;
  /** True while a store uses it. */
  inUse: boolean;
}

export function createMemoryDisk(): MemoryDisk {
  return {
    id: randomUUID(),
    logs: new Map(),
    audits: new Map(),
    documents: new Map(),
    blobs: new Map(),
    inUse: false,
  };
}

/** Pass the same disk again to open what an earlier, closed store left. */
export function createMemoryStore(disk: MemoryDisk = createMemoryDisk()): ConversationStore {
  if (disk.inUse) throw directoryInUse('(memory)', { pid: process.pid });
  disk.inUse = true;
  return new Store(storageOn(disk));
}

function storageOn(disk: MemoryDisk): Storage {
  const { id, logs, audits } = disk;
  const documents = documentsOn(disk.documents);
  return {
    id,
    documents,
    isFeed: false,
    shared: null,
    blobs: contentsOn(disk.blobs),
    async openLog(conversation, onClosed) {
      const log = openLog(conversation, logs, onClosed);
      return { log, entries: await log.read(0), tornTail: null };
    },
    hasLog: async (conversation) => logs.has(conversation),
    conversations: async () => [...logs.keys()],
    audit: {
      async append(conversation, records) {
        const texts = records.map((record) => JSON.stringify(record));
        audits.set(conversation, [...(audits.get(conversation) ?? []), ...texts]);
      },
      read: async (conversation) => audits.get(conversation) ?? [],
    },
    async remove(conversation) {
      const records = audits.get(conversation)?.length ?? 0;
      const outputs = (await documents.keys(`output.${conversation}.`)).length;
      logs.delete(conversation);
      audits.delete(conversation);
      for (const kind of ['row', 'state', 'open']) disk.documents.delete(`${kind}.${conversation}`);
      await documents.removeAll(`output.${conversation}.`);
      return { records, outputs };
    },
    async close() {
      disk.inUse = false;
    },
  };
}

function documentsOn(stored: Map<string, unknown>): Documents {
  const get = (key: string) => stored.get(key) ?? null;
  const put = (key: string, value: unknown) => void stored.set(key, JSON.parse(JSON.stringify(value)));
  const rests = (start: string) =>
    [...stored.keys()].flatMap((key) => (key.startsWith(start) ? [key.slice(start.length)] : [])).sort();
  return {
    get: async (key) => get(key),
    put: async (key, value) => put(key, value),
    async change(key, next) {
      const value = next(get(key));
      if (value !== null) put(key, value);
    },
    async remove(key) {
      stored.delete(key);
    },
    async removeIf(key, when) {
      if (stored.has(key) && when(get(key))) stored.delete(key);
    },
    async removeAll(start) {
      for (const rest of rests(start)) stored.delete(start + rest);
    },
    keys: async (start) => rests(start),
    entries: async (start) => new Map(rests(start).map((rest) => [rest, get(start + rest)])),
    flush: async () => undefined,
  };
}

function contentsOn(stored: MemoryDisk['blobs']): BlobContents {
  return {
    async put(sha256, content) {
      const pieces: Uint8Array[] = [];
      for await (const piece of content) pieces.push(Uint8Array.from(piece));
      stored.set(sha256, { pieces, storedAt: new Date().toISOString() });
      return sha256;
    },
    async read(name, from = 0) {
      const found = stored.get(name);
      return found === undefined ? null : bytesFrom(piecesOf(found.pieces), from);
    },
    async remove(name) {
      stored.delete(name);
    },
    list: async () => [...stored.keys()],
    storedAt: async (name) => stored.get(name)?.storedAt ?? null,
  };
}

async function* piecesOf(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield Uint8Array.from(piece);
}

function openLog(conversation: string, logs: Map<string, string[]>, onClosed: () => void): ConversationLog {
  let isClosed = false;
  const lines = () => {
    if (isClosed) throw logClosed(conversation);
    return logs.get(conversation) ?? [];
  };
  return {
    conversation,
    get length() {
      return logs.get(conversation)?.length ?? 0;
    },
    async append(expectedLength, entries) {
      const json = serialiseBatch(conversation, expectedLength, entries);
      const known = lines();
      if (expectedLength !== known.length) return { kind: 'conflict', length: known.length };
      for (const line of json) known.push(line);
      if (json.length > 0) logs.set(conversation, known);
      return { kind: 'appended', length: known.length };
    },
    async read(from, to) {
      const known = lines();
      const range = readRange(from, to, known.length);
      return known.slice(range.from, range.to).map((json) => JSON.parse(json) as Entry);
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      onClosed();
    },
  };
}
