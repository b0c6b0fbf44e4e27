import type { Author } from './entry.ts';

/**
 * Text as it stands in a view: escaped, attributed, estimated.
 *
 * T1 No line of anybody's content can pass for a marker or an attribution (L17, V16).
 * T2 A name can hold nothing that would end its attribution early.
 */

export const AWAY_MARKER = '=== MESSAGES WHILE YOU WERE AWAY ===';
export const NEW_INTERACTION_MARKER = '=== NEW INTERACTION ===';

/** Everything that a reader, a model or a program may take for the end of a line. */
const SEPARATORS = '\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029';
/** Where one line ends and the next begins, for `split`. */
export const LINE_BREAK = new RegExp(`\\r\\n|[${SEPARATORS}]`, 'u');
const LINE_START = `(^|\\r\\n|[${SEPARATORS}])`;
/** What cannot be seen. */
const INVISIBLE = '[\\p{Cf}\\p{DI}]*';
/** What looks like nothing or like a blank, within one line: a blank line is looked at once, not once per line before it. */
const BLANK = `[[\\s\\p{Cc}\\p{Cf}\\p{DI}\\u2800]--[${SEPARATORS}]]`;
/** `=== X`, `[Name]:`, and the headings of the run context. */
const MARKERS = `(?:=${INVISIBLE}=${INVISIBLE}=${BLANK}|\\[[^\\[\\]${SEPARATORS}]*\\]${BLANK}*:|RUN_DIRECTIVE\\b|NODE_BRIEF\\b|STEP${BLANK}*\\(from\\b)`;
const FORGEABLE = new RegExp(`${LINE_START}(?=${BLANK}*${MARKERS})`, 'gv');
/** Most text holds none of these: spare it the expression. */
const SUSPECT = /[=\]]|RUN_D|NODE_B|STEP/;

/** Puts a backslash before each line that begins like a marker or an attribution (T1). */
export function escapeMarkers(text: string): string {
  return SUSPECT.test(text) ? text.replace(FORGEABLE, '$1\\') : text;
}

/** `--- entry …`, `--- entries …`, `--- recall …`: what only `recall` itself says in its answers. */
const RECALL_LINES = new RegExp(
  `${LINE_START}(?=${BLANK}*-${INVISIBLE}-${INVISIBLE}-${BLANK}*(?:entr|recall))`,
  'giv',
);

/** Puts a backslash before each line of a recalled text that begins like one of `recall` itself (T1). */
export function escapeRecalled(text: string): string {
  return text.includes('-') ? text.replace(RECALL_LINES, '$1\\') : text;
}

/** One line, without brackets (T2). */
export function plainName(name: string): string {
  return name.replace(/[[\]\p{Cc}\u2028\u2029]/gu, ' ').trim();
}

/** A name as it may be mistaken for another: without case, invisible characters, brackets, width. */
export function foldName(name: string): string {
  const visible = name.normalize('NFKC').replace(/[\p{Cf}\p{DI}\u2800]/gu, '');
  return plainName(visible).replace(/\s+/gu, ' ').toLowerCase();
}

/** Other agents' words stand in `system` or in `user` messages (V16). */
export type OtherAgentsAs = 'system' | 'user';

/** `[Name]: ` (T2); with `otherAgentsAs: user` an agent is told from a person by `[agent Name]: `. */
export function attribution(author: Author, otherAgentsAs: OtherAgentsAs): string {
  const name = plainName(author.name) || plainName(author.id) || 'unnamed';
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

/** As much of the beginning as so many estimated tokens hold. Never splits a character. */
export function firstTokens(text: string, tokens: number): string {
  let ascii = 0;
  let others = 0;
  let end = 0;
  for (const character of text) {
    if (character.charCodeAt(0) < 0x80) ascii++;
    else others++;
    if (Math.ceil(ascii / 4) + others > tokens) break;
    end += character.length;
  }
  return text.slice(0, end);
}

const TITLE_LENGTH = 60;

/** The first words of a message, for a list. */
export function titleFrom(content: string): string {
  const words = [...content.replace(/\s+/gu, ' ').trim()];
  return words.length <= TITLE_LENGTH ? words.join('') : `${words.slice(0, TITLE_LENGTH - 1).join('')}…`;
}
