import { describe, expect, it } from 'vitest';
import { argumentsCheck, wireParameters } from '../../../../src/tools/mcp/arguments.ts';
import { reasonFor } from '../../../../src/tools/mcp/reason.ts';

describe('the arguments of a call', () => {
  const schema = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };

  it('are checked against the schema of the server', () => {
    const check = argumentsCheck(schema);
    expect(check({ path: 'a' })).toBeNull();
    expect(check({})).toBe("arguments must have required property 'path'");
    expect(check({ path: 1 })).toBe('arguments/path must be string');
  });

  it('are an object, whatever the schema says', () => {
    for (const given of ['text', null, [1], 7]) expect(argumentsCheck({})(given)).toContain('an object');
  });

  it('are left to the server when its schema cannot be understood', () => {
    const check = argumentsCheck({ type: 'object', properties: { a: { $ref: 'https://nowhere/schema' } } });
    expect(check({ a: 1 })).toBeNull();
    expect(check('text')).not.toBeNull();
  });

  it('are left to the server when checking them would take for ever', () => {
    const text = { type: 'string', pattern: '^(a+)+$' };
    const check = argumentsCheck({ type: 'object', properties: { text, path: { type: 'string' } } });
    expect(check({ text: `${'a'.repeat(34)}!` })).toBeNull();
    expect(check({ text: 'b' })).toContain('arguments/text must match pattern');
  });

  it('are left to the server when they are nested too deeply to be checked', () => {
    const schema = { type: 'object', properties: { inner: { $ref: '#' } } };
    const deep = JSON.parse(`${'{"inner":'.repeat(100_000)}{}${'}'.repeat(100_000)}`);
    expect(argumentsCheck(schema)(deep)).toBeNull();
  });

  it('of two servers whose schemas share an id are checked each by its own', () => {
    const first = argumentsCheck({ $id: 'https://a.test/x', ...schema });
    const second = argumentsCheck({ $id: 'https://a.test/x', type: 'object' });
    expect(first({})).not.toBeNull();
    expect(second({})).toBeNull();
  });

  it('are checked by a schema of the newest draft too', () => {
    const check = argumentsCheck({ $schema: 'https://json-schema.org/draft/2020-12/schema', ...schema });
    expect(check({})).not.toBeNull();
  });

  it('are shown to models as their providers take them', () => {
    expect(wireParameters({ $schema: 'x', type: 'object' })).toEqual({ type: 'object', properties: {} });
  });
});

describe('what is said of an error', () => {
  const secret = (value: string) => ({ reveal: () => value });

  it('has its cause, and none of the secrets of the server', () => {
    const headers = { Authorization: secret('Bearer key-123'), 'X-Key': secret('abcdef') };
    const reason = reasonFor({ transport: 'http', url: 'http://x', headers });
    const error = new Error('fetch failed', { cause: new Error('no key-123, no abcdef') });
    expect(reason(error)).toBe('fetch failed: no [secret], no [secret]');
  });

  it('is short', () => {
    const reason = reasonFor({ transport: 'command', command: 'x', args: [], env: {} });
    expect(reason('x'.repeat(5000))).toHaveLength(601);
  });
});
