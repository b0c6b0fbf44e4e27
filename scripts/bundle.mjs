/**
 * Bundles the command line with the daemon, and the libraries, each with the packages that it uses, without unused code.
 * The program is CommonJS, so that `bin/load.js` can keep its compiled code.
 */
import { join } from 'node:path';
import { rolldown } from 'rolldown';

/** Below `src`. `thread` is next to the chunks, where `search/index.ts` looks for it. */
export const PROGRAM = { 'cli/main': 'cli/main.ts', thread: 'search/thread.ts' };
export const LIBRARIES = {
  index: 'index.ts',
  'client/index': 'client/index.ts',
  'testing/index': 'testing/index.ts',
};

/** A native addon, a program and WebAssembly are files of their own. */
const FROM_DISK = /^(?:esbuild|fs-native-extensions|node-sqlite3-wasm)(?:\/|$)/;

/**
 * Modules below `src` that do more than define their exports when they are loaded. Others are left out where nothing of them
 * is used, even if an `index.ts` exports them: so a command loads what it needs.
 */
export const HAVE_EFFECTS = ['cli/main.ts', 'search/thread.ts', 'bus/nats/connection/client-patches.ts'];

export function bundleProgram(options) {
  return bundle({ ...options, entries: PROGRAM, extension: 'cjs' });
}

export function bundleLibraries(options) {
  return bundle({ ...options, entries: LIBRARIES, extension: 'js' });
}

/** What CommonJS has instead of `import.meta.url`. */
const ADDRESS = "const address_of_module = require('node:url').pathToFileURL(__filename).href;";

async function bundle({ root, outDir, entries, extension, plugins = [], sourcemap = false }) {
  const isModule = extension === 'js';
  /** A bundle without these packages could not be loaded. */
  const missing = [];
  const source = join(root, 'src/');
  const effects = new Set(HAVE_EFFECTS.map((file) => join(source, file)));
  const build = await rolldown({
    cwd: root,
    input: Object.fromEntries(Object.entries(entries).map(([name, file]) => [name, join(root, 'src', file)])),
    external: FROM_DISK,
    platform: 'node',
    logLevel: 'warn', // errors are thrown
    onLog: (_level, { code, message }) => code === 'UNRESOLVED_IMPORT' && missing.push(message),
    tsconfig: false, // a folder above may have one
    treeshake: { moduleSideEffects: (id) => (id.startsWith(source) ? effects.has(id) : undefined) },
    plugins,
    ...(isModule ? {} : { transform: { define: { 'import.meta.url': 'address_of_module' } } }),
  });
  try {
    const { output } = await build.write({
      dir: outDir,
      format: isModule ? 'esm' : 'cjs',
      strict: true, // as in the modules that it is made of
      dynamicImportInCjs: false, // Node 20 does not import from compiled code
      intro: isModule ? '' : ADDRESS,
      sourcemap,
      entryFileNames: `[name].${extension}`,
      chunkFileNames: `[name]-[hash].${extension}`,
    });
    if (missing.length > 0)
      throw Object.assign(new Error(missing.join('\n')), { code: 'ERR_MODULE_NOT_FOUND' });
    return output;
  } finally {
    await build.close();
  }
}
