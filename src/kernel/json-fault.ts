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
