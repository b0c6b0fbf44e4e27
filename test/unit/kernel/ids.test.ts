import { expect, it } from 'vitest';
import { createIdSource } from '../../../src/kernel/index.ts';

it('an id cannot be predicted from its neighbours, also within one millisecond', () => {
  const newId = createIdSource();
  const ids = Array.from({ length: 300 }, () => newId());
  const numbers = ids.map((id) => [...id].reduce((sum, digit) => sum * 32n + DIGITS.get(digit), 0n));
  const near = numbers.slice(1).filter((one, at) => one - (numbers[at] ?? 0n) === 1n);
  expect(near).toEqual([]);
  // The random part alone: more ids than one pool of random bytes holds.
  expect(new Set(ids.map((id) => id.slice(10))).size).toBe(300);
});

/** The value of a digit of Crockford's base 32; throws on others. */
const DIGITS = {
  get: (digit: string) => BigInt('0123456789ABCDEFGHJKMNPQRSTVWXYZ'.indexOf(digit)),
};
