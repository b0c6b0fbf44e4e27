import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
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
    const handle = await orNullIfMissing(open(path, 'r+'));
    if (handle === null) return null;
    if ((await handle.stat()).isFile()) return logFileOn(handle);
    await handle.close();
    throw new Error('it is no plain file');
  },
  async create(path) {
    const directory = dirname(path);
    await makeDirectory(directory);
    // Never truncates: a file made by a daemon that died before its first write is taken over.
    const handle = await open(path, constants.O_RDWR | constants.O_CREAT, 0o600);
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
