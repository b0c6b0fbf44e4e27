import { describe, expect, it } from 'vitest';
import { jsonFault } from '../../../src/kernel/index.ts';

describe('why a text is not JSON', () => {
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
  ])('is said of %j without a word of it', (text, said) => {
    expect(fault(text)).toBe(said);
  });
});
