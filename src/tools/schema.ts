import { z } from 'zod';
import { messageOf } from '../kernel/index.ts';

/** The schema of a tool's arguments for a model, and the faults of the arguments in a call. */

/** `io`: whether keys with a default are required (`output`) or not (`input`). */
export function parametersOf(schema: z.ZodType, io: 'input' | 'output'): Readonly<Record<string, unknown>> {
  const { $schema, ...parameters } = z.toJSONSchema(schema, { io });
  return parameters;
}

/** Null: the arguments match the schema. Never throws: a schema may have code of a program. */
export function argumentsFault(name: string, schema: z.ZodType, given: unknown): string | null {
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
