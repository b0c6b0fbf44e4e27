import { messageOf } from './errors.ts';

/**
 * Why a text is not JSON, in words that hold nothing of it: the parser's own message quotes what it read, which may be
 * what nobody else is to see.
 */
export function jsonFault(error: unknown): string {
  const said = messageOf(error);
  if (said.startsWith('Unexpected end') || said.startsWith('Unterminated')) return 'it ends too early';
  const place = / at position (\d+)/.exec(said)?.[1];
  return place === undefined ? 'a character is not expected' : `character ${place} is not expected`;
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
 * What is nested deeper than this is refused: parsing it works, but walking or writing it again would overflow the
 * stack, and one such text would then stop the daemon.
 */
export const MAX_DEPTH = 64;

/** True if no value stands deeper than so many objects and arrays; what holds itself does. Does not recurse. */
export function isShallow(value: unknown, most: number = MAX_DEPTH): boolean {
  let level = new Set(isContainer(value) ? [value] : []);
  for (let depth = 1; level.size > 0; depth += 1) {
    if (depth > most) return false;
    // A set: what is held in many places (aliases in YAML) is looked at once.
    level = new Set([...level].flatMap((container) => Object.values(container).filter(isContainer)));
  }
  return true;
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
