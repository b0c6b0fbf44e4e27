import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach } from 'vitest';
import type { Entry } from '../../../src/conversation/index.ts';
import type { ConversationStore } from '../../../src/persistence/index.ts';
import { openFileStore, type StoreEvent } from '../../../src/persistence/jsonl/index.ts';
import { type LogFile, type LogFiles, nodeLogFiles } from '../../../src/persistence/jsonl/log/durable.ts';
import { encodeBatch, joinLines, sealLines } from '../../../src/persistence/jsonl/log/line.ts';
import { folderPerTest } from '../../support/lifetime.ts';

export { batch, entry, row } from '../../contract/samples.ts';

export async function withDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'parley-persistence-'));
  try {
    await work(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** The bytes of a log of these batches. */
export function logBytes(batches: readonly (readonly Entry[])[]): Buffer {
  const lines = batches.flatMap((entries) =>
    encodeBatch(
      entries,
      entries.map((each) => JSON.stringify(each)),
    ),
  );
  const bytes = joinLines(lines);
  sealLines(bytes);
  return bytes;
}

export function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: made by the test`), { code });
}

/** Faults of the next operations: each call takes the first of its list; with an empty list it works. */
export interface Faults {
  /** A number limits the bytes that are written. An error is thrown, after writing `partial` bytes if given. */
  readonly write: (number | Error | { readonly error: Error; readonly partial: number })[];
  readonly sync: (Error | null)[];
  readonly truncate: (Error | null)[];
  readonly create: (Error | null)[];
  /** Numbers of calls. */
  readonly done: { writes: number; syncs: number; truncates: number };
  /** Awaited before every sync, to delay a group. */
  beforeSync: () => Promise<void>;
}

/** The real file operations, with injected faults. */
export function faultyFiles(): { files: LogFiles; faults: Faults } {
  const faults: Faults = {
    write: [],
    sync: [],
    truncate: [],
    create: [],
    done: { writes: 0, syncs: 0, truncates: 0 },
    beforeSync: async () => undefined,
  };
  const files: LogFiles = {
    async open(path) {
      const file = await nodeLogFiles.open(path);
      return file === null ? null : faultyFile(file, faults);
    },
    async create(path) {
      const fault = faults.create.shift();
      if (fault) throw fault;
      return faultyFile(await nodeLogFiles.create(path), faults);
    },
  };
  return { files, faults };
}

function faultyFile(file: LogFile, faults: Faults): LogFile {
  return {
    ...file,
    async write(bytes, position) {
      faults.done.writes += 1;
      const fault = faults.write.shift();
      if (fault === undefined) return file.write(bytes, position);
      if (fault instanceof Error) throw fault;
      if (typeof fault === 'number') return file.write(bytes.subarray(0, fault), position);
      await file.write(bytes.subarray(0, fault.partial), position);
      throw fault.error;
    },
    async sync() {
      faults.done.syncs += 1;
      await faults.beforeSync();
      const fault = faults.sync.shift();
      if (fault) throw fault;
      await file.sync();
    },
    async truncate(length) {
      faults.done.truncates += 1;
      const fault = faults.truncate.shift();
      if (fault) throw fault;
      await file.truncate(length);
    },
  };
}

export interface StoreFolder {
  readonly directory: string;
  readonly events: StoreEvent[];
  path(...names: string[]): string;
  /** Opens a store, lets `work` use it, and closes it. */
  session<T>(work: (store: ConversationStore) => Promise<T>): Promise<T>;
  /** Writes a log file as a daemon could have left it. */
  leave(conversation: string, bytes: Buffer): Promise<string>;
}

/** The directory of a store, new for each test. */
export function storeFolderPerTest(): StoreFolder {
  const directory = folderPerTest();
  const events: StoreEvent[] = [];
  const path = (...names: string[]) => join(directory, ...names);
  beforeEach(() => void events.splice(0));
  return {
    directory,
    events,
    path,
    async session(use) {
      const store = await openFileStore(directory, { log: (event) => events.push(event) });
      try {
        return await use(store);
      } finally {
        await store.close();
      }
    },
    async leave(conversation, bytes) {
      await mkdir(path('conversations', conversation), { recursive: true });
      await writeFile(path('conversations', conversation, 'log.jsonl'), bytes);
      return path('conversations', conversation, 'log.jsonl');
    },
  };
}
