import type { Author } from './entry.ts';

/**
 * Text as it stands in a view: escaped, attributed, estimated.
 *
 * T1 No line of anybody's content can pass for a marker or an attribution (L17, V16).
 * T2 A name can hold nothing that would end its attribution early.
 */

export const AWAY_MARKER = '=== MESSAGES WHILE YOU WERE AWAY ===';
export const NEW_INTERACTION_MARKER = '=== NEW INTERACTION ===';

/** Everything that a reader, or a model, may take for the beginning of a line. */
const LINE_START = '(^|\\r\\n|[\\n\\r\\v\\f\\u0085\\u2028\\u2029])';
/** Blanks that are hard to see, before what would be a marker. */
const BLANKS = '[\\s\\u200b-\\u200f\\u2060\\ufeff]*';
/** `=== X`, `[Name]:`, and the headings of the run context. */
const MARKERS = '(?:===[ \\t\\u00a0]|\\[[^\\[\\]\\n\\r]*\\][ \\t]*:|RUN_DIRECTIVE\\b|NODE_BRIEF\\b)';
const FORGEABLE = new RegExp(`${LINE_START}(?=${BLANKS}${MARKERS})`, 'gu');

/** Puts a backslash before each line that begins like a marker or an attribution (T1). */
export function escapeMarkers(text: string): string {
  // Most text holds neither: spare it the expression.
  if (!text.includes('===') && !text.includes(']') && !text.includes('RUN_D') && !text.includes('NODE_B'))
    return text;
  return text.replace(FORGEABLE, '$1\\');
}

/** Other agents' words stand in `system` or in `user` messages (V16). */
export type OtherAgentsAs = 'system' | 'user';

/** `[Name]: ` (T2); with `otherAgentsAs: user` an agent is told from a person by `[agent Name]: `. */
export function attribution(author: Author, otherAgentsAs: OtherAgentsAs): string {
  const name = author.name.replace(/[[\]\p{Cc}\u2028\u2029]/gu, ' ').trim() || author.id;
  return author.kind === 'agent' && otherAgentsAs === 'user' ? `[agent ${name}]: ` : `[${name}]: `;
}

/**
 * An estimate in tokens: four ASCII characters are one, any other code point is one.
 * `hello` is 2, `你好` is 2, `hello你好` is 4, `😀` is 1.
 */
export function estimateTokens(text: string): number {
  let ascii = 0;
  let others = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) ascii++;
    // The second half of a surrogate pair belongs to the code point already counted.
    else if (unit < 0xdc00 || unit > 0xdfff) others++;
  }
  return Math.ceil(ascii / 4) + others;
}
