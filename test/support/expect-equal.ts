import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';

/** `expect(actual).toEqual(expected)` for checks that run thousands of times: `expect` is called only for a difference. */
export function expectEqual(actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual).toEqual(expected);
}
