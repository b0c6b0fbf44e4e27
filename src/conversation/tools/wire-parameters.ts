import { isRecord, type JsonRecord } from '../../kernel/index.ts';
import { escapeTokens } from '../text/text.ts';

/**
 * The schema for providers: some refuse an object without `properties`, a `$schema`, an array without `items`, a list of them
 * (`prefixItems` since 2020-12), or alternatives at the top, whose properties are then optional ones. The arguments
 * of a call are checked by the schema as it is.
 */
export function wireParameters(schema: JsonRecord): JsonRecord {
  const { $schema, anyOf, oneOf, allOf, not, enum: values, ...rest } = schema;
  const branches = [anyOf, oneOf, allOf].flat().filter(isRecord);
  const inBranches = Object.assign({}, ...branches.map(({ properties }) => properties));
  return withItems({ ...rest, type: 'object', properties: { ...inBranches, ...Object(rest.properties) } });
}

/** Under these keys are names of its author, not keywords. */
const NAMED = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);
/** Under these are texts of its author, in which special tokens of chat templates are escaped (MARKER-3). */
const TEXTS = new Set(['title', 'description', '$comment']);
/** Under these are values. */
const VALUES = new Set(['enum', 'const', 'default', 'examples', 'required']);

function withItems(schema: JsonRecord): JsonRecord {
  const kept = Object.entries(schema).map(([key, value]): [string, unknown] => {
    if (VALUES.has(key)) return [key, value];
    if (TEXTS.has(key) && typeof value === 'string') return [key, escapeTokens(value)];
    if (NAMED.has(key) && isRecord(value))
      return [key, Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, inSchema(inner)]))];
    return [key, Array.isArray(value) ? value.map(inSchema) : inSchema(value)];
  });
  const result: Record<string, unknown> = Object.fromEntries(kept);
  if (Array.isArray(result.items)) {
    result.prefixItems = result.items;
    result.items = result.additionalItems ?? {};
    delete result.additionalItems;
  } else if ([result.type].flat().includes('array')) result.items ??= {};
  return result;
}

function inSchema(value: unknown): unknown {
  return isRecord(value) ? withItems(value) : value;
}
