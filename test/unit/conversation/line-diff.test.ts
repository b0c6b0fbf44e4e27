import { describe, expect, it } from 'vitest';
import { diffLines } from '../../../src/conversation/index.ts';

const signs = { same: ' ', gone: '-', added: '+' };
const shown = (before: string, after: string) =>
  diffLines(before, after).map(({ op, text }) => `${signs[op]}${text}`);

describe('the lines that differ between two texts', () => {
  it.each<[string, string, string, string[]]>([
    ['equal texts', 'a\nb', 'a\nb', [' a', ' b']],
    ['a changed line', 'a\nb\nc', 'a\nx\nc', [' a', '-b', '+x', ' c']],
    ['a new line at the end', 'a', 'a\nb', [' a', '+b']],
    ['a line that is gone at the start', 'a\nb', 'b', ['-a', ' b']],
    ['a repeated line', 'a\na', 'a', [' a', '-a']],
    ['a line that moved', 'a\nb\nc', 'b\nc\na', ['-a', ' b', ' c', '+a']],
    ['an empty text', '', 'a', ['-', '+a']],
  ])('the difference has the expected lines for %s', (_, before, after, expected) => {
    expect(shown(before, after)).toEqual(expected);
  });

  it('the difference contains both texts, also where the texts are too long for a table', () => {
    const before = Array.from({ length: 3_000 }, (_, n) => `line ${n}`).join('\n');
    const after = Array.from({ length: 3_000 }, (_, n) => `line ${n * 2}`).join('\n');
    for (const [one, other] of [
      [before, after],
      ['a\nb\na\nc', 'b\na\nd\na'],
    ] as const) {
      const lines = diffLines(one, other);
      const without = (op: string) => lines.filter((line) => line.op !== op).map(({ text }) => text);
      expect(without('added').join('\n')).toBe(one);
      expect(without('gone').join('\n')).toBe(other);
    }
  });
});
