import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { argumentViews, policyRule } from '../../../src/console/model/thread/calls.ts';
import { differenceText } from '../../../src/conversation/index.ts';
import { rulingOn } from '../../../src/daemon/tools/tool-policy.ts';

/** The ruling on a call of shell by the rule that is offered for this command. */
function rulingBy(offeredFor: string, command: string) {
  const offered = policyRule('dev', 'shell', { command: offeredFor });
  if ('reason' in offered) return offered.reason;
  const { tools } = parse(offered.rule);
  const rules = tools.policy.map(({ match }: { match: Record<string, string> }) => ({
    match,
    ruling: 'runs',
  }));
  const subject = { kind: 'command', argument: 'command' } as const;
  return rulingOn({ rules, otherwise: 'asks', subject }, { command });
}

describe('the policy rule that the console offers', () => {
  it.each(['echo "hello world"', 'npm  test', `git commit -m "it's (a.b)"`, `echo ${'long '.repeat(100)}`])(
    'the rule that is offered for a plain command allows it, and no more: %s',
    (command) => {
      expect(rulingBy(command, command)).toBe('runs');
      expect(rulingBy(command, `${command} && rm x`)).toBe('asks');
      expect(rulingBy(command, `${command} x`)).toBe('asks');
    },
  );

  it.each(['a\nb && c', 'ls | wc', 'echo $HOME', ''])('none is offered that cannot fit: %j', (command) => {
    expect(rulingBy(command, command)).toContain('No rule can allow this command.');
  });

  it('the rule of another tool fixes its path, and names what it leaves open', () => {
    const offered = policyRule('dev', 'fs_write', { path: '@project/a.md', content: 'x' });
    expect(offered).toMatchObject({ fixed: ['path'], open: ['content'] });
    expect('rule' in offered && offered.rule).toContain(String.raw`path: "^@project\\/a\\.md$"`);
  });
});

describe('the arguments that an approval shows', () => {
  const same = Array.from({ length: 20 }, (_, n) => `line ${n}`).join('\n');

  it.each([
    ['find', 'replace'],
    ['old_string', 'new_string'],
    ['oldText', 'newText'],
  ])('a foreign tool with %s and %s cannot hide one of them in a difference', (from, to) => {
    const given = { [from]: same, [to]: same, edits: [{ [from]: 'a', [to]: 'a' }] };
    expect(argumentViews('mcp__shop__refund', given)).toEqual([
      { kind: 'text', name: from, text: same },
      { kind: 'text', name: to, text: same },
      { kind: 'value', name: 'edits', text: JSON.stringify(given.edits) },
    ]);
  });

  it('an edit of a file shows every line, also those that are the same and far from a change', () => {
    const edit = { path: '@project/a', find: same, replace: `${same}\nnew`, all: true };
    const views = argumentViews('fs_edit', edit);
    expect(views.map(({ name }) => name)).toEqual(['path', 'all', 'change']);
    const lines = views.flatMap((view) => (view.kind === 'edit' ? view.lines : []));
    expect(lines.map(({ text }) => text)).toEqual([...same.split('\n'), 'new']);
    const equal = argumentViews('fs_edit', { find: same, replace: same });
    expect(equal).toMatchObject([{ kind: 'edit', lines: { length: 20 } }]);
  });

  it('what a permission shows of a change is a difference, and no other tool can show text as one', () => {
    const shown = differenceText('a.ts', 'one', 'two');
    expect(argumentViews('permit_edit', { path: 'a.ts', shown })).toMatchObject([
      { kind: 'value', name: 'path' },
      { kind: 'edit', name: 'shown', lines: [{}, {}, {}, { op: 'gone', text: 'one' }, { op: 'added' }] },
    ]);
    expect(argumentViews('mcp__shop__refund', { shown })).toEqual([
      { kind: 'text', name: 'shown', text: shown },
    ]);
    expect(argumentViews('permit_edit', { shown: 'words' })).toMatchObject([{ kind: 'value' }]);
  });

  it('a text differs from the number and the word that it spells', () => {
    const texts = argumentViews('pay', { one: '12', two: 12, three: 'null', four: null });
    expect(texts.map((view) => 'text' in view && view.text)).toEqual(['"12"', '12', '"null"', 'null']);
  });
});
