import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transformWithOxc } from 'vite';
import { LAUNCHER_VARIABLE } from './cli.ts';

/**
 * The installed package, built for each test run: its launcher, configuration, and source without types. Reading
 * types takes a second per process, and the tests start hundreds. `launcher.test.ts` runs the source itself.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TYPESCRIPT = { rewriteImportExtensions: 'rewrite', onlyRemoveTypeImports: true } as const;

/** For Vitest (`globalSetup`). Several projects name it; the first one builds it. */
export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env[LAUNCHER_VARIABLE] !== undefined) return undefined;
  const folder = await mkdtemp(join(tmpdir(), 'parley-package-'));
  await buildPackage(folder);
  process.env[LAUNCHER_VARIABLE] = join(folder, 'bin', 'parley.js');
  return async () => {
    delete process.env[LAUNCHER_VARIABLE];
    await rm(folder, { recursive: true, force: true });
  };
}

async function buildPackage(folder: string): Promise<void> {
  for (const name of ['bin', 'config', 'templates', 'package.json']) {
    await cp(join(ROOT, name), join(folder, name), { recursive: true });
  }
  for (const name of ['node_modules', 'examples']) await symlink(join(ROOT, name), join(folder, name));
  // `scripts/build-console.mjs` has built the console for browsers, or builds it for the tests that need it.
  await mkdir(join(folder, 'dist'));
  await symlink(join(ROOT, 'dist', 'console'), join(folder, 'dist', 'console'));
  const names = await readdir(join(ROOT, 'src'), { recursive: true });
  const ours = names.filter((name) => /(?<!\.d)\.ts$/.test(name) && !name.startsWith(`console${sep}`));
  await Promise.all(ours.map((name) => build(name, join(folder, 'dist'))));
}

async function build(name: string, folder: string): Promise<void> {
  const source = join(ROOT, 'src', name);
  const { code } = await transformWithOxc(await readFile(source, 'utf8'), source, {
    typescript: TYPESCRIPT,
    target: 'es2023',
    sourcemap: false,
  });
  const target = join(folder, name.replace(/\.ts$/, '.js'));
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, code);
}
