import { realpath } from 'node:fs/promises';
import { createRequire, isBuiltin } from 'node:module';
import { join, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { BuildFailure, BuildOptions, Message, OnResolveResult, Plugin } from 'esbuild';
import type { z } from 'zod';
import type {
  Risk,
  Toolbox,
  ToolDefinition,
  ToolFile,
  ToolOutcome,
  ToolRun,
} from '../../agents/tool-port.ts';
import { faultBySchema, isConversationTool, jsonSchemaOf } from '../../conversation/index.ts';
import { inOrder, messageOf, PACKAGE, ParleyError, resultText, within } from '../../kernel/index.ts';
import { completed, LONGEST_CALL_MS, type OwnTool, runGuarded, toolboxOf } from '../toolbox.ts';

/** What `run` knows of its call besides the input. */
export interface ToolCall extends Pick<ToolRun, 'conversation' | 'agent' | 'turnId' | 'idempotencyKey'> {
  /** Aborted at a stop of the turn or the daemon, and at the time limit. */
  readonly signal: AbortSignal;
}

export interface ToolSpec<Input extends z.ZodObject> {
  /** 1 to 64 letters, digits, `_` or `-`. */
  readonly name: string;
  /** For the model. */
  readonly description: string;
  readonly input: Input;
  /**
   * Default `risky`: needs an approval, unless the policy allows it, and is never repeated without a person's decision after
   * a crash. `safe`: runs at once, and again after a crash.
   */
  readonly risk?: Risk;
  /** Default: 15 minutes. */
  readonly timeoutMs?: number;
  /**
   * Returns text, or a value that becomes JSON; with files, `{ content?, files: [{ bytes, name? }] }`. An error that it throws
   * goes to the model.
   */
  run(input: z.output<Input>, call: ToolCall): unknown;
}

export type InProcessTool = OwnTool;

const NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** Throws `TOOL_INVALID` if the schema has no JSON Schema, or the name is no function name. */
export function tool<Input extends z.ZodObject>(spec: ToolSpec<Input>): InProcessTool {
  const { name, description, input, risk = 'risky', timeoutMs = LONGEST_CALL_MS } = spec;
  if (!NAME.test(name)) throw invalid(name, 'a name is 1 to 64 letters, digits, _ or -');
  const fault = faultOf({ ...spec, risk });
  if (fault) throw invalid(name, fault);
  const check = (given: unknown) => faultBySchema(name, input, given);
  return {
    definition: { name, description, risk, parameters: parametersFor(name, input) },
    check,
    run: (call, outer) =>
      runGuarded(
        async (signal) => {
          const { conversation, agent, turnId, idempotencyKey } = call;
          const context = { conversation, agent, turnId, idempotencyKey, signal };
          return outcomeOf(await spec.run(input.parse(call.arguments), context));
        },
        outer,
        { name, timeoutMs },
      ),
  };
}

/** What the types of a program refuse, and nothing refuses in a file whose types are removed. */
function faultOf({ description, input, risk, run }: Partial<ToolSpec<z.ZodObject>>): string | null {
  if (typeof description !== 'string') return 'it has no description';
  if (typeof input !== 'object' || !('_zod' in input))
    return 'its input is no z.object() of zod 4; without arguments it is z.object({})';
  if (risk !== 'safe' && risk !== 'risky') return `its risk is ${JSON.stringify(risk)}, not safe or risky`;
  return typeof run === 'function' ? null : 'it has no function run';
}

function parametersFor(name: string, input: z.ZodObject): ToolDefinition['parameters'] {
  try {
    const parameters = jsonSchemaOf(input, 'input');
    if (parameters.type === 'object') return parameters;
  } catch (error) {
    throw invalid(name, messageOf(error));
  }
  throw invalid(name, 'it is not an object');
}

export function outcomeOf(result: unknown): ToolOutcome {
  const { content, files } = Object(result) as { readonly content?: unknown; readonly files?: unknown };
  if (Array.isArray(files) && files.length > 0 && files.every(isFile))
    return completed(resultText(content), files);
  return completed(resultText(result));
}

/** No JSON value is one. */
function isFile(value: unknown): value is ToolFile {
  const { bytes, name = '', mediaType = '' } = Object(value) as Partial<Record<keyof ToolFile, unknown>>;
  return bytes instanceof Uint8Array && typeof name === 'string' && typeof mediaType === 'string';
}

function invalid(name: string, why: string): ParleyError {
  return new ParleyError('TOOL_INVALID', `the tool ${name} cannot be offered: ${why}`, {
    hint: 'give tool() a function name, and as input a z.object() that JSON Schema can express',
  });
}

/** `isTaken`: names of other tools. Throws `TOOL_NAME_TAKEN`. */
export function createInProcessTools(
  tools: readonly InProcessTool[],
  isTaken: (name: string) => boolean,
): Toolbox {
  const names = new Set<string>();
  for (const { definition } of tools) {
    const { name } = definition;
    if (isTaken(name) || isConversationTool(name) || names.has(name))
      throw new ParleyError('TOOL_NAME_TAKEN', `another tool has the name ${name}`, {
        hint: 'rename the tool that createDaemon or a file in config/tools gives; names of built-in tools and of MCP servers (mcp__…) are taken',
      });
    names.add(name);
  }
  return toolboxOf(tools);
}

/**
 * Loads tools from files: TypeScript whose default export is a `tool()`.
 *
 * FUNCTION-FILES-1 They run with the rights of the daemon. Only files of the configuration's folder are loaded, since the file tools
 *              write there only after a person approved that path, and packages.
 * FUNCTION-FILES-2 `parleyd` is this daemon itself, so that it works in a checkout and in a folder without the package.
 * FUNCTION-FILES-3 Each load gives new modules: a tool that is loaded again has none of its old state.
 */

/** The absolute path of each file, by the name of its tool. */
type ToolFiles = Readonly<Record<string, string>>;

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
const loading = inOrder();
let loads = 0;

/** In the order of the names. Throws `TOOL_FILE_INVALID` for the first file that cannot be loaded. */
export function loadToolFiles(files: ToolFiles, folder: string): Promise<InProcessTool[]> {
  return loading(() => load(files, folder));
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
    throw unloadable(first ? describe(first, paths) : messageOf(error));
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
    throw unloadable(`${file}: ${messageOf(error)}`);
  });
  if (loaded === null) throw unloadable(`${file}: it is not loaded after ${LOAD_MS / 1_000} s`);
  const found = loaded.default;
  if (!isTool(found)) throw unloadable(`${file}: its default export was not made by tool() of ${OWN}`);
  if (found.definition.name === name) return found;
  throw unloadable(
    `${file}: its tool has the name ${found.definition.name}, but the file is named ${name}.ts`,
  );
}

function isTool(value: unknown): value is InProcessTool {
  return (
    typeof value === 'object' && value !== null && 'definition' in value && 'check' in value && 'run' in value
  );
}

function unloadable(what: string): ParleyError {
  return new ParleyError('TOOL_FILE_INVALID', what, {
    hint: `correct the file; it needs \`export default tool({ … })\` with tool of ${OWN}`,
  });
}
