import { messageOf } from './errors.ts';

/**
 * Why a text is not JSON, without quoting it: the parser's own message does, and the text may be secret.
 */
export function jsonFault(error: unknown): string {
  const message = messageOf(error);
  if (message.startsWith('Unexpected end') || message.startsWith('Unterminated')) return 'it ends too early';
  const position = / at position (\d+)/.exec(message)?.[1];
  return position === undefined ? 'a character is not expected' : `character ${position} is not expected`;
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Deeper nesting is refused: it can be parsed, but traversing or encoding it again would overflow the stack and stop the
 * daemon.
 */
export const MAX_DEPTH = 64;

/** True if no value is nested in more than `most` objects and arrays; false for cycles. Does not recurse. */
export function isShallow(value: unknown, most: number = MAX_DEPTH): boolean {
  let level = new Set(isContainer(value) ? [value] : []);
  for (let depth = 1; level.size > 0; depth += 1) {
    if (depth > most) return false;
    // A set: a container with several parents (aliases in YAML) is visited once.
    level = new Set([...level].flatMap((container) => Object.values(container).filter(isContainer)));
  }
  return true;
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
