import { realpath } from 'node:fs/promises';
import { createRequire, isBuiltin } from 'node:module';
import { join, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { BuildFailure, BuildOptions, Message, OnResolveResult, Plugin } from 'esbuild';
import { messageOf, PACKAGE, ParleyError, within } from '../../kernel/index.ts';
import { type InProcessTool, tool } from './tool.ts';

/**
 * Loads tools from files: TypeScript whose default export is a `tool()`.
 *
 * FUNCTION-FILES-1 They run with the rights of the daemon. Only files of the configuration's folder are loaded, since the file tools
 *              write there only after a person approved that path, and packages.
 * FUNCTION-FILES-2 `parleyd` is this daemon itself, so that it works in a checkout and in a folder without the package.
 * FUNCTION-FILES-3 Each load gives new modules: a tool that is loaded again has none of its old state.
 */

/** The absolute path of each file, by the name of its tool. */
export type ToolFiles = Readonly<Record<string, string>>;

/** The time limit of the code outside functions. */
const LOAD_MS = 10_000;
const OWN = 'parleyd';
/** Where a loaded file finds `tool`. */
const KEY = 'parleyd.tool';

function importModule(url: string): Promise<{ default?: unknown }> {
  const load = createRequire(import.meta.url)(join(PACKAGE, 'bin', 'import.cjs'));
  return load(url);
}

/** One after the other: they share the process of esbuild, which the last one ends. */
let newest: Promise<unknown> = Promise.resolve();
let loads = 0;

/** In the order of the names. Throws `TOOL_FILE_INVALID` for the first file that cannot be loaded. */
export function loadToolFiles(files: ToolFiles, folder: string): Promise<InProcessTool[]> {
  const loading = newest.then(() => load(files, folder));
  newest = loading.catch(() => undefined);
  return loading;
}

async function load(files: ToolFiles, folder: string): Promise<InProcessTool[]> {
  const texts = await bundle(Object.values(files), await realpath(folder));
  Reflect.set(globalThis, Symbol.for(KEY), tool);
  const tools: InProcessTool[] = [];
  for (const [at, [name, file]] of Object.entries(files).entries())
    tools.push(await evaluate(name, file, texts[at] ?? ''));
  return tools;
}

/** Each file with the files that it imports, as one module. */
async function bundle(paths: readonly string[], folder: string): Promise<string[]> {
  const esbuild = await import('esbuild');
  const options: BuildOptions & { write: false } = {
    entryPoints: [...paths],
    outdir: folder, // nothing is written there
    write: false,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    tsconfigRaw: {},
    logLevel: 'silent',
    plugins: [imports(folder)],
  };
  try {
    const built = await esbuild.build(options);
    return built.outputFiles.map(({ text }) => text);
  } catch (error) {
    const [first] = (error as Partial<BuildFailure>).errors ?? [];
    throw invalid(first ? describe(first, paths) : messageOf(error));
  } finally {
    await esbuild.stop();
  }
}

function describe({ location, text, notes }: Message, paths: readonly string[]): string {
  const more = notes.map((note) => ` (${note.text})`).join('');
  if (!location) return `${paths.join(', ')}: ${text}${more}`;
  return `${join(process.cwd(), location.file)}:${location.line}:${location.column + 1}: ${text}${more}`;
}

function imports(folder: string): Plugin {
  const ours = { inOurs: true };
  return {
    name: 'imports',
    setup(build) {
      build.onResolve(
        { filter: /^[^./#]/ },
        async ({ path, kind, resolveDir, pluginData }): Promise<OnResolveResult | undefined> => {
          if (kind === 'entry-point' || pluginData === ours) return undefined;
          if (isBuiltin(path)) return { path, external: true };
          if (path === OWN) return { path, namespace: OWN };
          const places = path === 'zod' ? [resolveDir, PACKAGE] : [resolveDir]; // the version of Parley, if the project has none
          for (const place of places) {
            const found = await build.resolve(path, { kind, resolveDir: place, pluginData: ours });
            if (found.errors.length === 0) return { path: pathToFileURL(found.path).href, external: true };
          }
          return {
            errors: [
              { text: `the package ${path} is not installed: run \`npm install ${path}\` in the project` },
            ],
          };
        },
      );
      build.onLoad({ filter: /.*/, namespace: OWN }, () => ({
        contents: `export const tool = globalThis[Symbol.for(${JSON.stringify(KEY)})];`,
      }));
      build.onLoad({ filter: /.*/ }, ({ path }) => {
        if (path.startsWith(folder + sep)) return undefined;
        const text = `${path} is not in ${folder}: move it there, since agents may write files elsewhere`;
        return { errors: [{ text }] };
      });
    },
  };
}

async function evaluate(name: string, file: string, text: string): Promise<InProcessTool> {
  loads += 1;
  const url = `data:text/javascript,${encodeURIComponent(`${text}\n// ${loads}`)}`;
  const loaded = await within(LOAD_MS, importModule(url)).catch((error: unknown) => {
    throw invalid(`${file}: ${messageOf(error)}`);
  });
  if (loaded === null) throw invalid(`${file}: it is not loaded after ${LOAD_MS / 1_000} s`);
  const found = loaded.default;
  if (!isTool(found)) throw invalid(`${file}: its default export was not made by tool() of ${OWN}`);
  if (found.definition.name === name) return found;
  throw invalid(`${file}: its tool has the name ${found.definition.name}, but the file is named ${name}.ts`);
}

function isTool(value: unknown): value is InProcessTool {
  return (
    typeof value === 'object' && value !== null && 'definition' in value && 'check' in value && 'run' in value
  );
}

function invalid(what: string): ParleyError {
  return new ParleyError('TOOL_FILE_INVALID', what, {
    hint: `correct the file; it needs \`export default tool({ … })\` with tool of ${OWN}`,
  });
}
