import { constants, fdatasync, write } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeDirectory, orNullIfMissing, syncDirectory, UNLINKED } from '../../../kernel/index.ts';

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

/** Up to `length` bytes; fewer at the end of the file. */
async function readFrom(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await handle.read(bytes, filled, length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
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
