import { describe, expect, it } from 'vitest';
import { crowdFault, jsonFault } from '../../../src/kernel/index.ts';

describe('jsonFault', () => {
  const fault = (text: string) => {
    try {
      JSON.parse(text);
    } catch (error) {
      return jsonFault(error);
    }
    return null;
  };

  it.each([
    ['', 'it ends too early'],
    ['{"token":"secret', 'it ends too early'],
    ['{"token":', 'it ends too early'],
    ['{"token":secret}', 'a character is not expected'],
    ['{"token":"secret"} more', 'character 19 is not expected'],
    ['{"token":"secret",}', 'character 18 is not expected'],
    ['{"token":"sec\nret"}', 'character 13 is not expected'],
  ])('the fault of %j does not quote the text', (text, said) => {
    expect(fault(text)).toBe(said);
  });
});

describe('crowdFault', () => {
  const members = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, n]));
  const faultOf = (value: unknown) => crowdFault(Buffer.from(JSON.stringify(value)));

  it('an object may have 10,000 fields, and a text 200,000 in all', () => {
    expect(faultOf({ deep: [members(10_000)] })).toBeNull();
    expect(faultOf({ deep: [members(10_001)] })).toBe('has an object with more than 10000 fields');
    expect(faultOf([members(9_999), ...Array.from({ length: 19 }, () => members(10_000))])).toBeNull();
    expect(faultOf(Array.from({ length: 21 }, () => members(10_000)))).toBe('has more than 200000 fields');
  });

  it('what is in a text or nested counts for no other object', () => {
    expect(faultOf({ content: '{"a":1,\\":{'.repeat(20_000) })).toBeNull();
    expect(faultOf(Array.from({ length: 60_000 }, () => ({ role: 'user', content: ':' })))).toBeNull();
    expect(crowdFault(Buffer.from('{"a":'.repeat(20_000)))).toBe('is nested deeper than 64 levels');
    expect(crowdFault(Buffer.from('}":'.repeat(20_000)))).toBeNull();
  });
});
