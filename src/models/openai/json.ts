import { cut } from '../../kernel/index.ts';

/** Texts in JSON of unknown shape. */
export function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Characters of an error text that are processed: it may have many megabytes. */
export const LONGEST_SEARCHED = 20_000;

/** One line of at most `length` characters, for an error message. */
export function excerpt(text: string, length = 300): string {
  const start = text.slice(0, LONGEST_SEARCHED);
  const line = start.replaceAll(/\s+/g, ' ').trim();
  return line.length <= length && start === text ? line : `${cut(line, length)}…`;
}
