import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { policyRule } from '../../../src/console/model/thread/whole-call.ts';
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
