import { dirname, join, resolve } from 'node:path';
import {
  type AgentCard,
  looksLike,
  nameFromSlug,
  OWN_PUBLISHERS,
  PERMIT,
  SLUG_PATTERN,
  SYSTEM_AUTHOR,
} from '../../conversation/index.ts';
import { type JsonRecord, monotonicClock, parseJson } from '../../kernel/index.ts';
import { type Checkable, check } from '../files/check.ts';
import { listFiles, readIfThere, splitFrontMatter } from '../files/read-file.ts';
import {
  missingVariable,
  parseMapping,
  type Substitution,
  substitute,
  type YamlSource,
} from '../files/yaml-file.ts';
import { isSame, type KeyPath, type Located, overlap, type Problems, removeAt, show } from '../problems.ts';
import type { AcpConfig, AgentConfig } from '../schema/config.ts';
import { type AgentFile, agentFileSchema, type ContextConfig } from '../schema/schema.ts';
import { Secret } from '../schema/secret.ts';
import type { Environment } from '../schema/setting-sources.ts';
import { resolveParameters } from './models.ts';

/** Reads `agents/<slug>.md`: YAML between two lines of `---`, then the persona. */

/** Keys: those of its front matter. */
export interface LoadedAgent extends Required<Located> {
  readonly config: AgentConfig;
  /** Its front matter has the key `model`. */
  readonly namesModel: boolean;
  /** Those that its front matter names, with their values. */
  readonly variables: Substitution['used'];
}

export async function loadAgents(
  directory: string,
  context: ContextConfig,
  env: Environment,
  problems: Problems,
): Promise<LoadedAgent[]> {
  const folder = join(directory, 'agents');
  const agents: LoadedAgent[] = [];
  const before = problems.notices.length;
  const files = await listFiles(folder, '.md', problems);
  const strays = problems.notices.slice(before);
  for (const name of files) {
    const file = join(folder, name);
    const slug = name.slice(0, -'.md'.length);
    const text = await readIfThere(file, problems);
    if (text === null) continue;
    if (LATE_FRONT_MATTER.test(text)) {
      problems.notices.push(`${file}: its keys are not read, since the first --- is not in the first line`);
    }
    if (SLUG_PATTERN.test(slug)) agents.push(await readAgent({ file, slug, text, env }, context, problems));
    else problems.add(badSlug(file, slug));
  }
  if (files.length === 0) {
    problems.add({
      source: folder,
      seen: strays.length === 0 ? null : strays.join('; '),
      expected: 'at least one agent: a file <slug>.md',
      hint:
        strays.length === 0
          ? 'name the folder of your configuration with --config, or copy the one that Parley ships'
          : 'rename the file to <slug>.md: its name is the slug by which people address the agent',
    });
  }
  refuseAmbiguousNames(agents, problems);
  refuseOwnPublishers(agents, problems);
  return agents.sort((left, right) => (left.config.slug < right.config.slug ? -1 : 1));
}

function badSlug(file: string, slug: string) {
  return {
    source: file,

    seen: `a file named ${show(slug)}`,
    expected: 'a name of lower-case letters, digits and -, at most 64, that begins with a letter or digit',
    hint: 'the file name is the slug by which people address the agent: rename the file',
  };
}

interface AgentSource {
  readonly file: string;
  readonly slug: string;
  readonly text: string;
  readonly env: Environment;
}

