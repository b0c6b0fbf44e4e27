import { describe, expect, it } from 'vitest';
import { estimateTokens } from '../../../src/conversation/index.ts';

describe('the estimate of a text', () => {
  it.each([
    ['', 0],
    ['hello', 2],
    ['你好', 2],
    ['hello你好', 4],
    ['😀', 1],
    ['a😀', 2],
    ['\ud83d', 1],
    ['\ude00', 0],
    ['\u007f\u0080', 2],
  ])('the estimate of %j is %d', (text, tokens) => {
    expect(estimateTokens(text)).toBe(tokens);
  });
});
