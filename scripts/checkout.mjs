import { fork } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * What a checkout runs: a bundle of its source, made again when a file has changed that it was made of.
 *
 * CHECKOUT-1 An outdated bundle does not run. `current.json` has size and times of each file as they were before it was read.
 *            The time of the last change of a file (ctime) cannot be set.
 * CHECKOUT-2 Bundles have folders of their own. The last ten and those of the last hour are kept: a running daemon loads parts
 *            of its bundle later.
 * CHECKOUT-3 The bundler runs in a process of its own. It takes some 500 MB, which a daemon would keep.
 */

/** A file that is this new can change again without a change of its times. */
const TOO_NEW_MS = 1_000;
const KEPT = 10;
/** Programs that were started at the same time may not have loaded theirs yet. */
const KEPT_MS = 3_600_000;

/** Besides the modules: what decides how they are bundled, and which packages are installed. */
const ALSO = [
  'package.json',
  'node_modules/.package-lock.json',
  'scripts/bundle.mjs',
  'scripts/checkout.mjs',
];

/** The path of the program; bundles it first if need be. */
export async function programOf(folder) {
  const root = fileURLToPath(folder);
  const runs = join(root, 'dist', 'run');
  const current = readCurrent(runs);
  if (current !== null && isUnchanged(root, current.inputs)) return mainOf(join(runs, current.name));
  const name = `${Date.now()}-${process.pid}`;
  const outDir = join(runs, name);
  await mkdir(outDir, { recursive: true });
  const startedAt = Date.now();
  const inputs = await bundleApart(root, outDir);
  if (!Object.values(inputs).some((input) => isTooNew(input, startedAt))) {
    const draft = join(outDir, 'current.json');
    await writeFile(draft, JSON.stringify({ name, inputs }));
    await rename(draft, join(runs, 'current.json'));
  }
  await removeOld(runs);
  return mainOf(outDir);
}

const mainOf = (folder) => join(folder, 'cli/main.cjs');

function readCurrent(runs) {
  try {
    const current = JSON.parse(readFileSync(join(runs, 'current.json'), 'utf8'));
    return existsSync(mainOf(join(runs, current.name))) ? current : null;
  } catch {
    return null; // none, or not readable, or without its bundle: it is made again
  }
}

function isUnchanged(root, inputs) {
  return Object.entries(inputs).every(([path, input]) => versionOf(join(root, path)).join() === input.join());
}

/** Size, time of the last write, time of the last change; empty for a file that does not exist. */
function versionOf(path) {
  const found = statSync(path, { throwIfNoEntry: false });
  return found ? [found.size, found.mtimeMs, found.ctimeMs] : [];
}

function isTooNew([, , changedAt = 0], startedAt) {
  return changedAt > startedAt - TOO_NEW_MS;
}

/** CHECKOUT-3. Returns the versions of all files that were read. */
function bundleApart(root, outDir) {
  const bundler = fork(fileURLToPath(import.meta.url), [root, outDir], {
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  return new Promise((resolve, reject) => {
    bundler.once('message', ({ inputs, error }) =>
      error ? reject(Object.assign(new Error(error.message), error)) : resolve(inputs),
    );
    bundler.once('error', reject);
    bundler.once('exit', (code, signal) => reject(new Error(`the bundler ended with ${code ?? signal}`)));
  });
}

async function runBundler([root, outDir]) {
  process.once('disconnect', () => process.exit()); // also when the program is killed meanwhile
  try {
    process.send({ inputs: await bundleInto(root, outDir) });
  } catch ({ message, code, syscall }) {
    process.send({ error: { message, code, syscall } });
  } finally {
    process.disconnect();
  }
}

async function bundleInto(root, outDir) {
  const { bundleProgram } = await import('./bundle.mjs');
  const inputs = Object.fromEntries(ALSO.map((path) => [path, versionOf(join(root, path))]));
  const note = {
    name: 'note-inputs',
    load(id) {
      if (!id.startsWith('\0')) inputs[relative(root, id)] ??= versionOf(id);
      return null;
    },
  };
  await bundleProgram({ root, outDir, plugins: [note], sourcemap: true });
  return inputs;
}

async function removeOld(runs) {
  const names = (await readdir(runs)).filter((name) => name !== 'current.json').sort();
  const old = names.slice(0, -KEPT).filter((name) => Date.now() - Number.parseInt(name, 10) > KEPT_MS);
  await Promise.all(old.map((name) => rm(join(runs, name), { recursive: true, force: true })));
}

/** What to do about a failure of `programOf`. */
export function adviceOn({ code, syscall }) {
  if (code === 'ERR_MODULE_NOT_FOUND') return 'Run `npm ci`: a checkout needs its development dependencies.';
  if (syscall)
    return 'A checkout writes its bundle to dist/run. Start it as a user who may write there, or install the package.';
  return 'Correct the source, or restore it with git.';
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runBundler(process.argv.slice(2));