async function readAgent(
  agent: AgentSource,
  context: ContextConfig,
  problems: Problems,
): Promise<LoadedAgent> {
  const { file, slug } = agent;
  const parts = splitFrontMatter(agent.text);
  if (!parts) {
    problems.add({
      source: `${file}:1:1`,
      seen: 'front matter that never ends',
      expected: 'a second line of --- before the persona',
    });
  }
  const { frontMatter, persona } = parts ?? { frontMatter: '', persona: '' };
  const source = parseMapping(file, frontMatter, problems, 2);
  const reported: KeyPath[] = parts && source.isValid ? [] : [[]]; // all of it
  const found: Substitution[] = [];
  const input = withVariables(source, { env: agent.env, found }, reported, problems);
  const {
    model,
    context: overrides,
    parameters,
    absent,
    absentSeconds,
    command,
    cwd,
    env,
    idleSeconds,
    answers: given,
    clientTools,
    ...front
  }: AgentFile = check(agentFileSchema, input, problems);
  const { maxOutputTokens } = parameters;
  if (source.isValid) refuseIdleAbsence(source, { absent, absentSeconds, runtime: front.runtime }, problems);
  const acp = { command, cwd, env, idleSeconds };
  if (source.isValid) refuseAcpKeys(source, front.runtime, acp, problems);
  const answers = await readSchema(given, file, source, problems);
  const isCoding = front.runtime === 'acp';
  const tools = isCoding ? [...new Set([...front.tools, ...Object.values(PERMIT)])] : front.tools;
  const takesTools = clientTools && !isCoding; // a coding agent answers its calls by itself
  const card: AgentCard = {
    slug,
    ...front,
    tools,
    name: front.name ?? nameFromSlug(slug),
    ...(!takesTools && { clientTools: false }),
  };
  return {
    config: {
      ...card,
      model,
      persona,
      ...(answers && { answers }),
      context: { ...context, ...defined(overrides) },
      parameters: {
        ...resolveParameters(parameters),
        ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
      },
      absentMs: absent === 'wait' ? absentMsOf(absentSeconds) : null,
      ...(isCoding && { acp: acpOf(acp) }),
      file,
    },
    namesModel: Object.hasOwn(Object(input.data), 'model'),
    variables: found.flatMap(({ used }) => used),
    locate: source.locate,
    isReported: (path) => reported.some((one) => overlap(one, path)),
  };
}

export const SCHEMA_WANTED =
  'a JSON Schema, such as { type: object, properties: { city: { type: string } }, required: [city] }';

/** Loaded where a file has a schema. */
export async function schemaCheck(): Promise<(schema: unknown) => string | null> {
  const { schemaFault, CheckBudget } = await import('../../kernel/json-schema.ts');
  const budget = new CheckBudget(monotonicClock);
  return (schema) => schemaFault(schema, budget);
}

/** Inline, or from a file. Undefined: none, or none that can be used. */
async function readSchema(
  given: AgentFile['answers'],
  file: string,
  source: YamlSource,
  problems: Problems,
): Promise<JsonRecord | undefined> {
  if (given === undefined) return undefined;
  const path = typeof given === 'string' ? resolve(dirname(file), given) : null;
  const text = path === null ? null : await readIfThere(path, problems);
  const schema = path === null ? given : parseJson(text ?? '');
  const isMissing = path !== null && (text === null || schema === undefined);
  const fault = isMissing ? `${path} is not there, or is not JSON` : (await schemaCheck())(schema);
  if (fault === null) return schema as JsonRecord;
  problems.refuse(source, ['answers'], {
    seen: fault,
    expected: `${SCHEMA_WANTED}, or the name of a JSON file with one`,
  });
  return undefined;
}

/** Without a limit of its own, the time limit of the turn applies. */
function absentMsOf(seconds: number | undefined): number {
  return seconds === undefined ? Number.MAX_SAFE_INTEGER : seconds * 1_000;
}

type AcpKeys = Pick<AgentFile, 'command' | 'cwd' | 'env' | 'idleSeconds'>;

const IDLE_SECONDS = 600;

function acpOf({ command = [], cwd = '@project', env = {}, idleSeconds = IDLE_SECONDS }: AcpKeys): AcpConfig {
  const secrets = Object.entries(env).map(([name, value]) => [name, new Secret(value)]);
  return { command, cwd, env: Object.fromEntries(secrets), idleSeconds };
}

