import { isRecord, type JsonRecord } from '../../kernel/index.ts';
import { escapeTokens } from '../text/text.ts';

/**
 * The schema for providers: some refuse an object without `properties`, a `$schema`, an array without `items`, a list of them
 * (`prefixItems` since 2020-12), alternatives at the top, or a type beside alternatives. The arguments of a call are checked by the
 * schema as it is.
 */
export function wireParameters(schema: JsonRecord): JsonRecord {
  const { $schema, not, enum: values, ...rest } = schema;
  return withItems(flat({ ...rest, type: 'object', properties: rest.properties }));
}

/** An object with the properties of its alternatives, which are then optional ones. */
function flat({ anyOf, oneOf, allOf, ...rest }: JsonRecord): JsonRecord {
  const branches = [anyOf, oneOf, allOf].flat().filter(isRecord);
  const inBranches = Object.assign({}, ...branches.map(({ properties }) => properties));
  return { ...rest, properties: { ...inBranches, ...Object(rest.properties) } };
}

/** Each type is that of the alternatives or of the referenced schema, and values have one. */
function withTypes(schema: JsonRecord): JsonRecord {
  const { type, ...rest } = schema;
  const alternatives = [rest.anyOf, rest.oneOf].flat().filter(isRecord);
  if (type === undefined) {
    const [only, ...others] = new Set([rest.enum].flat().map((value) => typeof value));
    return only === 'string' && others.length === 0 ? { type: only, ...rest } : schema;
  }
  if (alternatives.length === 0) return rest.$ref === undefined ? schema : rest;
  if (type === 'object' && alternatives.every(({ $ref }) => $ref === undefined)) return flat(schema);
  const typed = (branch: unknown) =>
    isRecord(branch) && branch.$ref === undefined ? { type, ...branch } : branch;
  return {
    ...rest,
    ...(Array.isArray(rest.anyOf) && { anyOf: rest.anyOf.map(typed) }),
    ...(Array.isArray(rest.oneOf) && { oneOf: rest.oneOf.map(typed) }),
  };
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
  return isRecord(value) ? withItems(withTypes(value)) : value;
}
