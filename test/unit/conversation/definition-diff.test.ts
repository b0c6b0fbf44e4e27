import { describe, expect, it } from 'vitest';
import { diffLines } from '../../../src/conversation/index.ts';
import { diffDefinitions, type PartDifference } from '../../../src/conversation/view/view-diff.ts';
import type { ReportedDefinition } from '../../../src/conversation/view/view-report.ts';

/** `texts` are JSON texts. The hash of a part is its text. */
function definitionOf(
  texts: Record<string, string>,
  known: Record<string, string> = texts,
): ReportedDefinition {
  return { hash: 'd', recorded: true, parts: texts, texts: known };
}

const personas = (...texts: string[]) => texts.map((text) => definitionOf({ persona: JSON.stringify(text) }));

function diffOf([before, after]: ReportedDefinition[]): PartDifference[] {
  if (!before || !after) throw new Error('no definition');
  return diffDefinitions(before, after);
}

const SIGNS = { same: ' ', gone: '-', added: '+' };
const linesOf = ({ hunks }: PartDifference) =>
  hunks?.map(({ before, after, lines }) => [
    `${before} ${after}`,
    ...lines.map(({ op, text }) => `${SIGNS[op]}${text}`),
  ]);
const linesIn = (parts: PartDifference[]) => parts.flatMap((one) => linesOf(one) ?? []);

describe('the difference of two definitions', () => {
  it('DEFINITION-DIFF-2: the lines of a changed persona are in hunks with three unchanged lines around them', () => {
    const lines = Array.from({ length: 30 }, (_, at) => `line ${at + 1}`);
    const edited = lines.with(5, 'another').with(25, 'new');
    expect(linesIn(diffOf(personas(lines.join('\n'), edited.join('\n'))))).toEqual([
      ['3 3', ' line 3', ' line 4', ' line 5', '-line 6', '+another', ' line 7', ' line 8', ' line 9'],
      ['23 23', ' line 23', ' line 24', ' line 25', '-line 26', '+new', ' line 27', ' line 28', ' line 29'],
    ]);
  });

  it('a tool schema is indented, and the line breaks of its description are lines', () => {
    const tool = (description: string, more = {}) =>
      definitionOf({ 'tool.get': JSON.stringify({ name: 'get', description, parameters: { ...more } }) });
    const [part] = diffOf([
      tool('Reads.\nOne page.'),
      tool('Reads.\nTwo \\n pages.', { a: { type: 'string' } }),
    ]);
    expect(linesOf(part as PartDifference)).toEqual([
      [
        '1 1',
        ' {',
        '   "name": "get",',
        '   "description": "Reads.',
        '-    One page.",',
        '-  "parameters": {}',
        '+    Two \\\\n pages.",',
        '+  "parameters": {',
        '+    "a": {',
        '+      "type": "string"',
        '+    }',
        '+  }',
        ' }',
      ],
    ]);
  });

  it('an added or removed part is shown with all of its lines', () => {
    const with1 = definitionOf({ persona: '"x"', 'tool.a': '{"name":"a"}' });
    const with2 = definitionOf({ persona: '"x"', 'workflow.w': '[1]' });
    expect(diffOf([with1, with2])).toMatchObject([
      { part: 'tool.a', op: 'gone' },
      { part: 'workflow.w', op: 'added' },
    ]);
    expect(linesIn(diffOf([with1, with2]))).toEqual([
      ['1 1', '-{', '-  "name": "a"', '-}'],
      ['1 1', '+[', '+  1', '+]'],
    ]);
  });

  it('DEFINITION-DIFF-1: parts are compared by their hashes, and have no lines if a text is unknown', () => {
    const before = definitionOf({ persona: '"x"', model: '{}' }, {});
    const after = definitionOf({ persona: '"y"', model: '{}' });
    expect(diffOf([before, after])).toEqual([{ part: 'persona', op: 'changed' }]);
    const { texts: _, ...named } = after;
    expect(diffOf([after, { ...named, parts: { ...named.parts, persona: '"z"' } }])).toEqual([
      { part: 'persona', op: 'changed' },
    ]);
  });

  it('DEFINITION-DIFF-2: texts with thousands of changed lines are compared without an aligned difference', () => {
    const text = (word: string) => Array.from({ length: 10_000 }, (_, at) => `${word} ${at}`).join('\n');
    const [part] = diffOf(personas(`same\n${text('a')}`, `same\n${text('b')}`));
    const lines = part?.hunks?.flatMap((hunk) => hunk.lines) ?? [];
    expect(lines.filter(({ op }) => op === 'gone')).toHaveLength(10_001);
    expect(lines.filter(({ op }) => op === 'added')).toHaveLength(10_001);
  });
});

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
