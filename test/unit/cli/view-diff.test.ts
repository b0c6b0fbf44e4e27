import { describe, expect, it } from 'vitest';
import { createPalette } from '../../../src/cli/render/text.ts';
import { renderDiff } from '../../../src/cli/render/view.ts';
import type { View } from '../../../src/client/index.ts';
import { diffViews } from '../../../src/conversation/view/view-diff.ts';
import { reportOf } from './support.ts';

/** `7=text`: a message for entry 7; `block 7=text`: the block that repeats it; `=text`: the prefix. */
function viewOf(...specs: string[]): View {
  const read = specs.map((spec) => {
    const [source = '', content = ''] = spec.split('=');
    const entries = (source.match(/\d+/g) ?? []).map(Number);
    const kind = source.startsWith('block') ? 'away-block' : source === '' ? 'prefix' : 'history';
    return { message: { role: 'user', content }, part: { kind, entries, tokens: 1 } };
  });
  const parts = read.map(({ part }) => part);
  return { messages: read.map(({ message }) => message), report: reportOf({ parts }) };
}

const opsOf = (before: View, after: View) =>
  diffViews(before, after).map((one) => {
    const left = 'before' in one ? one.before.message.content : '';
    const right = 'after' in one && one.op !== 'same' ? one.after.message.content : '';
    return `${one.op} ${[left, right].filter(Boolean).join('→')}`;
  });

const renderedDiff = (before: View, after: View) =>
  renderDiff(diffViews(before, after), [before, after], ['pm at 1', 'pm now'], createPalette(false));

describe('the difference of two requests', () => {
  it.each<[string, string[], string[], string[]]>([
    ['nothing', ['=p', '1=a'], ['=p', '1=a'], ['same p', 'same a']],
    ['what came at the end', ['1=a'], ['1=a', '2=b'], ['same a', 'added b']],
    ['what came before the rest', ['2=b'], ['1=a', '2=b'], ['added a', 'same b']],
    ['what is gone', ['1=a', '2=b', '3=c'], ['1=a', '3=c'], ['same a', 'gone b', 'same c']],
    ['another prefix', ['=p', '1=a'], ['=q', '1=a'], ['changed p→q', 'same a']],
    ['other words for an entry', ['1=a', '2=b'], ['1=A', '2=b'], ['changed a→A', 'same b']],
    [
      'one in another place',
      ['1=a', '2=b', '3=c'],
      ['2=b', '3=c', '1=a'],
      ['same b', 'same c', 'changed a→a'],
    ],
    ['the same words twice', ['1=a', '2=a'], ['1=a'], ['same a', 'gone a']],
    ['a block, which is not what it repeats', ['7=x'], ['block 7=y'], ['gone x', 'added y']],
    ['a summary for some', ['1=a', '2=b', '3=c'], ['9=s', '3=c'], ['gone a', 'gone b', 'added s', 'same c']],
    ['everything', ['1=a'], ['2=b'], ['gone a', 'added b']],
    ['from nothing', [], ['1=a'], ['added a']],
  ])('the difference of two requests shows %s', (_, before, after, ops) => {
    expect(opsOf(viewOf(...before), viewOf(...after))).toEqual(ops);
  });

  it('the difference of two requests shows where a long message changed', () => {
    const [before, after] = ['x', 'y'].map((end) => viewOf(`1=${'a'.repeat(300)}${end}`)) as [View, View];
    const shown = renderedDiff(before, after);
    expect(shown).toContain(`- …${'a'.repeat(20)}x`);
    expect(shown).toContain(`+ …${'a'.repeat(20)}y`);
    for (const line of shown.split('\n')) expect(line.length).toBeLessThan(81);
  });

  it('the difference of two definitions names the parts that differ, and no equal ones', () => {
    const withParts = (parts: Record<string, string>): View => ({
      ...viewOf('1=a'),
      report: reportOf({ definition: { hash: 'd', recorded: true, parts } }),
    });
    const before = withParts({ model: 'h1', persona: 'h2', 'tool.shell': 'h3' });
    const after = withParts({ model: 'h1', persona: 'h4', 'tool.look': 'h5' });
    const shown = renderedDiff(before, after);
    expect(shown.split('\n').filter((line) => line.includes('definition'))).toEqual([
      '~ definition: persona',
      '+ definition: tool.look',
      '- definition: tool.shell',
    ]);
  });

  it('the difference of two definitions shows changed lines, cuts long ones, and escapes control characters', () => {
    const withTexts = (texts: Record<string, unknown>): View => {
      const json = Object.fromEntries(
        Object.entries(texts).map(([part, text]) => [part, JSON.stringify(text)]),
      );
      return {
        ...viewOf('1=a'),
        report: reportOf({ definition: { hash: 'd', recorded: true, parts: json, texts: json } }),
      };
    };
    const before = withTexts({ persona: 'You plan.\nBe long.\n\u001b[31mEnd.', 'tool.get': 'x' });
    const long = Array.from({ length: 200 }, (_, at) => `line ${at}`).join('\n');
    const after = withTexts({ persona: 'You plan.\nBe brief.\n\u001b[31mEnd.', 'tool.get': long });
    const shown = renderDiff(
      diffViews(before, after),
      [before, after],
      ['pm', 'pm now'],
      createPalette(false),
    );
    const lines = shown.split('\n').slice(3);
    expect(lines.slice(0, 6)).toEqual([
      '~ definition: persona',
      '    @@ -1,3 +1,3 @@',
      '     You plan.',
      '    -Be long.',
      '    +Be brief.',
      expect.stringMatching(/^ {5}.*End\.$/),
    ]);
    expect(shown).not.toContain('\u001b');
    expect(lines.filter((line) => line.startsWith('    +line'))).toHaveLength(78);
    expect(shown).toContain('    … 122 more lines; --json prints all of them');
  });

  it('the difference of requests with thousands of messages is found quickly', () => {
    const many = Array.from({ length: 5_000 }, (_, at) => `${at}=m${at}`);
    const differences = diffViews(viewOf(...many), viewOf(...many.slice(2_500), '9999=new'));
    expect(differences.filter(({ op }) => op === 'gone')).toHaveLength(2_500);
    expect(differences.at(-1)).toMatchObject({ op: 'added' });
  });
});
