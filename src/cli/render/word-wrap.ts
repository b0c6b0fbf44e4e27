import stringWidth from 'string-width';
import { HANGING } from './text.ts';

/**
 * Breaks streamed text between words at the width of a terminal. A piece may begin and end anywhere, except inside an escape
 * sequence.
 *
 * WORD-WRAP-1 Nothing is lost or added, except that a line break and an indent replace the blanks at a break.
 * WORD-WRAP-2 Text is written at once. A word that grows beyond the line is erased there and written again on the next one.
 * WORD-WRAP-3 A word wider than a line is not broken here: the terminal does that, and copies it as one word.
 *    The same holds for one of more than `LONGEST_WORD` characters: it is measured again for each piece that continues it.
 * WORD-WRAP-4 Lines after a break are indented like the line, at least by `hanging`.
 */

/** Text without blanks, which may be broken after each character. */
const WIDE = String.raw`[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]`;
const PART = new RegExp(
  String.raw`\n|[ \t]+|${WIDE}[\p{Pe}\p{Pf}\p{Po}\u30fc]*|(?:(?!${WIDE})[^ \t\n])+`,
  'gu',
);
const STARTS_WIDE = new RegExp(`^${WIDE}`, 'u');
const TAB = 8;
/** Longer words are not for reading: text without blanks, or characters without a width. */
const LONGEST_WORD = 1_000;

/** `columns`: the width now; 0 or undefined: unknown. */
export function createWordWrap(columns: () => number | undefined, hanging = HANGING) {
  const width = () => columns() || Number.POSITIVE_INFINITY;
  let column = 0;
  let indent = hanging;
  /** Blanks that wait for a word. */
  let gap = '';
  /** The word that the next piece may continue, its first column, and where the word before it ends. */
  let word = '';
  let start = 0;
  let before = 0;
  /** The word is not broken or moved (WORD-WRAP-3). */
  let isTooWide = false;

  function endWord(): void {
    word = '';
    isTooWide = false;
  }

  function endLine(): string {
    const blanks = columnAfter(column, gap) > width() ? '' : gap;
    endWord();
    [column, gap, indent] = [0, '', hanging];
    return `${blanks}\n`;
  }

  function put(part: string): string {
    const limit = width();
    if (isTooWide) {
      column = columnWithin(limit, column + stringWidth(part));
      return part;
    }
    const isNew = word === '';
    const blanks = gap;
    gap = '';
    if (isNew) [before, start] = [column, columnAfter(column, blanks)];
    if (isNew && column === 0)
      indent = blanks.length > hanging.length && blanks.length < limit / 2 ? blanks : hanging;
    word += part;
    const size = stringWidth(word);
    const mustMove = start + size > limit && start > indent.length && indent.length < limit;
    const erased = isNew ? '' : `\u001b[${before + 1}G\u001b[K`;
    if (mustMove) start = indent.length;
    isTooWide = start + size > limit || word.length > LONGEST_WORD;
    column = columnWithin(limit, start + size);
    return mustMove ? `${erased}\n${indent}${word}` : blanks + part;
  }

  return {
    /** What to write now. */
    add(piece: string): string {
      let written = '';
      for (const [at, part] of (piece.match(PART) ?? []).entries()) {
        if (at > 0 || STARTS_WIDE.test(part)) endWord();
        if (part === '\n') written += endLine();
        else if (/^[ \t]/.test(part)) {
          endWord();
          gap += part;
        } else written += put(part);
      }
      return written;
    },
    get isAtLineStart(): boolean {
      return column === 0;
    },
  };
}

function columnAfter(column: number, blanks: string): number {
  let at = column;
  for (const blank of blanks) at += blank === '\t' ? TAB - (at % TAB) : 1;
  return at;
}

/** The column after the terminal has broken the line. */
function columnWithin(limit: number, column: number): number {
  return column > limit ? ((column - 1) % limit) + 1 : column;
}
