import { z } from 'zod';
import { modelFileSchema } from './model-file.ts';
import { configFileSchema } from './schema.ts';
import { type Environment, variableOf } from './setting-sources.ts';
import { CRASH_POINTS_VARIABLE, SETTING_VARIABLES } from './settings.ts';

/** The keys of `parley.yaml`, read from its schema. */

interface JsonSchema {
  readonly type?: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
}

export function editorSchema(title: string, schema: z.ZodType): Record<string, unknown> {
  const { $schema, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  return { $schema, title, ...rest };
}

/** Converting a schema takes milliseconds, and one wrong key needs several lookups. */
const converted = new WeakMap<z.ZodType, JsonSchema>();

function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  const known = converted.get(schema) ?? (z.toJSONSchema(schema, { io: 'input' }) as JsonSchema);
  converted.set(schema, known);
  return known;
}

/** Types without a single value. `null` only says that the key may be empty. */
const MANY: ReadonlySet<unknown> = new Set(['object', 'array', 'null']);

function singleValues(schema: JsonSchema, path: readonly string[]): (readonly string[])[] {
  if (schema.properties) {
    return Object.entries(schema.properties).flatMap(([key, value]) => singleValues(value, [...path, key]));
  }
  const alternatives = schema.anyOf ?? [schema];
  return alternatives.every(({ type }) => MANY.has(type)) ? [] : [path];
}

let keyOf: ReadonlyMap<string, readonly string[]> | null = null;

/** Variable → key path, for every key with a single value, including `models.default.*`. */
export function keyOfVariable(): ReadonlyMap<string, readonly string[]> {
  keyOf ??= new Map(
    [
      ...singleValues(jsonSchemaOf(configFileSchema), []),
      ...singleValues(jsonSchemaOf(modelFileSchema), ['models', 'default']),
    ].map((path) => [variableOf(path), path]),
  );
  return keyOf;
}

const NOT_KEYS: ReadonlySet<string> = new Set([...SETTING_VARIABLES, CRASH_POINTS_VARIABLE]);

/** The variables of the environment that may be those of keys. Mostly there are none, and `keyOfVariable` is not needed. */
export function keyVariablesIn(env: Environment): string[] {
  return Object.keys(env).filter((name) => name.startsWith('PARLEY_') && !NOT_KEYS.has(name));
}

/** The keys that a schema allows at `path`, to suggest a correction. */
export function knownKeys(schema: z.ZodType, path: readonly (string | number)[]): string[] {
  let here: JsonSchema | undefined = jsonSchemaOf(schema);
  for (const part of path) {
    const extra: JsonSchema | boolean | undefined = here?.additionalProperties;
    here =
      typeof part === 'number'
        ? here?.items
        : (here?.properties?.[part] ?? (typeof extra === 'object' ? extra : undefined));
  }
  return Object.keys(here?.properties ?? {});
}
