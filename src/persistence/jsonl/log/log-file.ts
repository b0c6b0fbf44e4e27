import { constants, existsSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { UNLINKED } from '../../../kernel/index.ts';
import { makeDirectory, orNullIfMissing, syncDirectory } from './durable.ts';

/** The file operations that a log needs, few enough that a test can make each of them fail. */
export interface LogFile {
  /** Writes at `position`; answers how many bytes were taken, which may be fewer than given. */
  write(bytes: Uint8Array, position: number): Promise<number>;
  /** Resolves when all that was written is on the disk (fdatasync). */
  sync(): Promise<void>;
  truncate(length: number): Promise<void>;
  read(position: number, length: number): Promise<Buffer>;
  readAll(): Promise<Buffer>;
  close(): Promise<void>;
}

export interface LogFiles {
  /** Opens a log to read and write; null when there is none. */
  open(path: string): Promise<LogFile | null>;
  /** Opens a log, making it and its directory when missing; their names are durable before this resolves. */
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

function logFileOn(handle: FileHandle): LogFile {
  return {
    async write(bytes, position) {
      return (await handle.write(bytes, 0, bytes.byteLength, position)).bytesWritten;
    },
    sync: () => handle.datasync(),
    truncate: (length) => handle.truncate(length),
    read: (position, length) => readFrom(handle, position, length),
    // In one piece: `readFile` asks for it in many, and copies them together.
    readAll: async () => readFrom(handle, 0, (await handle.stat()).size),
    close: () => handle.close(),
  };
}

/** So many bytes, or as many as there are. */
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

/**
 * A disk without room, played: for tests where no small one may be mounted. While the file named by `flag` is there,
 * no log can be made and none grows, as the system would say it (ENOSPC). A write that meets the end of the disk leaves
 * its first half there, as real ones do.
 */
export function onFullDisk(files: LogFiles, flag: string): LogFiles {
  const isFull = () => existsSync(flag);
  const play = (file: LogFile): LogFile => {
    let metTheEnd = false;
    return {
      ...file,
      async write(bytes, position) {
        if (!isFull()) {
          metTheEnd = false;
          return file.write(bytes, position);
        }
        if (metTheEnd || bytes.length < 2) throw noSpace('write');
        metTheEnd = true;
        return file.write(bytes.subarray(0, bytes.length >> 1), position);
      },
    };
  };
  return {
    async open(path) {
      const file = await files.open(path);
      return file && play(file);
    },
    async create(path) {
      if (isFull()) throw noSpace('mkdir');
      return play(await files.create(path));
    },
  };
}

function noSpace(syscall: string): Error {
  const message = `ENOSPC: no space left on device, ${syscall}`;
  return Object.assign(new Error(message), { code: 'ENOSPC', syscall });
}

/** What the file store tells the operator, beside what it throws. */
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
  /** A projection could not be read; it starts anew and the old file is kept. */
  | {
      readonly type: 'projection-set-aside';
      readonly file: string;
      readonly keptIn: string;
      readonly reason: string;
    }
  /** A newer minor version of Parley wrote here: what this one does not know is kept and ignored. */
  | {
      readonly type: 'format-newer';
      readonly file: string;
      readonly stored: string;
      readonly own: string;
      readonly writtenBy: string;
    }
  /** This folder of the layout before is not read: the conversation has another one. */
  | { readonly type: 'folder-taken'; readonly conversation: string; readonly folder: string }
  /** An older version kept this conversation in the folder of another one, whose name differs in capitals only. */
  | { readonly type: 'folder-shared'; readonly conversation: string; readonly folder: string }
  /** A projection could not be saved; it is tried again. */
  | { readonly type: 'projection-not-saved'; readonly file: string; readonly reason: string };

export type StoreLog = (event: StoreEvent) => void;
