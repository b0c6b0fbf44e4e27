import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { expand, isWithin, type Ranges } from '../../../src/conversation/index.ts';

describe('ranges', () => {
  it('ranges contain an index if and only if they list it, whether they are ordered, disjoint, empty or not', () => {
    const range = fc.tuple(fc.nat({ max: 40 }), fc.integer({ min: -2, max: 12 }));
    fc.assert(
      fc.property(fc.array(range, { maxLength: 8 }), (drawn) => {
        const ranges: Ranges = drawn.map(([from, length]) => [from, from + length]);
        const named = isWithin(ranges);
        const found = Array.from({ length: 60 }, (_, index) => index).filter(named);
        expect(found).toEqual([...new Set(expand(ranges))].sort((a, b) => a - b));
      }),
    );
  });
});
