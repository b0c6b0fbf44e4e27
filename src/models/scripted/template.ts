import type { ReplyData } from './script.ts';

/** Values for the placeholders of a reply: `{{last}}`, `{{agent}}`, `{{conversation}}`, `{{n}}`, `{{1}}`. */
export type Values = Readonly<Record<string, string>>;

const PLACEHOLDER = /\{\{\s*(\w+)\s*\}\}/g;

/** Fills placeholders in one pass: placeholders in inserted values stay as they are. */
function fill(template: string, values: Values): string {
  return template.replaceAll(PLACEHOLDER, (_, name: string) => values[name] ?? '');
}

/** Fills JSON text. A value within a string is escaped; a number can be written without quotes: `{"euros":{{1}}}`. */
export function fillJson(template: string, values: Values): string {
  const escaped = Object.entries(values).map(([name, value]) => [name, JSON.stringify(value).slice(1, -1)]);
  return fill(template, Object.fromEntries(escaped));
}

/** Fills every string within a JSON value. */
export function fillDeep(value: unknown, values: Values): unknown {
  if (typeof value === 'string') return fill(value, values);
  if (Array.isArray(value)) return value.map((item) => fillDeep(item, values));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillDeep(item, values)]));
}

/** The placeholder names that a reply uses. */
export function placeholdersOf(reply: ReplyData): string[] {
  if (reply.verbatim) return [];
  const written = JSON.stringify([reply.text, reply.error?.message ?? '', reply.tool_calls]);
  return [...written.matchAll(PLACEHOLDER)].flatMap((match) => match[1] ?? []);
}
