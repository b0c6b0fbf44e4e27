import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { BUILT_IN_PHASES, createRoster, type PhaseSpec, type PhaseTable } from '../../conversation/index.ts';
import { durationOf, errnoOf, nearest } from '../../kernel/index.ts';
import { type ConfigSource, readConfigFile } from '../files/config-file.ts';
import { ENVIRONMENT_FILE, withDotenv } from '../files/dotenv.ts';
import { listFiles, readIfThere } from '../files/read-file.ts';
import { type KeyPath, type Located, Problems, show } from '../problems.ts';
import type { AgentConfig, Config, PromptTexts, ToolsConfig } from '../schema/config.ts';
import { resolvePublishers } from '../schema/http-file.ts';
import type { ConfigFile, PhaseFile } from '../schema/schema.ts';
import { keyOfVariable, keyVariablesIn } from '../schema/schema-keys.ts';
import { Secret } from '../schema/secret.ts';
import { type ConfigFlags, type Environment, variable } from '../schema/setting-sources.ts';
import {
  CONFIG_VARIABLE,
  CRASH_POINTS_VARIABLE,
  DEFAULT_CONFIG,
  IGNORED_IN_FILES,
  resolveSettings,
  resolveTelemetry,
  resolveTraces,
  SETTING_VARIABLES,
  SHIPPED_CONFIG,
  secretNatsFiles,
} from '../schema/settings.ts';
import { type LoadedAgent, loadAgents } from './agents.ts';
import { checkAgentParameters, digestScripts, fallbacksOf, resolveModels } from './models.ts';
import { checkRules, PASSED_ON, resolveTools, unknownTool } from './tools.ts';
import { loadWorkflows } from './workflows.ts';

/**
 * Loads a configuration folder, once, at the start: flag before environment before file before default.
 *
 * LOAD-1 Everything that is wrong is reported at once, as one `CONFIG_INVALID` (PROBLEMS-1).
 * LOAD-2 The environment is a parameter: this folder never reads `process.env`. `.env` files complete it.
 */

const PREFERRED_DEFAULT_AGENT = 'pm';

export interface LoadOptions {
  /** Default: PARLEY_CONFIG, else `config`. */
  readonly configDirectory?: string | undefined;
  readonly env: Environment;
  readonly flags?: ConfigFlags;
  /** The base of relative paths in flags and `tools.project`. */
  readonly workingDirectory?: string;
}

export async function loadConfig(options: LoadOptions): Promise<Config> {
  const { flags = {}, workingDirectory = process.cwd() } = options;
  const problems = new Problems();
  const directory = await findDirectory(options, workingDirectory, problems);
  await requireDirectory(directory, problems);
  const folders = { directory, workingDirectory, ignored: IGNORED_IN_FILES };
  const { env, files } = withDotenv(options.env, folders, problems);
  problems.notices.push(...unknownVariables(env));
  const source = await readConfigFile(directory, env, problems);
  const { file } = source;
  const agents = await loadAgents(directory, file.context, env, problems);
  if (!source.isReadable) problems.throwIfAny(); // later checks would see defaults instead of the file
  const used = new Set(agents.flatMap(({ config }) => modelsOf(config, file)));
  source.reportMissingVariables(used);
  const models = await resolveModels({ ...source, env, directory, used, problems });
  const phases = mergePhases(file.phases, source, problems);
  const tools = await resolveTools(file.tools, folders, options.env, source, problems); // DOTENV-2
  checkModelNames(source, Object.keys(models), problems);
  checkAgents(agents, { models, summaryModel: file.context.summaryModel, phases, tools }, problems);
  const configs = agents.map(({ config }) => config);
  const slugs = configs.map(({ slug }) => slug);
  checkRules(tools, slugs, source, problems);
  const defaultAgent = chooseDefaultAgent(source, slugs, problems);
  const daemon = resolveSettings({ env, flags, workingDirectory, nats: file.nats }, file.http, problems);
  const isManaged = daemon.nats.kind === 'managed';
  const config: Config = {
    directory,
    defaultAgent,
    subjectPrefix: file.subjectPrefix,
    titleModel: file.titleModel,
    models,
    scripts: await digestScripts(models),
    agents: configs,
    roster: createRoster(configs, defaultAgent, Object.keys(models)),
    phases,
    context: file.context,
    limits: file.limits,
    retry: file.retry,
    tools,
    // Only the local person can reach a managed server.
    approvals: { approvers: isManaged ? ['*'] : [], ownRequests: isManaged, ...file.approvals },
    publishers: resolvePublishers(file.publishers, isManaged),
    ingress: file.ingress,
    blobs: file.blobs,
    retention: {
      conversations: durationOf(file.retention.conversations ?? ''),
      deadLetters: durationOf(file.retention.deadLetters ?? ''),
    },
    shutdown: file.shutdown,
    sharing: file.sharing,
    replicas: file.jetstream.replicas ?? null,
    remoteAgents: file.agents,
    prompts: await loadPrompts(directory, problems),
    workflows: await loadWorkflows(directory, { agents, tools }, problems),
    daemon,
    telemetry: resolveTelemetry(env, problems),
    traces: resolveTraces(file.telemetry, env, problems),
    ...sourcesOf(files(), [source, ...agents], [directory, workingDirectory], daemon),
    notices: problems.notices,
  };
  problems.throwIfAny();
  return freeze(config);
}

