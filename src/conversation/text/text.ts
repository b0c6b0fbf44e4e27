import type { Author } from '../log/entry.ts';
import { INVISIBLE, plainName, shapeOf } from './look-alikes.ts';

/**
 * Text as it stands in a view: escaped, attributed, estimated.
 *
 * TEXT-TEXT-1 No line of anybody's content can pass for a marker or an attribution (L17, V16).
 * TEXT-TEXT-2 A name can hold nothing that would end its attribution early.
 */

export const AWAY_MARKER = '=== MESSAGES WHILE YOU WERE AWAY ===';
export const NEW_INTERACTION_MARKER = '=== NEW INTERACTION ===';

/** Everything that a reader, a model or a program may take for the end of a line. */
const SEPARATORS = '\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029';
/** Where one line ends and the next begins, for `split`. */
export const LINE_BREAK = new RegExp(`\\r\\n|[${SEPARATORS}]`, 'u');
const LINE = new RegExp(`[^${SEPARATORS}]+`, 'gv');
/** What looks like nothing or like a blank, within one line: a blank line is looked at once, not once per line before it. */
const BLANK = `[[\\s\\p{Cc}\\p{Cf}\\p{DI}\\u2800]--[${SEPARATORS}]]`;
/** The word, also with invisible characters in it. */
const spelled = (word: string) => [...word].join(INVISIBLE);
/** `=== X`, `[Name]:`, and the headings of the run context. */
const MARKERS = `(?:${spelled('===')}${BLANK}|\\[[^\\[\\]${SEPARATORS}]*\\][${BLANK}\\p{M}]*:|(?:${spelled('RUN_DIRECTIVE')}|${spelled('NODE_BRIEF')})\\b|${spelled('STEP')}${BLANK}*${spelled('(from').replace('(', '\\(')}\\b)`;
const FORGED = new RegExp(`^${BLANK}*${MARKERS}`, 'v');

/** Puts a backslash before each line that begins like a marker or an attribution, also in look-alike characters (TEXT-TEXT-1). */
export function escapeMarkers(text: string): string {
  return escapeLines(text, FORGED);
}

/** `--- entry …`, `--- entries …`, `--- recall …`: what only `recall` itself says in its answers. */
const RECALL_LINE = new RegExp(
  `^${BLANK}*${spelled('---')}${BLANK}*(?:${spelled('entr')}|${spelled('recall')})`,
  'iv',
);

/** Puts a backslash before each line of a recalled text that begins like one of `recall` itself (TEXT-TEXT-1). */
export function escapeRecalled(text: string): string {
  return escapeLines(text, RECALL_LINE);
}

const NOT_ASCII = /\P{ASCII}/u;

function escapeLines(text: string, forged: RegExp): string {
  return text.replace(LINE, (line) => {
    const isForged = forged.test(line) || (NOT_ASCII.test(line) && forged.test(shapeOf(line)));
    return isForged ? `\\${line}` : line;
  });
}

/** Other agents' words stand in `system` or in `user` messages (V16). */
export type OtherAgentsAs = 'system' | 'user';

/** `[Name]: ` (TEXT-TEXT-2); with `otherAgentsAs: user` an agent is told from a person by `[agent Name]: `. */
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

/** A long text in a few words. Never splits a character. */

/** Of a large result, in code points. */
export const PREVIEW_LENGTH = 500;

export function firstCodePoints(text: string, count: number): string {
  return [...text.slice(0, count * 2)].slice(0, count).join('');
}

/** A result as a reduction leaves it. */
export function previewOf(text: string, index: number, length = PREVIEW_LENGTH): string {
  const begins = firstCodePoints(text, length);
  return `${begins}${begins && '\n'}[shortened: recall ${index}]`;
}
