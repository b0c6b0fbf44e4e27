import { describe, expect, it } from 'vitest';
import { isOfServer, wireNames } from '../../../../src/tools/mcp/names.ts';

function namesOf(...places: [server: string, tool: string][]): string[] {
  return [...wireNames(places.map(([server, tool]) => ({ server, tool }))).keys()];
}

describe('the name of a tool of a server', () => {
  it('is made of both names', () => {
    expect(namesOf(['files', 'read_file'])).toEqual(['mcp__files__read_file']);
  });

  it('is a valid function name, whatever the server calls it (N1)', () => {
    for (const tool of ['a.b/c d', 'café', '😀', 'x'.repeat(200), '']) {
      expect(namesOf(['files', tool])[0]).toMatch(/^mcp__files__[A-Za-z0-9_-]{0,52}$/);
    }
    expect(namesOf(['files', 'a.b'])).toEqual(['mcp__files__a_b']);
  });

  it('tells two long names apart that begin alike', () => {
    const [one, other] = namesOf(['s', `${'x'.repeat(80)}1`], ['s', `${'x'.repeat(80)}2`]);
    expect(one).toHaveLength(64);
    expect(other).toHaveLength(64);
    expect(one).not.toBe(other);
  });

  it('keeps two servers apart that offer the same tool', () => {
    expect(namesOf(['a', 'read'], ['b', 'read'])).toEqual(['mcp__a__read', 'mcp__b__read']);
  });

  it('gives the plain name to nobody when two come out alike (N3), in whatever order they come (N2)', () => {
    const names = namesOf(['s', 'a.b'], ['s', 'a_b']);
    expect(names).toHaveLength(2);
    for (const name of names) expect(name).toMatch(/^mcp__s__a_b_[0-9a-f]{8}$/);
    const one = { server: 's', tool: 'a.b' };
    const other = { server: 's', tool: 'a_b' };
    expect([...wireNames([one, other])]).toEqual([...wireNames([other, one])]);
  });

  it('tells whose it is', () => {
    expect(isOfServer('mcp__files__read', 'files')).toBe(true);
    expect(isOfServer('mcp__files2__read', 'files')).toBe(false);
  });
});
