import { hash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { cachedDataVersionTag } from 'node:v8';
import { Script } from 'node:vm';

/**
 * Loads a bundle of CommonJS modules, and keeps what V8 compiled of them beside it: a third of a start is compilation.
 * (`module.enableCompileCache` does the same for Node 22 and later.) A bundle has no `import()`: Node 20 cannot do it in compiled code.
 *
 * COMPILED-1 Compiled code is used only for the exact source, version of Node and options of V8 that it was made from, and only
 *    if it is whole.
 * COMPILED-2 Without it, and where it cannot be written, the source is compiled. A failed write leaves no part of it; a killed process may.
 * COMPILED-3 It is written by the owner of the folder only: an owner could not remove the files of another user, such as root.
 */

/** Functions that the program called by then are compiled code, too. */
const SAVED_AFTER_MS = 3_000;

/** Of compiled code that this process can use: V8 rejects that of other options. */
const KIND = `${process.version}-${process.arch}-${cachedDataVersionTag()}`;

const loaded = new Map();
/** The modules without compiled code. */
const compiled = [];

export function load(path) {
  const known = loaded.get(path);
  if (known) return known.exports;
  const module = { exports: {} };
  loaded.set(path, module);
  const folder = dirname(path);
  const require = createRequire(path);
  const requireOf = (name) => (name.startsWith('.') ? load(join(folder, name)) : require(name));
  const run = scriptOf(path).runInThisContext();
  run(module.exports, Object.assign(requireOf, require), module, path, folder);
  return module.exports;
}

function scriptOf(path) {
  const source = readFileSync(path, 'utf8');
  const kept = join(dirname(path), 'compiled', `${hash('sha1', source)}-${KIND}`);
  const script = new Script(`(function (exports, require, module, __filename, __dirname) {${source}\n})`, {
    filename: path,
    cachedData: readWhole(kept),
  });
  if (script.cachedDataRejected !== false && isOwn(dirname(path))) saveLater(kept, script);
  return script;
}

/** A file begins with the hash of the rest: V8 does not notice each damage. */
function readWhole(file) {
  try {
    const data = readFileSync(file);
    const rest = data.subarray(20);
    return data.toString('hex', 0, 20) === hash('sha1', rest) ? rest : undefined;
  } catch {
    return undefined; // not there yet
  }
}

/** COMPILED-3. Windows has no such owners. */
function isOwn(folder) {
  return process.getuid === undefined || statSync(folder).uid === process.getuid();
}

function saveLater(file, script) {
  if (compiled.push([file, script]) > 1) return;
  setTimeout(save, SAVED_AFTER_MS).unref();
  process.once('exit', save);
}

function save() {
  for (const [file, script] of compiled.splice(0)) {
    const data = script.createCachedData();
    const draft = `${file}.${process.pid}`;
    try {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(draft, Buffer.concat([hash('sha1', data, 'buffer'), data]));
      renameSync(draft, file);
    } catch {
      return removeIfPossible(draft); // a folder of another user, or a read-only or full disk
    }
  }
}

function removeIfPossible(file) {
  try {
    rmSync(file, { force: true });
  } catch {
    // in a folder that cannot be written
  }
}
