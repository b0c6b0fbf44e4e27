import { existsSync } from 'node:fs';
import type { LogFile, LogFiles } from './log-file.ts';

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
