import fc from 'fast-check';
import stringWidth from 'string-width';
import { describe, expect, it, vi } from 'vitest';
import { createWordWrap } from '../../../src/cli/render/word-wrap.ts';
import { runs } from '../../support/runs.ts';

vi.mock('string-width', async (load) => {
  const { default: width } = await load<typeof import('string-width')>();
  return { default: vi.fn(width) };
});

/** What a terminal of this width shows: text, line breaks, and the two escape sequences that erase a word. */
function shown(written: string): string {
  const lines = [''];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape sequences that the wrap writes
  for (const [part, column] of written.matchAll(/\n|\u001b\[(\d+)G\u001b\[K|[^\n\u001b]+|\u001b\[[\d;]*m/g)) {
    const last = lines.at(-1) ?? '';
    if (part === '\n') lines.push('');
    else lines[lines.length - 1] = column ? start(last, Number(column) - 1) : last + part;
  }
  return lines.join('\n');
}

function start(line: string, columns: number): string {
  let first = '';
  for (const character of line) if (stringWidth(first + character) <= columns) first += character;
  return first;
}

function wrapped(text: string | readonly string[], columns = 20): string {
  const wrap = createWordWrap(() => columns);
  return shown([text].flat().reduce((written, piece) => written + wrap.add(piece), ''));
}

describe('text on a terminal', () => {
  it.each([
    ['breaks between words', 'Lead: one two three four', 'Lead: one two three\n  four'],
    ['fills a line exactly', '12345 12345 12345678 x', '12345 12345 12345678\n  x'],
    ['keeps the indent of a line', '    one two three four five', '    one two three\n    four five'],
    ['keeps blanks that need no break', 'a  b\t c\n\n  d', 'a  b\t c\n\n  d'],
    ['drops blanks at a break', 'one two three four     five', 'one two three four\n  five'],
    ['leaves a word that is too wide whole', `see ${'x'.repeat(30)} y`, `see\n  ${'x'.repeat(30)} y`],
    ['counts wide characters as two', '日本語 日本語 日本語 x', '日本語 日本語 日本語\n  x'],
    ['breaks between ideographs', '世界你好世界你好世界你好', '世界你好世界你好世界\n  你好'],
    ['starts no line with a closing mark', '世界你好世界你好世界。', '世界你好世界你好世\n  界。'],
    [
      'gives colours no width',
      '\u001b[1mone two three\u001b[22m fourth x',
      '\u001b[1mone two three\u001b[22m fourth\n  x',
    ],
    ['gives combined emoji two columns', `${'👩‍👩‍👧 '.repeat(6)}x y`, `${'👩‍👩‍👧 '.repeat(6)}x\n  y`],
  ])('text on a terminal %s', (_, text, expected) => {
    expect(wrapped(text)).toBe(expected);
    expect(wrapped([...text])).toBe(expected); // in the smallest pieces
  });

  it('a word appears at once, and moves to the next line when it grows beyond the line', () => {
    const wrap = createWordWrap(() => 12);
    expect(wrap.add('one two th')).toBe('one two th');
    expect(wrap.add('re')).toBe('re');
    expect(wrap.add('e')).toBe('\u001b[8G\u001b[K\n  three');
  });

  it('text without a known width, and text on a terminal that grew, is broken where the width is now', () => {
    const text = 'one two three four five';
    expect(createWordWrap(() => undefined).add(text)).toBe(text);
    let columns = 10;
    const wrap = createWordWrap(() => columns);
    const first = wrap.add('one two three');
    columns = 30;
    expect(shown(first + wrap.add(' four five six'))).toBe('one two\n  three four five six');
  });

  it.each([
    ['without a width', '\u0301', 80],
    ['without blanks, on a terminal of unknown width,', 'x', 0],
  ])('text %s is not measured from its beginning for each piece', (_, character, columns) => {
    const measured = vi.mocked(stringWidth).mockClear();
    const wrap = createWordWrap(() => columns);
    const piece = character.repeat(500);
    for (let at = 0; at < 100; at += 1) expect(wrap.add(piece)).toBe(piece);
    const characters = measured.mock.calls.reduce((sum, [text]) => sum + text.length, 0);
    expect(characters).toBeLessThan(3 * 100 * piece.length);
  });

  it('text loses no word, exceeds no line, and does not depend on its pieces', () => {
    const words = fc.array(
      fc.string({ unit: fc.constantFrom('a', 'b', 'Z', '-'), minLength: 1, maxLength: 9 }),
    );
    fc.assert(
      fc.property(words, fc.array(fc.nat({ max: 7 })), (list, cuts) => {
        const text = list.join(' ');
        const pieces: string[] = [];
        let at = 0;
        for (const cut of cuts) {
          pieces.push(text.slice(at, at + cut));
          at += cut;
        }
        const whole = wrapped(text, 12);
        expect(wrapped([...pieces, text.slice(at)], 12)).toBe(whole);
        expect(whole.split(/\s+/).join(' ')).toBe(text);
        for (const line of whole.split('\n')) expect(line.length).toBeLessThanOrEqual(12);
      }),
      { numRuns: runs(200) },
    );
  });
});
