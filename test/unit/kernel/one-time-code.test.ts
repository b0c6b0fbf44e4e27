import { afterEach, describe, expect, it, vi } from 'vitest';
import { OneTimeCodes, oneTimeCode } from '../../../src/kernel/index.ts';

describe('a one-time code', () => {
  afterEach(() => void vi.useRealTimers());

  it('is taken once, however much later, and tells nothing of the secret', () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const codes = new OneTimeCodes('secret');
    const [code, other] = [oneTimeCode('secret'), oneTimeCode('secret')];
    expect(code).not.toContain('secret');
    vi.advanceTimersByTime(24 * 3_600_000);
    expect([codes.take(code), codes.take(code), codes.take(other)]).toEqual([true, false, true]);
  });

  it('is refused with another secret, when it was changed, and by a process that began after it was made', () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const code = oneTimeCode('secret');
    const codes = new OneTimeCodes('secret');
    const [time, ...rest] = code.split('.');
    const later = [(Number.parseInt(String(time), 36) + 1).toString(36), ...rest].join('.');
    for (const wrong of [later, `${code}x`, code.slice(0, -1), '', 'secret', oneTimeCode('other')])
      expect([wrong, codes.take(wrong)]).toEqual([wrong, false]);
    expect(codes.take(code)).toBe(true);
    vi.advanceTimersByTime(1);
    expect(new OneTimeCodes('secret').take(code)).toBe(false);
  });
});
