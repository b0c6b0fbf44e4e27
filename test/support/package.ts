import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleLibraries, bundleProgram } from '../../scripts/bundle.mjs';
import { LAUNCHER_VARIABLE } from './cli.ts';

/**
 * The installed package, built for each test run: its launcher, configuration and bundle. `launcher.test.ts` runs a checkout.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** For Vitest (`globalSetup`). `PARLEY_TEST_LAUNCHER` may name another one. */
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
  for (const name of ['node_modules', 'examples', 'clients'])
    await symlink(join(ROOT, name), join(folder, name));
  const dist = join(folder, 'dist');
  await bundleProgram({ root: ROOT, outDir: dist });
  await bundleLibraries({ root: ROOT, outDir: dist });
  // `scripts/build-console.mjs` has built the console for browsers, or builds it for the tests that need it.
  await symlink(join(ROOT, 'dist', 'console'), join(dist, 'console'));
}
