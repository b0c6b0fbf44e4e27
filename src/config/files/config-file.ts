import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecord } from '../../kernel/index.ts';
import {
  isSame,
  type KeyPath,
  keyText,
  type Located,
  overlap,
  type Problems,
  removeAt,
  setAt,
} from '../problems.ts';
import { type ConfigFile, configFileSchema } from '../schema/schema.ts';
import { keyOfVariable, keyVariablesIn } from '../schema/schema-keys.ts';
import { type Environment, variable } from '../schema/setting-sources.ts';
import { type Checkable, check } from './check.ts';
import { readIfThere } from './read-file.ts';
import {
  missingVariable,
  parseMapping,
  type Substitution,
  substitute,
  type YamlSource,
} from './yaml-file.ts';

/** Reads `parley.yaml`, applies variables of the environment, and checks the result against the schema. */

const FILE_NAME = 'parley.yaml';

export interface ConfigSource extends Required<Located> {
  readonly file: ConfigFile;
  /** False: the file could not be read, and that was reported. */
  readonly isReadable: boolean;
  /** The variables that the file names, with their values. */
  readonly variables: Substitution['used'];
  /** A missing variable is a problem; for the key of a model that no agent uses, it is a notice. */
  reportMissingVariables(usedModels: ReadonlySet<string>): void;
}

export async function readConfigFile(
  directory: string,
  env: Environment,
  problems: Problems,
): Promise<ConfigSource> {
  const path = join(directory, FILE_NAME);
  const text = await readIfThere(path, problems);
  if (text === null && (await isThere(join(directory, 'parley.yml')))) {
    problems.notices.push(`${join(directory, 'parley.yml')} is not read: rename it to ${FILE_NAME}`);
  }
  const yaml = parseMapping(path, text ?? '', problems);
  const substitutions: Substitution[] = [];
  const data = withoutEmptySections(substitute(yaml.data, env, substitutions));
  const overrides = overlayEnvironment(data, env);
  const locate: YamlSource['locate'] = (key, isKey) => variableAt(overrides, key) ?? yaml.locate(key, isKey);
  const missing = substitutions.filter((one) => one.missing.length > 0 && !variableAt(overrides, one.path));
  const reported: KeyPath[] = missing.map((one) => removeAt(data, one.path));
  const file = check(
    configFileSchema,
    checkable(data, locate, overrides, substitutions, env, reported),
    problems,
  );
  refuseWrittenTokens(file, substitutions, locate, problems);
  const reportMissingVariables = (usedModels: ReadonlySet<string>) => {
    for (const one of missing) reportMissing(one, yaml, usedModels, problems);
  };
  const isReported = (key: KeyPath) => reported.some((one) => overlap(one, key));
  const variables = substitutions.flatMap(({ used }) => used);
  return { file, isReadable: yaml.isValid, variables, locate, isReported, reportMissingVariables };
}

/** The file is not secret, so it must name the variable that contains a person's token. */
function refuseWrittenTokens(
  { http }: ConfigFile,
  substitutions: readonly Substitution[],
  locate: (path: KeyPath) => string,
  problems: Problems,
): void {
  http.people.forEach((_, place) => {
    const path = ['http', 'people', place, 'token'];
    if (substitutions.some((one) => isSame(one.path, path))) return;
    problems.refuse({ locate }, path, {
      seen: 'a token in plain text',
      expected: 'the name of a variable that contains it, in braces after a dollar sign',
    });
  });
}

async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null;
}

/** `limits:` with every line below it commented out is null, and counts as absent. */
function withoutEmptySections(data: unknown): Record<string, unknown> {
  if (!isRecord(data)) return {};
  return Object.fromEntries(Object.entries(data).filter(([, value]) => value !== null));
}

interface Override {
  readonly name: string;
  readonly path: KeyPath;
}

function overlayEnvironment(data: Record<string, unknown>, env: Environment): Override[] {
  const overrides: Override[] = [];
  for (const name of keyVariablesIn(env)) {
    const value = variable(env, name);
    const path = keyOfVariable().get(name);
    if (value === undefined || path === undefined) continue;
    setAt(data, path, value);
    overrides.push({ name, path });
  }
  return overrides;
}

function variableAt(overrides: readonly Override[], path: KeyPath): string | undefined {
  const found = overrides.find((one) => isSame(one.path, path));
  return found && `environment ${found.name}`;
}

function checkable(
  data: Record<string, unknown>,
  locate: (path: KeyPath) => string,
  overrides: readonly Override[],
  substitutions: readonly Substitution[],
  env: Environment,
  reported: KeyPath[],
): Checkable {
  const origin = (path: KeyPath): string | undefined => {
    const same = (one: { readonly path: KeyPath }) => isSame(one.path, path);
    const override = overrides.find(same);
    if (override)
      return path.at(-1) === 'apiKey' || path.includes('tokens') || path[0] === 'nats'
        ? `\${${override.name}}`
        : JSON.stringify(env[override.name]);
    return substitutions.find(same)?.written;
  };
  return { data, locate, origin, reported };
}

function reportMissing(
  { path, missing, written }: Pick<Substitution, 'path' | 'written' | 'missing'>,
  yaml: YamlSource,
  usedModels: ReadonlySet<string>,
  problems: Problems,
): void {
  const [section, model, key] = path;
  const isKey = key === 'apiKey' || key === 'apiKeys';
  const names = missing.join(', ');
  if (section === 'models' && (isKey || key === 'headers') && !usedModels.has(String(model))) {
    problems.notices.push(
      `${yaml.locate(path)}: ${keyText(path)} is empty, since ${names} is not set; no agent uses that model`,
    );
    return;
  }
  problems.add({
    ...missingVariable(yaml, { path, missing, written }),
    ...(isKey ? { hint: 'or provider: scripted, to work offline without a key' } : {}),
  });
}
