import { describe, expect, it } from 'vitest';
import { jsonFault } from '../../../src/kernel/index.ts';

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
