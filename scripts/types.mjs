import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';

/** Writes the declarations that the libraries need, and no others. Throws if they name a package that users do not get. */
export async function writeTypes({ root, outDir, libraries }) {
  const all = await mkdtemp(join(tmpdir(), 'parley-types-'));
  try {
    const compiler = join(root, 'node_modules/typescript-7/bin/tsc');
    // `npm run check` reports errors of types: checking them again would take most of a build.
    const options = ['-p', join(root, 'tsconfig.build.json'), '--outDir', all, '--noCheck'];
    await promisify(execFile)(process.execPath, [compiler, ...options]).catch(({ stdout, message }) => {
      throw new Error(stdout || message);
    });
    const { files, packages } = await reach(libraries.map((name) => join(all, `${name}.d.ts`)));
    const { dependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
    const absent = [...packages].filter((name) => !(name in dependencies));
    if (absent.length > 0) throw new Error(`public types need packages that users do not get: ${absent}`);
    await Promise.all([...files].map((file) => cp(file, join(outDir, relative(all, file)))));
  } finally {
    await rm(all, { recursive: true, force: true });
  }
}

/** The declarations that these import, directly or not, and the packages that they name. */
async function reach(entries) {
  const files = new Set(entries);
  const packages = new Set();
  for (const file of files) {
    const text = await readFile(file, 'utf8');
    for (const [, from] of text.matchAll(/\b(?:from |import |import\()['"]([^'"]+)['"]/g)) {
      if (from.startsWith('.')) files.add(join(dirname(file), from.replace(/\.[jt]s$/, '.d.ts')));
      else if (!from.startsWith('node:')) packages.add(/^(?:@[^/]+\/)?[^/]+/.exec(from)[0]);
    }
  }
  return { files, packages };
}
