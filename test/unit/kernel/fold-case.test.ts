import { describe, expect, it } from 'vitest';
import { foldCase } from '../../../src/kernel/index.ts';

describe('foldCase', () => {
  it('every character keeps its length, so that positions stay valid', () => {
    const longer: string[] = [];
    for (let point = 0; point <= 0x10ffff; point++) {
      const text = `a${String.fromCodePoint(point)}b`;
      if (foldCase(text).length !== text.length) longer.push(point.toString(16));
    }
    expect(longer).toEqual([]);
  });

  it.each([
    ['NEEDLE', 'needle'],
    ['İstanbul', 'istanbul'],
    ['ΟΔΟΣ', 'οδος'],
    ['𐐀', '𐐨'],
    ['Straße', 'STRAßE'],
  ])('the folded text of %s equals that of %s', (one, other) => {
    expect(foldCase(one)).toBe(foldCase(other));
  });
});
