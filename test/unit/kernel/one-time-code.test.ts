import { describe, expect, it } from 'vitest';
import { OneTimeCodes, oneTimeCode } from '../../../src/kernel/index.ts';

describe('a one-time code', () => {
  it('is taken once, and tells nothing of the key', () => {
    const codes = new OneTimeCodes();
    const [code, other] = [oneTimeCode(codes.key, 3), oneTimeCode(codes.key, 0)];
    expect(code).not.toContain(codes.key);
    expect([codes.take(code), codes.take(code), codes.take(other)]).toEqual([3, null, 0]);
  });

  it('is refused when it was changed, and by another process, whatever its clock says', () => {
    const codes = new OneTimeCodes();
    const code = oneTimeCode(codes.key, 1);
    const [id, ...rest] = code.split('.');
    const other = [`${String(id).slice(0, -1)}${String(id).endsWith('0') ? '1' : '0'}`, ...rest].join('.');
    const forAnother = code.replace('.1.', '.2.');
    for (const wrong of [
      other,
      forAnother,
      `${code}x`,
      code.slice(0, -1),
      '',
      codes.key,
      oneTimeCode('other', 1),
    ])
      expect([wrong, codes.take(wrong)]).toEqual([wrong, null]);
    expect(new OneTimeCodes().take(code)).toBeNull();
    expect(codes.take(code)).toBe(1);
  });
});
