import { describe, expect, it } from 'vitest';
import type { Ruling } from '../../../src/agents/index.ts';
import { rulingOn } from '../../../src/daemon/tools/tool-policy.ts';

/** A pattern that needs more time than there is must not hold the daemon, and must release nothing. */
describe('a pattern of the policy that does not end', () => {
  const ENDLESS = { command: '^(a+)+$' };
  const given = { command: `${'a'.repeat(60)}!` };
  const rule = (ruling: Ruling, match: Record<string, string> = ENDLESS) => ({ match, ruling });

  it.each<[string, ReturnType<typeof rule>[], Ruling, Ruling]>([
    ['an allow rule with an endless pattern lets no call run', [rule('runs')], 'runs', 'asks'],
    ['a forbid rule with an endless pattern forbids', [rule('forbidden')], 'runs', 'forbidden'],
    [
      'an endless pattern leads to an approval although the next rule allows',
      [rule('runs'), rule('runs', { command: '!' })],
      'asks',
      'asks',
    ],
    [
      'a forbid rule after an endless pattern still forbids',
      [rule('runs'), rule('forbidden', { command: '!' })],
      'runs',
      'forbidden',
    ],
  ])('%s', (_, rules, otherwise, expected) => {
    expect(rulingOn({ rules, otherwise }, given)).toBe(expected);
  });

  it('a slow pattern decides normally when it ends in time; a missing argument or one that is not a text does not match', () => {
    const standing = { rules: [rule('runs')], otherwise: 'asks' as const };
    expect(rulingOn(standing, { command: 'aaa' })).toBe('runs');
    expect(rulingOn(standing, { command: 'b' })).toBe('asks');
    expect(rulingOn(standing, { command: 7 })).toBe('asks');
    expect(rulingOn(standing, {})).toBe('asks');
  });
});

describe('a rule that forbids', () => {
  const ruled = (pattern: string, id: unknown) =>
    rulingOn({ rules: [{ match: { id: pattern }, ruling: 'forbidden' }], otherwise: 'runs' }, { id });

  it.each([
    ['^5$', 5],
    ['^5$', [4, 5]],
    ['^/secret/', ['/docs/a', '/secret/key']],
    ['^/secret/', { from: { path: '/secret/key' } }],
    ['^true$', true],
    ['^null$', null],
    ['"force":true', { force: true }],
  ])('a forbid rule with %j matches %j, which is not a text', (pattern, id) => {
    expect(ruled(pattern, id)).toBe('forbidden');
  });

  it('a forbid rule matches no other value that is not a text, and no missing argument', () => {
    expect(ruled('^5$', [55, '15', { a: 6 }])).toBe('runs');
    expect(ruled('undefined', undefined)).toBe('runs');
  });

  it('a forbid rule matches a value that is nested too deeply to be read', () => {
    const depth = 100_000;
    expect(ruled('^5$', JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`))).toBe('forbidden');
  });
});