function sourcesOf(
  environmentFiles: Config['environmentFiles'],
  sources: readonly Pick<ConfigSource, 'variables'>[],
  folders: readonly string[],
  { nats }: Config['daemon'],
): Pick<Config, 'environmentFiles' | 'secretFiles' | 'variables'> {
  const possible = folders.map((folder) => resolve(folder, ENVIRONMENT_FILE));
  const variables = sources.flatMap((source) => source.variables);
  const hidden = variables.filter(([name]) => !PASSED_ON.includes(name));
  return {
    environmentFiles,
    secretFiles: [...possible, ...secretNatsFiles(nats)],
    variables: hidden.map(([, value]) => new Secret(value)),
  };
}

/** The shipped folder replaces a missing default folder, never a named one. */
async function findDirectory(
  { configDirectory, env }: LoadOptions,
  workingDirectory: string,
  problems: Problems,
): Promise<string> {
  const named = configDirectory ?? variable(env, CONFIG_VARIABLE);
  const directory = resolve(workingDirectory, named ?? DEFAULT_CONFIG);
  if (named !== undefined) return directory;
  const isThere = await stat(directory).then(
    () => true,
    (error: unknown) => errnoOf(error) !== 'ENOENT',
  );
  if (isThere) return directory;
  problems.notices.push(
    `there is no folder ${directory}: using the team that ships with Parley, ${SHIPPED_CONFIG}; to write a team of your own, run parley init in an empty folder`,
  );
  return SHIPPED_CONFIG;
}

/** Without the folder, no other check is useful. */
async function requireDirectory(directory: string, problems: Problems): Promise<void> {
  const found = await stat(directory).catch(() => null);
  if (found?.isDirectory()) return;
  problems.add({
    source: directory,
    seen: found === null ? null : 'a file',
    expected: 'the configuration folder, with agents/<slug>.md and perhaps parley.yaml',
    hint: `name it with --config or ${CONFIG_VARIABLE}; the one that ships with Parley: --config ${SHIPPED_CONFIG}`,
  });
  problems.throwIfAny();
}

/** Not an error: other programs may use the prefix too. */
function unknownVariables(env: Environment): string[] {
  const given = keyVariablesIn(env);
  if (given.length === 0) return [];
  const known = [...keyOfVariable().keys(), ...SETTING_VARIABLES, CRASH_POINTS_VARIABLE];
  return given
    .filter((name) => !known.includes(name))
    .flatMap((name) => {
      const near = nearest(
        name.slice('PARLEY_'.length),
        known.flatMap((one) => (one.startsWith('PARLEY_') ? [one.slice('PARLEY_'.length)] : [])),
      );
      return near === null ? [] : [`the variable ${name} means nothing here; did you mean PARLEY_${near}?`];
    });
}

/** The models that an agent uses, and the one for titles. */
function modelsOf(agent: AgentConfig, { models = {}, titleModel }: ConfigFile): string[] {
  const { summaryModel } = agent.context;
  const own = [agent.model, ...fallbacksOf(agent, models)];
  return [...own, summaryModel ?? [], titleModel ?? []].flat();
}

function checkModelNames(source: ConfigSource, models: readonly string[], problems: Problems): void {
  const { context, titleModel } = source.file;
  const named: [KeyPath, string | null][] = [
    [['context', 'summaryModel'], context.summaryModel],
    [['titleModel'], titleModel],
  ];
  for (const [path, name] of named)
    if (name !== null && !models.includes(name))
      problems.refuseName(source, path, name, 'a model of parley.yaml', models);
}

interface Known {
  readonly models: Config['models'];
  /** Named for all agents; checked already. */
  readonly summaryModel: string | null;
  readonly phases: PhaseTable;
  readonly tools: ToolsConfig;
}

