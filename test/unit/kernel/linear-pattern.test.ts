import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { linearPattern } from '../../../src/kernel/index.ts';
import { runs } from '../../support/runs.ts';

describe('linearPattern', () => {
  it.each(['^(a+)+$', '(x+x+)+y', '^(a|aa)+$', '(?<=a.*)(b|b)*c'])(
    'a pattern that backtracks matches a long text in linear time: %s',
    (source) => {
      const pattern = linearPattern(source);
      for (const letter of ['a', 'x', 'b']) expect(pattern.test(`${letter.repeat(100_000)}!`)).toBe(false);
    },
  );

  it.each([
    '(?=a)a',
    '^(?!secret/).*$',
    '(a)\\1',
    '(?<n>a)\\k<n>',
    '^a{1001}$',
    '(?i)a',
    '\\Qa\\E',
    '[[:alpha:]]',
    '(',
    'a**',
  ])('a pattern without a linear form, or of another language, is refused: %s', (source) => {
    expect(() => linearPattern(source)).toThrow();
  });

  it.each(['(.*){500}', '(a|b)*a(a|b){200}$', '((a{1,20}){1,20})x', '(x*){999}'])(
    'a pattern that repeats multiply is refused: %s',
    (source) => {
      expect(() => linearPattern(source)).toThrow(RangeError);
    },
  );

  it.each([
    '^git (status|log|diff|show)( .*)?$',
    '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$',
  ])('a pattern with usual repeats is accepted: %s', (source) => {
    expect(linearPattern(source).test('git status'.slice(0, source.startsWith('^git') ? 10 : 3))).toBe(true);
  });

  const atoms = fc.constantFrom(
    ...['a', 'k', '\\.', '.', '\\d', '\\w', '\\W', '\\s', '\\S', '\\b', '[^a]', '[a-c\\s]', '[\\]a.]', '\\/'],
    '\\u{1f600}',
    '\\u0041',
    '\\x41',
    '\\p{L}',
    '\\p{Lu}',
    '\\t',
    '\\[a\\]',
    '(?<=a)',
    '(?<!b)',
    '^',
    '$',
  );
  const { source } = fc.letrec<{ source: string }>((tie) => ({
    source: fc.oneof(
      { maxDepth: 4 },
      atoms,
      fc.array(tie('source'), { minLength: 1, maxLength: 4 }).map((parts) => parts.join('')),
      fc.tuple(tie('source'), tie('source')).map(([a, b]) => `(?:${a}|${b})`),
      fc
        .tuple(tie('source'), fc.constantFrom('*', '+', '?', '{1,2}', '*?'))
        .map(([a, often]) => `(?:${a})${often}`),
    ),
  }));
  const letters = fc.constantFrom(
    ...['a', 'b', 'c', 'k', 'A', 'K', '\u212a', 'ſ', '.', '/', ']', '[', '5', '٣', ' ', '\t', '\n', '\r'],
    ...['\u000b', '\u00a0', '\u2028', '\ufeff', 'é', '😀'],
  );
  const texts = fc.array(letters, { maxLength: 8 }).map((all) => all.join(''));

  it('a pattern matches what it matches in JavaScript', () => {
    fc.assert(
      fc.property(source, texts, fc.boolean(), (pattern, text, ignoreCase) => {
        fc.pre(!(ignoreCase && pattern.includes('\\b') && /[ſ\u212a]/.test(text)));
        const expected = new RegExp(pattern, ignoreCase ? 'iu' : 'u').test(text);
        expect(linearPattern(pattern, { ignoreCase }).test(text)).toBe(expected);
      }),
      { numRuns: runs(2_000) },
    );
  });
});

it('a long pattern without counted repeats is matched', () => {
  const words = Array.from({ length: 200 }, (_, at) => `word-${at}`).join(' ');
  expect(linearPattern(`^${words}$`).test(words)).toBe(true);
});
