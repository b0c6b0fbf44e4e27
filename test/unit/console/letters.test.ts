import { describe, expect, it } from 'vitest';
import { keyOf, refusedFor, refusedPostOf } from '../../../src/console/model/thread/letters.ts';

const LETTER = {
  ...{ publisher: 'console', conversation: 'demo', code: 'UNKNOWN_AGENT', reason: 'no such agent' },
  size: 20,
};
const refused = (sequence: number, original: string | object, more: object = {}) =>
  refusedPostOf({
    ...LETTER,
    sequence,
    at: '2026-11-26T10:00:00.000Z',
    original: typeof original === 'string' ? original : JSON.stringify(original),
    ...more,
  });
const shown = (posts: readonly ReturnType<typeof refused>[], name: string, known: readonly string[] = []) =>
  refusedFor(posts, { name, known: new Set(known) }).map(({ letter }) => letter.sequence);

describe('refused posts of a publisher', () => {
  it('a refused post is shown to the person whose name it has, not to others of the same publisher', () => {
    const posts = [
      refused(1, { content: 'a', author: { name: 'Ann' } }),
      refused(2, { content: 'b', author: { name: 'Bea' } }),
      refused(3, { content: 'c' }),
      refused(4, 'plain words'),
    ];
    expect(shown(posts, 'Ann')).toEqual([1]);
    expect(shown(posts, 'Bea')).toEqual([2]);
    expect(shown(posts, '')).toEqual([3, 4]);
  });

  it('a refused post whose author cannot be read is shown to each person of its publisher', () => {
    const posts = [refused(1, '{"content":'), refused(2, { content: 'x', author: { name: 7 } })];
    expect(shown(posts, 'Ann')).toEqual([1, 2]);
  });

  it('letters without an id are dismissed one by one', () => {
    const posts = [refused(1, '{"a', { id: '' }), refused(2, '{"b', { id: '' }), refused(3, '{"c')];
    expect(
      shown(
        posts,
        'Ann',
        posts.slice(0, 1).map(({ letter }) => keyOf(letter)),
      ),
    ).toEqual([2, 3]);
    expect(shown(posts, 'Ann', [''])).toEqual([1, 2, 3]);
  });

  it('a dismissed letter does not hide the letter with its number in a stream that was created again', () => {
    const [before, after] = [refused(1, 'x'), refused(1, 'x', { at: '2026-11-27T10:00:00.000Z' })];
    expect(shown([after], '', [keyOf(before.letter)])).toEqual([1]);
  });

  it('a post is not shown as refused whose id the person knows to be refused', () => {
    expect(shown([refused(1, { content: 'x', id: 'm1' }, { id: 'm1' })], '', ['m1'])).toEqual([]);
  });

  it.each([
    ['the content of JSON', { content: 'words', to: ['ada'] }, 'words'],
    ['plain text as it is', 'plain words', 'plain words'],
    ['the whole body, if it is not understood', '{"content', '{"content'],
    ['the whole body, if its content is no text', { content: 7 }, '{"content":7}'],
    ['null', 'null', 'null'],
  ])('the text of a refused post is %s', (_, original, text) => {
    expect(refused(1, original).text).toBe(text);
  });
});
