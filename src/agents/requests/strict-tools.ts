import type { WireTool } from '../model-port.ts';

/**
 * Marks a tool as strict where its schema is one that strict tools may have, as it stands: closed objects, every
 * property required, no keyword that not every provider of strict tools knows. Nothing is rewritten: an optional
 * property made required and nullable would bring arguments that the tool itself refuses.
 */
export function strictTool(tool: WireTool): WireTool {
  if (!isStrict(tool.function.parameters) || tool.function.parameters.type !== 'object') return tool;
  return { ...tool, function: { ...tool.function, strict: true } };
}

const KEYWORDS: ReadonlySet<string> = new Set([
  '$schema',
  'additionalProperties',
  'anyOf',
  'description',
  'enum',
  'items',
  'properties',
  'required',
  'title',
  'type',
]);

function isStrict(schema: unknown): boolean {
  if (!isRecord(schema) || Object.keys(schema).some((key) => !KEYWORDS.has(key))) return false;
  const { type, properties, required, additionalProperties, items, anyOf } = schema;
  if (anyOf !== undefined) return Array.isArray(anyOf) && anyOf.every(isStrict);
  if (type === 'array') return isStrict(items);
  if (type !== 'object') return typeof type === 'string';
  const known = isRecord(properties) ? properties : {};
  const named = new Set(Array.isArray(required) ? required : []);
  const isClosed = additionalProperties === false && Object.keys(known).every((key) => named.has(key));
  return isClosed && Object.values(known).every(isStrict);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