function refuseAcpKeys(
  source: YamlSource,
  runtime: AgentFile['runtime'],
  keys: AcpKeys,
  problems: Problems,
): void {
  if (runtime === 'acp' && keys.command === undefined)
    problems.add({
      source: source.locate(['runtime']),
      key: 'command',
      seen: 'nothing',
      expected: 'the command of the coding agent, such as [opencode, acp]',
    });
  if (runtime === 'acp') return;
  for (const [key, value] of Object.entries(keys))
    if (value !== undefined)
      problems.refuse(source, [key], { seen: show(value), expected: `runtime: acp, or no ${key}` });
}

/** A key that would have no effect. */
function refuseIdleAbsence(
  source: YamlSource,
  { absent, absentSeconds, runtime }: Pick<AgentFile, 'absent' | 'absentSeconds' | 'runtime'>,
  problems: Problems,
): void {
  const refuse = (key: string, seen: unknown, expected: string) =>
    problems.refuse(source, [key], { seen: show(seen), expected });
  if (absent === 'wait' && runtime !== 'bus') refuse('absent', absent, 'runtime: bus, or no absent');
  if (absentSeconds !== undefined && absent !== 'wait')
    refuse('absentSeconds', absentSeconds, 'absent: wait, or no absentSeconds');
}

/** Replaces `${NAME}` in `parameters` and `env` alone: other texts of an agent may contain it. */
function withVariables(
  source: YamlSource,
  { env, found }: { readonly env: Environment; readonly found: Substitution[] },
  reported: KeyPath[],
  problems: Problems,
): Checkable {
  const data = { ...source.data };
  for (const key of ['parameters', 'env'])
    if (data[key] !== undefined) data[key] = substitute(data[key], env, found, [key]);
  for (const one of found.filter(({ missing }) => missing.length > 0)) {
    problems.add(missingVariable(source, one));
    reported.push(removeAt(data, one.path));
  }
  const origin = (path: KeyPath) => found.find((one) => isSame(one.path, path))?.written;
  return { data, locate: source.locate, origin, reported };
}

/** Empty lines, then two lines of `---`: probably meant as front matter. */
const LATE_FRONT_MATTER = /^\uFEFF?\s*\n---[ \t\r]*\n[\s\S]*\n---[ \t\r]*(?:\n|$)/;

function defined(overrides: AgentFile['context']): Partial<ContextConfig> {
  return Object.fromEntries(Object.entries(overrides).filter(([, value]) => value !== undefined));
}

/** Posts of a caller without a publisher would be refused: their publisher would be the name of an agent (PERSON-3). */
function refuseOwnPublishers(agents: readonly LoadedAgent[], problems: Problems): void {
  for (const agent of agents) {
    const { config } = agent;
    const isTaken = (name: string) => OWN_PUBLISHERS.some((taken) => looksLike(taken, name));
    const expected = `none of ${OWN_PUBLISHERS.join(', ')}: callers without a publisher post under these names`;
    if (isTaken(config.slug)) {
      const hint = 'rename the file: its name is the slug';
      problems.add({ source: config.file, seen: `the slug ${show(config.slug)}`, expected, hint });
    } else if (isTaken(config.name)) problems.refuse(agent, ['name'], { seen: show(config.name), expected });
  }
}

/** `[Name]` must identify the speaker: no name may look like another agent's name or slug, or the name of the system. */
function refuseAmbiguousNames(agents: readonly LoadedAgent[], problems: Problems): void {
  for (const [place, agent] of agents.entries()) {
    const { config } = agent;
    const others = agents.flatMap(({ config: { slug, name, file } }, otherPlace) => {
      if (otherPlace === place) return [];
      const own = { taken: slug, as: `the slug of ${file}` };
      return otherPlace < place ? [own, { taken: name, as: `the name of ${file}` }] : [own];
    });
    const reserved = { taken: SYSTEM_AUTHOR.name, as: 'the name of the system' };
    const alike = [...others, reserved].find(({ taken }) => looksLike(taken, config.name));
    if (!alike) continue;
    problems.refuse(agent, ['name'], {
      seen: show(config.name),
      expected: `a name of its own: this is ${alike.as}, ${show(alike.taken)}; characters that look alike count as equal`,
    });
  }
}
