import { describe, expect, it } from 'vitest';
import { argumentsCheck, wireParameters } from '../../../../src/tools/mcp/arguments.ts';
import { reasonFor } from '../../../../src/tools/mcp/reason.ts';

describe('the arguments of an MCP call', () => {
  const schema = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };

  it('arguments are checked against the schema of the server', () => {
    const check = argumentsCheck(schema);
    expect(check({ path: 'a' })).toBeNull();
    expect(check({})).toBe("arguments must have required property 'path'");
    expect(check({ path: 1 })).toBe('arguments/path must be string');
  });

  it('arguments that are not an object are refused, whatever the schema allows', () => {
    for (const given of ['text', null, [1], 7]) expect(argumentsCheck({})(given)).toContain('an object');
  });

  it('arguments are passed to the server unchecked when its schema is not supported', () => {
    const check = argumentsCheck({ type: 'object', properties: { a: { $ref: 'https://nowhere/schema' } } });
    expect(check({ a: 1 })).toBeNull();
    expect(check('text')).not.toBeNull();
  });

  it('arguments are passed to the server unchecked when the check would take too long', () => {
    const text = { type: 'string', pattern: '^(a+)+$' };
    const check = argumentsCheck({ type: 'object', properties: { text, path: { type: 'string' } } });
    expect(check({ text: `${'a'.repeat(34)}!` })).toBeNull();
    expect(check({ text: 'b' })).toContain('arguments/text must match pattern');
  });

  it('arguments are passed to the server unchecked when they are nested too deeply', () => {
    const schema = { type: 'object', properties: { inner: { $ref: '#' } } };
    const deep = JSON.parse(`${'{"inner":'.repeat(100_000)}{}${'}'.repeat(100_000)}`);
    expect(argumentsCheck(schema)(deep)).toBeNull();
  });

  it('two servers whose schemas share an id each get their own check', () => {
    const first = argumentsCheck({ $id: 'https://a.test/x', ...schema });
    const second = argumentsCheck({ $id: 'https://a.test/x', type: 'object' });
    expect(first({})).not.toBeNull();
    expect(second({})).toBeNull();
  });

  it('arguments are checked against a schema of the newest JSON Schema draft, too', () => {
    const check = argumentsCheck({ $schema: 'https://json-schema.org/draft/2020-12/schema', ...schema });
    expect(check({})).not.toBeNull();
  });

  it('arguments are checked synchronously by a schema that asks for an asynchronous check', () => {
    expect(argumentsCheck({ $async: true, ...schema })({})).toContain("required property 'path'");
  });

  it('schemas are shown to models in the form that their providers accept', () => {
    expect(wireParameters({ $schema: 'x', type: 'object' })).toEqual({ type: 'object', properties: {} });
  });
});

describe('the text of an MCP error', () => {
  const secret = (value: string) => ({ reveal: () => value });

  it('an error text contains the cause and no secret of the server', () => {
    const headers = { Authorization: secret('Bearer key-123'), 'X-Key': secret('abcdef') };
    const reason = reasonFor({ transport: 'http', url: 'http://x', headers });
    const error = new Error('fetch failed', { cause: new Error('no key-123, no abcdef') });
    expect(reason(error)).toBe('fetch failed: no [secret], no [secret]');
  });

  it('an error text is cut to a short length', () => {
    const reason = reasonFor({ transport: 'command', command: 'x', args: [], env: {} });
    expect(reason('x'.repeat(5000))).toHaveLength(601);
  });
});
