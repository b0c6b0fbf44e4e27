import { expect } from 'vitest';

/** An error, or a refusal, with this code and with these parts in its texts. */
export function errorWith(code: unknown, message: string | RegExp, hint?: string | RegExp) {
  return { code, message: containing(message), ...(hint && { hint: containing(hint) }) };
}

const containing = (part: string | RegExp): unknown =>
  part instanceof RegExp ? expect.stringMatching(part) : expect.stringContaining(part);

/** The answer of a verb that refuses with this code. */
export function refusedWith(
  code: string,
  ...texts: readonly [message?: string | RegExp, hint?: string | RegExp]
) {
  const [message, hint] = texts;
  return { ok: false, refusal: message === undefined ? { code } : errorWith(code, message, hint) };
}
