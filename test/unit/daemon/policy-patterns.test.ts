import { describe, expect, it } from 'vitest';
import type { Ruling } from '../../../src/agents/index.ts';
import { rulingOn } from '../../../src/daemon/tools/tool-policy.ts';

describe('a rule whose pattern would backtrack', () => {
  const rule = (ruling: Ruling, text: string) => ({ match: { text }, ruling });

  it('decides on each of a thousand hostile calls at once', () => {
    const rules = [rule('forbidden', '(x+x+)+y'), rule('runs', '^(a+)+$')];
    const started = performance.now();
    for (let call = 0; call < 1_000; call += 1) {
      const standing = { rules, otherwise: 'asks' as const };
      expect(rulingOn(standing, { text: `${'a'.repeat(60)}!` })).toBe('asks');
      expect(rulingOn(standing, { text: 'x'.repeat(60) })).toBe('asks');
      expect(rulingOn(standing, { text: 'xxy' })).toBe('forbidden');
      expect(rulingOn(standing, { text: 'aaa' })).toBe('runs');
    }
    expect(performance.now() - started).toBeLessThan(10_000);
  });

  it('a missing argument, or one that is not a text, matches no rule that allows', () => {
    const standing = { rules: [rule('runs', '^(a+)+$')], otherwise: 'asks' as const };
    expect(rulingOn(standing, { text: 7 })).toBe('asks');
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
