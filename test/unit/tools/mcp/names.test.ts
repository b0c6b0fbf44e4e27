import { describe, expect, it } from 'vitest';
import { isOfServer, wireNames } from '../../../../src/tools/mcp/toolbox.ts';

function namesOf(...places: [server: string, tool: string][]): string[] {
  return [...wireNames(places.map(([server, tool]) => ({ server, tool }))).keys()];
}

describe('the names of MCP tools', () => {
  it('a tool name consists of the server name and the name of the tool', () => {
    expect(namesOf(['files', 'read_file'])).toEqual(['mcp__files__read_file']);
  });

  it('a tool name is a valid function name, whatever the server calls the tool (NAMES-1)', () => {
    for (const tool of ['a.b/c d', 'café', '😀', 'x'.repeat(200), '']) {
      expect(namesOf(['files', tool])[0]).toMatch(/^mcp__files__[A-Za-z0-9_-]{0,52}$/);
    }
    expect(namesOf(['files', 'a.b'])).toEqual(['mcp__files__a_b']);
  });

  it('two long names that begin alike stay distinct', () => {
    const [one, other] = namesOf(['s', `${'x'.repeat(80)}1`], ['s', `${'x'.repeat(80)}2`]);
    expect(one).toHaveLength(64);
    expect(other).toHaveLength(64);
    expect(one).not.toBe(other);
  });

  it('the same tool of two servers has two names', () => {
    expect(namesOf(['a', 'read'], ['b', 'read'])).toEqual(['mcp__a__read', 'mcp__b__read']);
  });

  it('two tools whose names collide both lose the plain name (NAMES-3), in any order (NAMES-2)', () => {
    const names = namesOf(['s', 'a.b'], ['s', 'a_b']);
    expect(names).toHaveLength(2);
    for (const name of names) expect(name).toMatch(/^mcp__s__a_b_[0-9a-f]{8}$/);
    const one = { server: 's', tool: 'a.b' };
    const other = { server: 's', tool: 'a_b' };
    expect([...wireNames([one, other])]).toEqual([...wireNames([other, one])]);
  });

  it('a plain name that equals the marked name of another tool is given to neither (NAMES-4), in any order', () => {
    const [marked = ''] = namesOf(['s', 'a.b'], ['s', 'a_b']);
    const thief = { server: 's', tool: marked.slice('mcp__s__'.length) };
    const alike = [
      { server: 's', tool: 'a.b' },
      { server: 's', tool: 'a_b' },
    ];
    const names = wireNames([...alike, thief]);
    expect([...names.keys()]).toHaveLength(1);
    expect(names.has(marked)).toBe(false);
    expect([...names.values()]).not.toContain(thief);
    expect([...wireNames([thief, ...alike])]).toEqual([...names]);
  });

  it('tool names of different servers never collide, whatever the servers call their tools', () => {
    const servers = ['a', 'a_b', 'a-b', 'b', 'x'.repeat(48), `${'x'.repeat(47)}y`];
    const tools = ['c', '_c', '__c', 'b__c', '_b__c', 'mcp__b__c', 'x'.repeat(90), '.'.repeat(90)];
    const places = servers.flatMap((server) => tools.map((tool) => ({ server, tool })));
    for (const [name, { server }] of wireNames(places))
      expect(servers.filter((one) => isOfServer(name, one))).toEqual([server]);
    expect(wireNames(places).size).toBe(places.length);
  });

  it('a tool name tells which server the tool belongs to', () => {
    expect(isOfServer('mcp__files__read', 'files')).toBe(true);
    expect(isOfServer('mcp__files2__read', 'files')).toBe(false);
  });
});
