import { constants, fdatasync, write } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  errnoOf,
  makeDirectory,
  orNullIfMissing,
  ParleyError,
  readFrom,
  syncDirectory,
  UNLINKED,
} from '../../../kernel/index.ts';

/**
 * File operations that survive a power cut: a name is durable only after its directory is synced. Files and directories are
 * for their owner only.
 */

/** Refuses a data directory that is a file, or below one. A missing directory is accepted. */
export async function refuseFile(root: string, code = 'USAGE_NO_DATA'): Promise<void> {
  const isFile = await orNullIfMissing(stat(root)).then(
    (found) => found !== null && !found.isDirectory(),
    (error: unknown) => errnoOf(error) === 'ENOTDIR',
  );
  if (isFile) {
    throw new ParleyError(code, `${root} is not a directory`, {
      hint: 'name the data directory of a daemon with --data DIR',
    });
  }
}

/** Durably writes a new file named `name`, with a number appended if that exists. Returns its path. */
export async function writeNewFile(
  directory: string,
  name: string,
  content: Buffer | string,
): Promise<string> {
  for (let attempt = 0; ; attempt += 1) {
    const path = join(directory, attempt === 0 ? name : `${name}-${attempt}`);
    const handle = await createExclusively(path);
    if (handle === null) continue;
    try {
      await handle.writeFile(content);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await syncDirectory(directory);
    return path;
  }
}

async function createExclusively(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, 'wx', 0o600);
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return null;
    throw error;
  }
}

/** A moment as part of a file name: `20261121T203900123Z`. */
export function fileTimestamp(moment: Date = new Date()): string {
  return moment.toISOString().replaceAll(/[-:.]/g, '');
}

/** The file operations of a log; a test can make each of them fail. */
export interface LogFile {
  /** Writes at `position`. Returns the number of bytes written, which may be fewer than given. */
  write(bytes: Uint8Array, position: number): Promise<number>;
  /** Resolves when all written bytes are on the disk (fdatasync). */
  sync(): Promise<void>;
  truncate(length: number): Promise<void>;
  read(position: number, length: number): Promise<Buffer>;
  readAll(): Promise<Buffer>;
  close(): Promise<void>;
}

export interface LogFiles {
  /** Opens a log to read and write; null: not found. */
  open(path: string): Promise<LogFile | null>;
  /** Opens a log, and creates it and its directory if missing; their names are durable before this resolves. */
  create(path: string): Promise<LogFile>;
}

export const nodeLogFiles: LogFiles = {
  async open(path) {
    const handle = await orNullIfMissing(open(path, UNLINKED));
    if (handle === null) return null;
    if ((await handle.stat()).isFile()) return logFileOn(handle);
    await handle.close();
    throw new Error('it is no plain file');
  },
  async create(path) {
    const directory = dirname(path);
    await makeDirectory(directory);
    // Never truncates: a file made by a daemon that died before its first write is taken over.
    const handle = await open(path, UNLINKED | constants.O_CREAT, 0o600);
    try {
      await syncDirectory(directory);
      await syncDirectory(dirname(directory));
    } catch (error) {
      await handle.close();
      throw error;
    }
    return logFileOn(handle);
  },
};

/**
 * Writes and syncs by callbacks: the promises of a handle take a third of the processor time of an append. `handle.fd` is -1
 * as soon as the handle is being closed, and the writer of a log closes it after its last sync: no other file is written to.
 */
function logFileOn(handle: FileHandle): LogFile {
  return {
    write: (bytes, position) =>
      new Promise((resolve, reject) => {
        const done = (error: Error | null, written: number) => (error ? reject(error) : resolve(written));
        write(handle.fd, bytes, 0, bytes.byteLength, position, done);
      }),
    sync: () =>
      new Promise((resolve, reject) => {
        fdatasync(handle.fd, (error) => (error ? reject(error) : resolve()));
      }),
    truncate: (length) => handle.truncate(length),
    read: (position, length) => readFrom(handle, position, length),
    // One read: `readFile` reads in chunks and copies them together.
    readAll: async () => readFrom(handle, 0, (await handle.stat()).size),
    close: () => handle.close(),
  };
}

/** What the file store reports to the operator, besides errors. */
export type StoreEvent =
  | {
      readonly type: 'torn-tail-cut';
      readonly conversation: string;
      readonly bytes: number;
      readonly keptIn: string;
    }
  | {
      readonly type: 'log-quarantined';
      readonly conversation: string;
      readonly line: number;
      readonly reason: string;
      /** The note left beside the log; null when even that could not be written. */
      readonly note: string | null;
    }
  /** A projection could not be read; it starts empty and the old file is kept. */
  | {
      readonly type: 'projection-set-aside';
      readonly file: string;
      readonly keptIn: string;
      readonly reason: string;
    }
  /** A projection could not be saved; the save is retried. */
  | { readonly type: 'projection-not-saved'; readonly file: string; readonly reason: string };

export type StoreLog = (event: StoreEvent) => void;
