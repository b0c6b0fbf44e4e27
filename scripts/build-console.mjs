// Builds the web console from src/console to dist/console, which the daemon serves.
// `--if-possible`: as part of `npm ci`, which must not fail where the tools for it were left out (`--omit=dev`).
import { fileURLToPath } from 'node:url';
import { notices } from './notices.mjs';

const root = fileURLToPath(new URL('../src/console', import.meta.url));
const outDir = fileURLToPath(new URL('../dist/console', import.meta.url));

export async function buildConsole() {
  const vite = await import('vite');
  await vite.build({
    configFile: false,
    root,
    base: './',
    logLevel: 'warn',
    plugins: [notices()],
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      outDir,
      emptyOutDir: true,
      target: 'es2022',
      assetsInlineLimit: 0, // nothing inline: the page's policy forbids it
      modulePreload: { polyfill: false },
    },
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    await buildConsole();
  } catch (error) {
    const lacksTools = error.code === 'ERR_MODULE_NOT_FOUND' && process.argv.includes('--if-possible');
    if (!lacksTools) throw error;
    console.error('the web console is not built: its tools are not installed (npm ci without --omit=dev)');
  }
}
