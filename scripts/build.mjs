// `npm run build`: dist/, as the package contains it.
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildConsole } from './build-console.mjs';
import { bundleLibraries, bundleProgram, LIBRARIES } from './bundle.mjs';
import { notices } from './notices.mjs';
import { writeTypes } from './types.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const outDir = join(root, 'dist');

await mkdir(outDir, { recursive: true });
// A daemon may run from one of these.
const kept = ['console', 'run'];
const old = (await readdir(outDir)).filter((name) => !kept.includes(name));
await Promise.all(old.map((name) => rm(join(outDir, name), { recursive: true, force: true })));
const plugins = [notices()];
await bundleProgram({ root, outDir, plugins });
await bundleLibraries({ root, outDir, plugins });
await writeTypes({ root, outDir, libraries: Object.keys(LIBRARIES) });
await buildConsole();
