import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join, relative, sep } from 'node:path';

/**
 * Simulates a case-insensitive disk as on macOS and Windows: below `root`, a path finds the existing name in any
 * case. Use `node --import` this file with FOLDING_DISK=DIR, and KILL_AT_RENAME=N for a kill after the Nth rename.
 */

const HELD = {
  promises: 'access,appendFile,lstat,mkdir,open,readFile,readdir,rm,rmdir,stat,unlink,writeFile,rename'.split(
    ',',
  ),
  sync: 'accessSync,existsSync,lstatSync,mkdirSync,openSync,readFileSync,readdirSync,rmSync,statSync,unlinkSync,writeFileSync,renameSync'.split(
    ',',
  ),
};

/** Until the returned function is called. */
export function foldCase(root, { killAtRename = Number.POSITIVE_INFINITY } = {}) {
  const { readdirSync } = fs;
  let renames = 0;
  const there = (path) => {
    if (typeof path !== 'string') return path;
    const way = relative(root, path);
    if (way === '' || way.startsWith('..')) return path;
    let found = root;
    for (const name of way.split(sep)) found = join(found, sameName(found, name));
    return found;
  };
  const sameName = (folder, name) => {
    try {
      const names = readdirSync(folder);
      return names.includes(name) ? name : (names.find((one) => fold(one) === fold(name)) ?? name);
    } catch {
      return name;
    }
  };
  const undo = [];
  const replace = (holder, name) => {
    const real = holder[name];
    const isRename = name.startsWith('rename');
    holder[name] = (path, second, ...more) => {
      const done = real(there(path), isRename ? there(second) : second, ...more);
      if (!isRename || typeof path !== 'string' || relative(root, path).startsWith('..')) return done;
      const counted = (answer) => {
        if (++renames === killAtRename) process.kill(process.pid, 'SIGKILL');
        return answer;
      };
      return done instanceof Promise ? done.then(counted) : counted(done);
    };
    undo.push(() => {
      holder[name] = real;
    });
  };
  for (const name of HELD.promises) replace(fs.promises, name);
  for (const name of HELD.sync) replace(fs, name);
  syncBuiltinESMExports();
  return () => {
    for (const one of undo) one();
    syncBuiltinESMExports();
  };
}

function fold(name) {
  return name.toLowerCase();
}

const { FOLDING_DISK, KILL_AT_RENAME } = process.env;
if (FOLDING_DISK) foldCase(FOLDING_DISK, KILL_AT_RENAME ? { killAtRename: Number(KILL_AT_RENAME) } : {});
