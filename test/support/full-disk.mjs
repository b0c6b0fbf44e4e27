import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename } from 'node:path';

/**
 * Simulates a full disk: while the file `flag` exists, no log can be created and none grows (ENOSPC). The first write of a log
 * then stores half of its bytes, as on a real disk. Use `node --import` this file with FULL_DISK=FILE. Linux only.
 */

/** Until the returned function is called. */
export function fillWhile(flag) {
  const { write } = fs;
  const { open } = fs.promises;
  /** Logs that got the last bytes of the disk. */
  const cut = new Set();
  const isFull = () => fs.existsSync(flag) || cut.clear();
  const isLog = (path) => basename(path) === 'log.jsonl';
  fs.write = (fd, bytes, ...given) => {
    if (!isFull() || !isLog(fs.readlinkSync(`/proc/self/fd/${fd}`))) return write(fd, bytes, ...given);
    const [offset, length, position, done] = given;
    if (cut.has(fd) || length < 2) return process.nextTick(done, noSpace('write'));
    cut.add(fd);
    return write(fd, bytes, offset, length >> 1, position, done);
  };
  fs.promises.open = async (path, flags, mode) => {
    if (isFull() && isLog(path) && (flags & fs.constants.O_CREAT) !== 0) throw noSpace('open');
    return open(path, flags, mode);
  };
  syncBuiltinESMExports();
  return () => {
    fs.write = write;
    fs.promises.open = open;
    syncBuiltinESMExports();
  };
}

function noSpace(syscall) {
  const message = `ENOSPC: no space left on device, ${syscall}`;
  return Object.assign(new Error(message), { code: 'ENOSPC', syscall });
}

if (process.env.FULL_DISK) fillWhile(process.env.FULL_DISK);
