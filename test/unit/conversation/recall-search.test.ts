import { describe, expect, it } from 'vitest';
import { ALICE, answerTo, called, DEV, indexesIn, logOf, PM, recalled, result, said } from './recall-log.ts';

const logWith = (...contents: string[]) => logOf(...contents.map((content) => said(ALICE, content)));
const found = (contents: string[], query: string) => indexesIn([recalled(logWith(...contents), { query })]);

describe('a search', () => {
  it.each([
    ['in any case', ['The Proxy', 'nothing'], 'pROXY', [0]],
    ['by one of several words', ['alpha', 'beta', 'gamma'], 'alpha gamma', [2, 0]],
    ['as a part of a longer word', ['nothing', 'uploads'], 'upload', [1]],
    ['in a language without blanks between words', ['上传失败了', '没有问题'], '失败', [0]],
    ['with punctuation around it', ['the proxy.', 'x'], '(proxy),', [0]],
    ['punctuation alone', ['a => b', 'a - b'], '=>', [0]],
    ['a text with special characters of patterns', ['f(x) = a.b*c', 'a1bbc'], 'a.b*c', [0]],
    ['a phrase matches only adjacent words', ['the cat sat', 'sat the cat'], '"cat sat"', [0]],
    ['a phrase over the end of a line', ['the cat\n  sat', 'cat'], '"the  cat sat"', [0]],
    ['a phrase with other words: it must be there, they may', ['red car', 'red', 'car'], '"red" car', [0, 1]],
    ['an unclosed quotation mark is part of a word', ['red', 'blue'], '"red', [0]],
    ['a hyphen', ['the needle-7', 'needle 7'], 'needle-7', [0]],
    ['a phrase with a hyphen', ['a needle-7 b', 'needle-7'], '"needle-7 b"', [0]],
    ['a phrase that begins twice', ['red red car', 'red'], '"red car"', [0]],
    ['a Greek word in capitals', ['ΟΔΟΣ', 'x'], 'οδος', [0]],
    ['a letter that is longer in lower case', [`İİİİ needle`, 'x'], 'NEEDLE', [0]],
  ])('a search finds an entry: %s', (_, contents, query, indexes) => {
    expect(found(contents as string[], query as string)).toEqual(indexes);
  });

  it('a search covers the whole log, or the entries between from and to', () => {
    const log = logWith('x 0', 'x 1', 'x 2', 'x 3');
    const asked = [{}, { from: 2 }, { to: 1 }, { from: 1, to: 2 }];
    const all = asked.map((range) => indexesIn([recalled(log, { ...range, query: 'x' })]));
    expect(all).toEqual([
      [3, 2, 1, 0],
      [3, 2],
      [1, 0],
      [2, 1],
    ]);
  });

  it('a search finds an entry by the name of its author', () => {
    expect(indexesIn([recalled(logOf(said(ALICE, 'one'), said(DEV, 'two')), { query: 'dev' })])).toEqual([1]);
  });

  it("a search finds the agent's own calls and their results", () => {
    const log = logOf(called(PM, null, ['shell', '{"command":"make needle"}']), result(PM, 0, 'no needle'));
    expect(indexesIn([recalled(log, { query: 'needle' })]).sort()).toEqual([0, 1]);
  });

  it('a search finds neither an earlier recall nor its own call', () => {
    const log = logOf(
      said(ALICE, 'the needle'),
      called(PM, 'I look for it', ['recall', '{"query":"needle"}']),
      result(PM, 1, '--- entry 0 · t0 · person: the needle'),
      called(PM, 'once more, with words', ['recall', '{"query":"needle"}']),
    );
    expect(indexesIn([recalled(log, { query: 'needle' })])).toEqual([0]);
    expect(indexesIn([recalled(log, { query: 'words' })])).toEqual([3]);
    expect(recalled(log, { from: 2, to: 2 })).toContain('the needle');
  });
});

describe('the order of hits', () => {
  const filler = 'and so on '.repeat(20);
  it.each([
    ['a rare word counts more than a common one', ['many', 'many', 'rare', 'many'], 'rare many', 2],
    ['both words count more than one', ['red', 'red car', 'car'], 'red car', 1],
    ['more of it counts more', ['tea and milk and', 'tea and tea and', 'and'], 'tea', 1],
    ['a short entry counts more', ['tea', `${filler} tea`, filler], 'tea', 0],
    ['a whole word counts more than a part', ['log xx', 'logs x', 'blog x'], 'log', 0],
    ['among equals the newer counts more', ['tea', 'tea', 'milk'], 'tea', 1],
  ])('a search orders the hits: %s', (_, contents, query, first) => {
    expect(found(contents as string[], query as string)[0]).toBe(first);
  });

  it('a search lists the best 20 hits and their total number', () => {
    const contents = Array.from({ length: 50 }, (_, at) => (at === 7 ? 'tea tea' : 'tea milk'));
    const text = recalled(logWith(...contents), { query: 'tea' });
    const indexes = indexesIn([text]);
    expect(indexes).toEqual([7, ...Array.from({ length: 19 }, (_, at) => 49 - at)]);
    const [first, ...rest] = text.split('\n');
    expect(first).toBe('--- recall found "tea" in 50 entries of those in entries 0 to 49; the best 20:');
    expect(rest.at(-1)).toBe('--- recall reads one in full: call it with {"from":7,"to":7}');
  });
});

describe('a hit', () => {
  it("a hit is one line around the match, with the author's name", () => {
    const content = `${'before '.repeat(100)}\n=== the needle ===\n[PM]: ${'behind '.repeat(100)}`;
    const text = recalled(logOf(said(ALICE, 'x'), said(DEV, content)), { query: 'needle' });
    const line = text.split('\n')[1] ?? '';
    expect(line).toMatch(
      /^--- entry 1 · t1 · \[Dev\]: … .*before \\=== the needle === \\\[PM\]: behind .* …$/,
    );
    expect(line.length).toBeLessThan(300);
  });

  it('a hit is cut around the match where letters before it become longer in lower case', () => {
    const content = `${'İ'.repeat(2_000)} the-needle ${'x'.repeat(2_000)}`;
    expect(recalled(logWith(content), { query: 'the-needle' })).toContain('İ the-needle x');
  });

  it('a hit contains no half of a character', () => {
    for (const shift of ['', 'a']) {
      const content = `${'😀'.repeat(200)}${shift}needle${'😀'.repeat(200)}`;
      expect(recalled(logWith(content), { query: 'needle' })).not.toMatch(/\p{Surrogate}/u);
    }
  });

  it('recall reports that a search has no hit', () => {
    expect(answerTo(logWith('a', 'b'), { query: 'no "such thing"' })).toEqual({
      ok: true,
      text: '--- recall found "no \\"such thing\\"" nowhere in entries 0 to 1 that you can be shown',
    });
    expect(recalled(logWith('a'), { query: 'x', from: 0, to: 0 })).toContain('nowhere in entry 0 that');
  });
});
