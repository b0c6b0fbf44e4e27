import { z } from 'zod';
import { modelFileSchema } from './model-file.ts';
import { configFileSchema } from './schema.ts';

/**
 * The names of the variables that stand for keys of `parley.yaml`, derived from the schema: `PARLEY_` and the key's
 * path in capitals; a word that would stand twice in a row stands once (`context.contextMaxChars` →
 * `PARLEY_CONTEXT_MAX_CHARS`). Only keys that hold one value have a variable. The environment itself is handed in.
 */

export type Environment = Readonly<Record<string, string | undefined>>;

/** An unset variable and an empty one are the same: nothing was said. */
export function variable(env: Environment, name: string): string | undefined {
  const value = env[name];
  return value === '' ? undefined : value;
}

export function variableOf(path: readonly string[]): string {
  const words = path.flatMap((part) => part.replaceAll(/([a-z])([A-Z])/g, '$1_$2').split(/[_-]/));
  const upper = words.map((word) => word.toUpperCase());
  return ['PARLEY', ...upper.filter((word, place) => word !== upper[place - 1])].join('_');
}

interface JsonSchema {
  readonly type?: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
}

/** The JSON Schema of `parley.yaml`; `config/parley.schema.json` is this. */
export function configJsonSchema(): Record<string, unknown> {
  const { $schema, ...rest } = z.toJSONSchema(configFileSchema, { io: 'input' });
  return { $schema, title: 'parley.yaml', ...rest };
}

function singleValues(schema: JsonSchema, path: readonly string[]): (readonly string[])[] {
  if (schema.properties) {
    return Object.entries(schema.properties).flatMap(([key, value]) => singleValues(value, [...path, key]));
  }
  const alternatives = schema.anyOf ?? [schema];
  return alternatives.some(({ type }) => type === 'object' || type === 'array') ? [] : [path];
}

/** Variable → key path, for every key that holds one value. `models.default.*` included. */
export const KEY_OF_VARIABLE: ReadonlyMap<string, readonly string[]> = new Map(
  [
    ...singleValues(z.toJSONSchema(configFileSchema, { io: 'input' }) as JsonSchema, []),
    ...singleValues(z.toJSONSchema(modelFileSchema, { io: 'input' }) as JsonSchema, ['models', 'default']),
  ].map((path) => [variableOf(path), path]),
);

/** The keys that may stand at `path` of a schema; what a typing error is compared with. */
export function knownKeys(schema: z.ZodType, path: readonly (string | number)[]): string[] {
  let here: JsonSchema | undefined = z.toJSONSchema(schema, { io: 'input' }) as JsonSchema;
  for (const part of path) {
    const extra: JsonSchema | boolean | undefined = here?.additionalProperties;
    here =
      typeof part === 'number'
        ? here?.items
        : (here?.properties?.[part] ?? (typeof extra === 'object' ? extra : undefined));
  }
  return Object.keys(here?.properties ?? {});
}
