import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { wellFormed } from '../../../src/kernel/index.ts';
import { CapturedOutput } from '../../../src/tools/builtin/shell.ts';
import { firstCharacter, plainText, wholeCharacters } from '../../../src/tools/builtin/text.ts';

const plain = (text: string) => plainText(Buffer.from(text, 'utf8'));

describe('plain text of command output', () => {
  it.each([
    ['colours', '\u001b[1;31mred\u001b[0m', 'red'],
    ['cursor and screen', 'a\u001b[2J\u001b[?25l\u001b[10;20Hb\u001b[K', 'ab'],
    ['a title', '\u001b]0;evil title\u0007text', 'text'],
    ['a hyperlink', '\u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\', 'link'],
    ['a title without an end', '\u001b]0;title\nnext line', '\nnext line'],
    ['device strings', 'a\u001bPq#0\u001b\\b\u001b_x\u001b\\c', 'abc'],
    ['short sequences', '\u001b7a\u001b8\u001bcb\u001b(Bc', 'abc'],
    ['eight-bit sequences', '\u009b31mred', 'red'],
    ['a sequence cut short', 'a\u001b', 'a'],
    ['progress', '10%\r20%\r\ndone\r\n', '10%\n20%\ndone\n'],
    ['controls', 'a\u0000b\u0007c\u007fd\te\n', 'a\ufffdb\ufffdc\ufffdd\te\n'],
    ['all of Unicode', 'ü🐘 \u2028', 'ü🐘 \u2028'],
  ])('command output is reduced to plain text: %s', (_, given, expected) =>
    expect(plain(given)).toBe(expected),
  );

  it('bytes that are not UTF-8 are replaced', () => {
    expect(plainText(Buffer.from([0x61, 0xff, 0xc3, 0x62, 0xed, 0xa0, 0x80]))).toMatch(/^a\ufffd+b\ufffd+$/);
  });

  it('plain text never contains a control character, whatever the bytes are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const text = plainText(Buffer.from(bytes));
        expect(text).not.toMatch(/(?![\t\n])\p{Cc}/u);
        expect(Buffer.from(text, 'utf8').toString('utf8')).toBe(text);
      }),
      { numRuns: 200 },
    );
  });

  it.each(['\u001b[', '\u001b]', '\u001b', '\u001b[;', '\u001b];', '\u009b', '\r', '\u0000', ';'])(
    'repeated starts of %j are converted in linear time',
    (part) => {
      // Quadratic work would take hours.
      expect(plain(part.repeat(500_000)).length).toBeLessThanOrEqual(500_000);
      expect(plain(`\u001b[${';'.repeat(1_000_000)}`).length).toBeLessThan(10);
      expect(plain(`\u001b]${'x'.repeat(1_000_000)}`).length).toBeLessThan(10);
    },
  );
});

describe('cutting a text', () => {
  it('a cut never splits a character and keeps as much as fits', () => {
    const bytes = Buffer.from('aü€🐘');
    const ends = Array.from({ length: 11 }, (_, length) => wholeCharacters(bytes, length));
    expect(ends).toEqual([0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10]);
    const starts = Array.from({ length: 10 }, (_, start) => start + firstCharacter(bytes.subarray(start)));
    expect(starts).toEqual([0, 1, 3, 3, 6, 6, 6, 10, 10, 10].map((start, place) => Math.max(start, place)));
    expect(wellFormed('a\ud83d')).toBe('a\ufffd');
  });
});

describe('captured output', () => {
  const HALF = 512 * 1024;

  it.each([1, 7, 4_096, HALF, 3 * HALF])(
    'captured output up to 1 MiB is kept whole (chunks of %i bytes)',
    (size) => {
      const output = new CapturedOutput();
      const bytes = Buffer.alloc(size < 100 ? 5_000 : 2 * HALF, 'abcdefg\n');
      for (let at = 0; at < bytes.length; at += size) output.add(bytes.subarray(at, at + size));
      expect(output.total).toBe(bytes.length);
      expect(output.text() === bytes.toString()).toBe(true);
    },
  );

  it.each([1_000, 100_000, 10 * HALF])(
    'captured output over 1 MiB keeps its beginning and end (chunks of %i bytes)',
    (size) => {
      const output = new CapturedOutput();
      const bytes = Buffer.from(`begin${'ü'.repeat(2 * HALF)}${'€'.repeat(HALF)}end`);
      for (let at = 0; at < bytes.length; at += size) output.add(bytes.subarray(at, at + size));
      const [beginning, note, end] = output.text().split('\n');
      expect(note).toBe(`[… ${bytes.length - 2 * HALF} bytes left out here …]`);
      expect([beginning?.startsWith('beginü'), end?.endsWith('€end')]).toEqual([true, true]);
      expect(`${beginning}${end}`.includes('\ufffd')).toBe(false);
      expect(HALF - Buffer.byteLength(beginning ?? '')).toBeLessThan(4);
      expect(HALF - Buffer.byteLength(end ?? '')).toBeLessThan(4);
    },
  );
});
