import type { JsonRecord } from '../../kernel/index.ts';
import type { Entry } from './entry.ts';

/**
 * Typed answers: the last message of a turn is JSON that matches a schema.
 *
 * TYPED-1 The schema of a turn is that of the newest entry of its trigger that has one, else that of its agent.
 * TYPED-2 An answer that does not match is kept (`invalid`) and the same turn continues, once; the second one fails the turn.
 * TYPED-3 The daemon checks an answer before it is appended. The log has the value, so that readers check nothing.
 */

/** How an answer compares with the schema of its turn. */
export type TypedAnswer =
  | { readonly kind: 'valid'; readonly value: unknown }
  /** `why`: for the model that wrote it. */
  | { readonly kind: 'invalid'; readonly why: string }
  /** The schema itself is at fault, or takes too long: asking again would not help. */
  | { readonly kind: 'unchecked'; readonly why: string };

/** TYPED-1. Undefined: no entry of this trigger has a schema. */
export function askedSchema(entries: readonly Entry[], trigger: readonly number[]): JsonRecord | undefined {
  for (const index of [...trigger].sort((a, b) => b - a)) {
    const schema = schemaIn(entries[index]);
    if (schema) return schema;
  }
  return undefined;
}

export function schemaIn(entry: Entry | undefined): JsonRecord | undefined {
  return entry?.type === 'message' || entry?.type === 'delegation-requested' ? entry.schema : undefined;
}

/** For the agent that answers. The schema is one line: JSON has no line breaks of its own. */
export function schemaWords(schema: JsonRecord): string {
  return `Your last message of this turn must be one JSON value that matches this JSON Schema, without any other text:\n${JSON.stringify(schema)}`;
}
