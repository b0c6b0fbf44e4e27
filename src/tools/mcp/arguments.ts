import type { Tool } from '@modelcontextprotocol/client';
import { escapeTokens } from '../../conversation/index.ts';
import { hasLoneSurrogate, isRecord, type JsonRecord } from '../../kernel/index.ts';
import { type CheckBudget, draftFault, shapeFault, valueCheck } from '../../kernel/json-schema.ts';

/** Null: the arguments match the schema; else the error, for the model. */
export type ArgumentsCheck = (given: unknown) => string | null;

/** Where the server's schema cannot be compiled or its budget is spent, the server checks instead. */
export function argumentsCheck(schema: JsonRecord, budget: CheckBudget): ArgumentsCheck {
  const check = valueCheck(schema, budget, 'arguments');
  return (given) => (isRecord(given) ? (check(given) ?? null) : 'the arguments must be an object');
}

/**
 * Why a strict provider would refuse every request that offers this tool; null: it would not. One of them reads all tools of a
 * request as JSON Schema, and texts as UTF-8.
 */
export function toolFault(
  { name, title, description, inputSchema }: Tool,
  budget: CheckBudget,
): string | null {
  if ([name, title ?? '', description ?? ''].some(hasLoneSurrogate))
    return 'it has half a character (a lone surrogate)';
  const fault = shapeFault(inputSchema) ?? budget.spend(() => draftFault(inputSchema)); // without time, it counts as right
  return fault?.replace(/^the schema/, 'its schema') ?? null;
}

/**
 * The schema for providers: some refuse an object without `properties`, a `$schema`, an array without `items`, a list of them
 * (`prefixItems` since 2020-12), or alternatives at the top, whose properties are then optional ones. Our check, and the
 * server's, use the schema as it is.
 */
export function wireParameters(schema: JsonRecord): JsonRecord {
  const { $schema, anyOf, oneOf, allOf, not, enum: values, ...rest } = schema;
  const branches = [anyOf, oneOf, allOf].flat().filter(isRecord);
  const inBranches = Object.assign({}, ...branches.map(({ properties }) => properties));
  return withItems({ ...rest, type: 'object', properties: { ...inBranches, ...Object(rest.properties) } });
}

/** Under these keys are names of the server, not keywords. */
const NAMED = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);
/** Under these are texts of the server, in which special tokens of chat templates are escaped (MARKER-3). */
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
