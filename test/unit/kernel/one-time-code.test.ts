import { describe, expect, it } from 'vitest';
import { OneTimeCodes, oneTimeCode } from '../../../src/kernel/index.ts';

describe('a one-time code', () => {
  it('is taken once, and tells nothing of the key', () => {
    const codes = new OneTimeCodes();
    const [code, other] = [oneTimeCode(codes.key), oneTimeCode(codes.key)];
    expect(code).not.toContain(codes.key);
    expect([codes.take(code), codes.take(code), codes.take(other)]).toEqual([true, false, true]);
  });

  it('is refused when it was changed, and by another process, whatever its clock says', () => {
    const codes = new OneTimeCodes();
    const code = oneTimeCode(codes.key);
    const [id, ...rest] = code.split('.');
    const other = [`${String(id).slice(0, -1)}${String(id).endsWith('0') ? '1' : '0'}`, ...rest].join('.');
    for (const wrong of [other, `${code}x`, code.slice(0, -1), '', codes.key, oneTimeCode('other')])
      expect([wrong, codes.take(wrong)]).toEqual([wrong, false]);
    expect(new OneTimeCodes().take(code)).toBe(false);
    expect(codes.take(code)).toBe(true);
  });
});
