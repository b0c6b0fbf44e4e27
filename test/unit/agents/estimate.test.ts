import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { textTokens } from '../../../src/agents/requests/estimate.ts';
import { estimateTokens } from '../../../src/conversation/index.ts';
import { anyCharacter } from '../../support/characters.ts';

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
  ])('the estimate of %j is %d, the same as in the view', (text, tokens) => {
    expect([textTokens(text), estimateTokens(text)]).toEqual([tokens, tokens]);
  });

  it('the estimate of any text equals that of the view, whatever was counted before', () => {
    const text = fc.oneof(fc.string({ unit: anyCharacter, maxLength: 400 }), fc.string({ maxLength: 400 }));
    const anyUnits = fc.array(fc.nat({ max: 0xffff })).map((units) => String.fromCharCode(...units));
    fc.assert(
      fc.property(fc.oneof(text, anyUnits), (one) => {
        expect(textTokens(one)).toBe(estimateTokens(one));
      }),
    );
  });

  it.each([65_535, 65_536, 65_537, 131_073, 200_000])(
    'the estimate is correct for %d code units of text',
    (length) => {
      for (const word of ['a', '好', '😀', 'a😀', '😀b', 'für 好 '])
        for (const text of [word.repeat(length).slice(0, length), `x${word.repeat(length)}`.slice(0, length)])
          expect(textTokens(text)).toBe(estimateTokens(text));
    },
  );
});
