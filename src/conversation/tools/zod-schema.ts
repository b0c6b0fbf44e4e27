import { z } from 'zod';
import { type JsonRecord, messageOf } from '../../kernel/index.ts';

/** Schemas of zod that programs give: as JSON Schema for a model, and the faults of a value. */

/** `io`: whether keys with a default are required (`output`) or not (`input`). Throws for a type without a JSON Schema. */
export function jsonSchemaOf(schema: z.ZodType, io: 'input' | 'output'): JsonRecord {
  const { $schema, ...rest } = z.toJSONSchema(schema, { io });
  return rest;
}

/** Null: the value matches the schema. Never throws: a schema may have code of a program. */
export function faultBySchema(name: string, schema: z.ZodType, given: unknown): string | null {
  try {
    const parsed = schema.safeParse(given);
    return parsed.success ? null : `${name}: ${parsed.error.issues.map(problem).join('; ')}`;
  } catch (error) {
    return `${name}: ${messageOf(error)}`;
  }
}

function problem(issue: z.core.$ZodIssue): string {
  const where = issue.path.length > 0 ? `${issue.path.join('.')}: ` : '';
  return `${where}${issue.message}`;
}