function checkAgents(agents: readonly LoadedAgent[], known: Known, problems: Problems): void {
  const phaseNames = Object.keys(known.phases);
  const modelNames = Object.keys(known.models);
  for (const agent of agents) {
    const { config, locate } = agent;
    const refuse = (path: KeyPath, value: string, what: string, names: readonly string[]) => {
      if (!names.includes(value)) problems.refuseName(agent, path, value, what, names);
    };
    for (const [place, phase] of config.phases.entries()) {
      refuse(['phases', place], phase, 'a phase', phaseNames);
    }
    refuse(['model'], config.model, 'a model of parley.yaml', modelNames);
    const { fallback = [] } = (Object.hasOwn(known.models, config.model) && known.models[config.model]) || {};
    if (config.runtime !== 'local' && agent.namesModel && fallback.length > 0)
      problems.refuse(agent, ['model'], {
        seen: show(config.model),
        expected: `a model without fallback for an agent with runtime: ${config.runtime}`,
        hint: 'its program asks a model of its own: a fallback would have no effect',
      });
    checkAgentParameters(agent, known.models, problems);
    const { summaryModel } = config.context;
    if (summaryModel !== null && summaryModel !== known.summaryModel)
      refuse(['context', 'summaryModel'], summaryModel, 'a model of parley.yaml', modelNames);
    for (const [place, tool] of config.tools.entries()) {
      const unknown = unknownTool(tool, known.tools);
      if (unknown !== null) problems.notices.push(`${locate(['tools', place])}: ${unknown}`);
    }
  }
}

function chooseDefaultAgent(source: ConfigSource, slugs: readonly string[], problems: Problems): string {
  const wanted = source.file.defaultAgent;
  if (wanted !== undefined && slugs.length > 0 && !slugs.includes(wanted))
    problems.refuseName(source, ['defaultAgent'], wanted, 'an agent', slugs);
  if (wanted !== undefined) return wanted;
  return slugs.includes(PREFERRED_DEFAULT_AGENT) ? PREFERRED_DEFAULT_AGENT : (slugs[0] ?? '');
}

/** The built-in phases with the configured ones. A key that a row omits is taken from the built-in phase. */
function mergePhases(
  phases: Readonly<Record<string, PhaseFile>>,
  file: Located,
  problems: Problems,
): PhaseTable {
  const builtIn: PhaseTable = BUILT_IN_PHASES;
  const table: Record<string, PhaseSpec> = { ...builtIn };
  for (const [name, phase] of Object.entries(phases)) {
    const before = Object.hasOwn(builtIn, name) ? builtIn[name] : undefined;
    table[name] = {
      description: phase.description ?? before?.description ?? '',
      next: phase.next ?? before?.next ?? [],
    };
  }
  const names = Object.keys(table);
  for (const [name, phase] of Object.entries(phases)) {
    for (const [place, next] of (phase.next ?? []).entries())
      if (!names.includes(next))
        problems.refuseName(file, ['phases', name, 'next', place], next, 'a phase', names);
  }
  return table;
}

/** Deeply freezes plain data, so that an accidental change throws. Other objects are not frozen. */
export function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== Array.prototype) return value;
  for (const inner of Object.values(value)) freeze(inner);
  return Object.freeze(value);
}

const PROMPTS = { baseChat: 'chat.md', baseRun: 'run.md', toolPolicy: 'tools.md' } as const satisfies Record<
  keyof PromptTexts,
  string
>;

/** Reads `prompts/*.md`; a missing prompt is taken from the shipped folder. */
async function loadPrompts(directory: string, problems: Problems): Promise<PromptTexts> {
  const known: readonly string[] = Object.values(PROMPTS);
  for (const name of await listFiles(join(directory, 'prompts'), '.md', problems)) {
    if (!known.includes(name)) {
      problems.notices.push(
        `${join(directory, 'prompts', name)} is not read: the prompts are ${known.join(', ')}`,
      );
    }
  }
  const read = async (name: string) => {
    const own = await readIfThere(join(directory, 'prompts', name), problems);
    const text = own ?? (await readIfThere(join(SHIPPED_CONFIG, 'prompts', name), problems));
    return (text ?? '').replaceAll('\r\n', '\n').trim();
  };
  return {
    baseChat: await read(PROMPTS.baseChat),
    baseRun: await read(PROMPTS.baseRun),
    toolPolicy: await read(PROMPTS.toolPolicy),
  };
}
