// Bundles the command line, the daemon and the libraries with the packages that they use, without unused code.
import { join } from 'node:path';
import { rolldown } from 'rolldown';

/** Below `src`. `thread` is next to the chunks, where `thread-index.ts` looks for it. */
export const PROGRAM = { 'cli/main': 'cli/main.ts', thread: 'search/thread.ts' };
export const LIBRARIES = {
  index: 'index.ts',
  'client/index': 'client/index.ts',
  'testing/index': 'testing/index.ts',
};

/** A native addon and WebAssembly are files of their own. */
const FROM_DISK = /^(?:fs-native-extensions|node-sqlite3-wasm)(?:\/|$)/;

export async function bundle({ root, outDir, entries, plugins = [], sourcemap = false }) {
  /** A bundle without these packages could not be loaded. */
  const missing = [];
  const build = await rolldown({
    cwd: root,
    input: Object.fromEntries(Object.entries(entries).map(([name, file]) => [name, join(root, 'src', file)])),
    external: FROM_DISK,
    platform: 'node',
    logLevel: 'warn', // errors are thrown
    onLog: (_level, { code, message }) => code === 'UNRESOLVED_IMPORT' && missing.push(message),
    tsconfig: false, // a folder above may have one
    plugins,
  });
  try {
    const { output } = await build.write({
      dir: outDir,
      format: 'esm',
      sourcemap,
      chunkFileNames: '[name]-[hash].js',
    });
    if (missing.length > 0)
      throw Object.assign(new Error(missing.join('\n')), { code: 'ERR_MODULE_NOT_FOUND' });
    return output;
  } finally {
    await build.close();
  }
}
