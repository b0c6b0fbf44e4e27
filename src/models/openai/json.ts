/** Helpers for JSON of unknown shape. */
export type JsonRecord = Readonly<Record<string, unknown>>;

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Characters of an error text that are processed: it may have many megabytes. */
export const LONGEST_SEARCHED = 20_000;

/** One line of at most `length` characters, for an error message. */
export function excerpt(text: string, length = 300): string {
  const start = text.slice(0, LONGEST_SEARCHED);
  const line = start.replaceAll(/\s+/g, ' ').trim();
  return line.length <= length && start === text ? line : `${line.slice(0, length)}…`;
}
