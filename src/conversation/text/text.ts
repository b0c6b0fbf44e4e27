import type { Author } from '../log/entry.ts';
import { INVISIBLE, plainName, shapeOf } from './look-alikes.ts';

/**
 * Text of views: escaping, attribution, token estimates.
 *
 * TEXT-TEXT-1 No line of an author's content can pass for a marker or an attribution (L17, V16).
 * TEXT-TEXT-2 A name cannot contain anything that would end its attribution early.
 */

export const AWAY_MARKER = '=== MESSAGES WHILE YOU WERE AWAY ===';
export const NEW_INTERACTION_MARKER = '=== NEW INTERACTION ===';

/** Every character that a reader, a model or a program may treat as a line break. */
const SEPARATORS = '\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029';
/** A line break, for `split`. */
export const LINE_BREAK = new RegExp(`\\r\\n|[${SEPARATORS}]`, 'u');
const LINE = new RegExp(`[^${SEPARATORS}]+`, 'g'); // without `v`, which halves the speed
/** Invisible or blank characters within one line: without line breaks, so that many blank lines take linear time. */
const BLANK = `[[\\s\\p{Cc}\\p{Cf}\\p{DI}\\u2800]--[${SEPARATORS}]]`;
/** A word, also with invisible characters inside. */
const spelled = (word: string) => [...word].join(INVISIBLE);
/** `=== X`, `[Name]:`, and the headings of the run context. */
const MARKERS = `(?:${spelled('===')}${BLANK}|\\[[^\\[\\]${SEPARATORS}]*\\][${BLANK}\\p{M}]*:|(?:${spelled('RUN_DIRECTIVE')}|${spelled('NODE_BRIEF')})\\b|${spelled('STEP')}${BLANK}*${spelled('(from').replace('(', '\\(')}\\b)`;
const FORGED = new RegExp(`^${BLANK}*${MARKERS}`, 'v');

/** Puts a backslash before each line that begins like a marker or an attribution, look-alikes included (TEXT-TEXT-1). */
export function escapeMarkers(text: string): string {
  return escapeLines(text, FORGED);
}

/** Each line begins with `> `, so that no line can pass for one outside the quotation. */
export function quotedLines(text: string): string[] {
  return text.split(LINE_BREAK).map((line) => `> ${line}`);
}

/** `--- entry …`, `--- entries …`, `--- recall …`: lines that only `recall` itself writes. */
const RECALL_LINE = new RegExp(
  `^${BLANK}*${spelled('---')}${BLANK}*(?:${spelled('entr')}|${spelled('recall')})`,
  'iv',
);

/** Puts a backslash before each line that begins like one of `recall` itself (TEXT-TEXT-1). */
export function escapeRecalled(text: string): string {
  return escapeLines(text, RECALL_LINE);
}

/**
 * How `MARKERS` and `RECALL_LINE` begin. A line that begins otherwise is no forged one: `shapeOf` maps no ASCII character to
 * another, also not with combining characters. Most lines end here, without a normalized copy.
 */
const MAY_BE_FORGED = new RegExp(
  `^${BLANK}*(?:[=\\[\\-]|[RNS]${INVISIBLE}(?:[UOT]|\\P{ASCII})|\\P{ASCII})`,
  'v',
);

function escapeLines(text: string, forged: RegExp): string {
  return text.replace(LINE, (line) => {
    const isForged = MAY_BE_FORGED.test(line) && (forged.test(line) || forged.test(shapeOf(line)));
    return isForged ? `\\${line}` : line;
  });
}

/** The role of other agents' messages (V16). */
export type OtherAgentsAs = 'system' | 'user';

/** `[Name]: ` (TEXT-TEXT-2); with `otherAgentsAs: user` an agent has `[agent Name]: `, which no person can have. */
export function attribution(author: Author, otherAgentsAs: OtherAgentsAs): string {
  const name = plainName(author.name) || plainName(author.id) || 'unnamed';
  return author.kind === 'agent' && otherAgentsAs === 'user' ? `[agent ${name}]: ` : `[${name}]: `;
}

/**
 * Estimated tokens: one for four ASCII characters, one for any other code point.
 * `hello` is 2, `你好` is 2, `hello你好` is 4, `😀` is 1.
 */
export function estimateTokens(text: string): number {
  let ascii = 0;
  let others = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) ascii++;
    // The second half of a surrogate pair is part of a code point that is counted already.
    else if (unit < 0xdc00 || unit > 0xdfff) others++;
  }
  return Math.ceil(ascii / 4) + others;
}

/** The longest beginning within so many estimated tokens. Never splits a character. */
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

/** Quoted lines, and the line that announces them. */
const QUOTATION = /(?:^|\n)[^\n]*:\n(?:>[^\n]*(?:\n|$))+/g;

/** The first words of a message, for lists: its own ones, if it has any. */
export function titleFrom(content: string): string {
  const own = content.replace(QUOTATION, '\n');
  const words = [...(own.trim() === '' ? content : own).replace(/\s+/gu, ' ').trim()];
  return words.length <= TITLE_LENGTH ? words.join('') : `${words.slice(0, TITLE_LENGTH - 1).join('')}…`;
}

/** Previews. They never split a character. */

/** Length of the preview of a large result, in code points. */
export const PREVIEW_LENGTH = 500;

export function firstCodePoints(text: string, count: number): string {
  return [...text.slice(0, count * 2)].slice(0, count).join('');
}

/** A result after a reduction. */
export function previewOf(text: string, index: number, length = PREVIEW_LENGTH): string {
  const begins = firstCodePoints(text, length);
  return `${begins}${begins && '\n'}[shortened: recall ${index}]`;
}
