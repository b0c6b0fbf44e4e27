import type { ServerAsks } from './entry.ts';

export type Field = Readonly<Record<string, unknown>>;

/** Who asks what, and where the answer goes, for the person who gives it. */
export function askedText({ server, message, url, schema }: ServerAsks): string {
  const asking = `the server ${server}, a program outside of Parley, asks “${message}”`;
  if (url !== undefined)
    return `${asking}. Open ${url} yourself, then approve: the server learns that you agreed`;
  const fields = fieldsAsked(schema).map(([name, { type, description, title, enum: values }]) => {
    const kind = Array.isArray(values) ? `one of ${JSON.stringify(values)}` : type === 'string' ? '' : type;
    const about = [title, description, kind].filter(Boolean).join(', ');
    return about ? `${name} (${about})` : name;
  });
  const asked = fields.length > 0 ? `${asking}. Fields: ${fields.join('; ')}` : asking;
  return `${asked}. The answer goes to that server and is kept in the log: give it no passwords or keys`;
}

/** The defaults of the fields, and an empty value for each that is required. */
export function proposedAnswer(schema: ServerAsks['schema']): Record<string, unknown> {
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.fromEntries(
    fieldsAsked(schema).flatMap(([name, field]) => {
      if (field.default === undefined && !required.includes(name)) return [];
      return [[name, field.default ?? EMPTY[String(field.type)] ?? '']];
    }),
  );
}

const EMPTY: Field = { boolean: false, number: 0, integer: 0, array: [] };

/** By name. */
export function fieldsAsked({ properties }: ServerAsks['schema']): [string, Field][] {
  const isRecord = (value: unknown): value is Field => typeof value === 'object' && value !== null;
  return isRecord(properties)
    ? (Object.entries(properties).filter(([, field]) => isRecord(field)) as [string, Field][])
    : [];
}
