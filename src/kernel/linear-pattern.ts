import { RE2JS } from 're2js';

/**
 * Regular expressions of operators and strangers, matched in linear time (RE2): those of JavaScript backtrack, and
 * `^(a+)+$` holds the process for ever.
 *
 * LINEAR-PATTERN-1 A pattern means what JavaScript's flag `u` means, or is refused: lookahead, backreferences and repeats
 *    above 1000 have no linear form. One difference: with `i`, `\b` does not count `ſ` and the Kelvin sign as letters.
 * LINEAR-PATTERN-2 The time is the length of the text times the size of the compiled pattern. Counted repeats multiply that size: a
 *    pattern that they make larger is refused, a long one that is written out is not. At the limit, the worst pattern takes about
 *    half a second for 100,000 characters.
 */
export interface LinearPattern {
  test(text: string): boolean;
}

/** LINEAR-PATTERN-2, in instructions of RE2; a pattern without counted repeats has at most about two for each character. */
const MOST_STEPS = 300;
const STEPS_PER_CHARACTER = 2;

/** Throws an Error that says what the pattern must not contain. */
export function linearPattern(source: string, { ignoreCase = false } = {}): LinearPattern {
  new RegExp(source, 'u'); // RE2 has forms of its own, such as `(?i)` and `\Q`
  const flags = RE2JS.LOOKBEHINDS | (ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
  const pattern = RE2JS.compile(RE2JS.translateRegExp(asInJavaScript(source)), flags);
  const steps = pattern.programSize();
  const most = Math.max(MOST_STEPS, STEPS_PER_CHARACTER * source.length);
  if (steps > most)
    throw new RangeError(
      `it has ${steps} steps with its repeats, and at most ${most} are matched: use smaller repeats, or * and +`,
    );
  return { test: (text) => pattern.matcher(text).find() };
}

const BLANKS = '\\s\\v\\x{feff}\\p{Z}';
const OUTSIDE: Readonly<Record<string, string>> = {
  '.': '[^\\n\\r\\x{2028}\\x{2029}]',
  '\\s': `[${BLANKS}]`,
  '\\S': `[^${BLANKS}]`,
};

/** LINEAR-PATTERN-1: in RE2, `.` is every character but the line feed, and `\s` only the blanks of ASCII. */
function asInJavaScript(source: string): string {
  let isClass = false;
  return source.replaceAll(/\\?./gsu, (part) => {
    if (part === '\\k') throw new Error('a backreference: `\\k`');
    if (part === '[') isClass = true;
    else if (part === ']') isClass = false;
    if (isClass) return part === '\\s' ? BLANKS : part;
    return OUTSIDE[part] ?? part;
  });
}
