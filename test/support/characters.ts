import fc from 'fast-check';
import { hasLongTests, size } from './runs.ts';

/**
 * Every printable ASCII character, and characters that are multi-byte, invisible, combining or change their length
 * with case.
 */
export const CHARACTERS = [
  ...Array.from({ length: 0x7f - 0x20 }, (_, at) => String.fromCharCode(0x20 + at)),
  ...['\t', '\n', '\r', '\0', '\x1b', '\x7f', '\x85', '\u2028'],
  ...['ß', 'ẞ', 'İ', 'ı', 'ς', 'Σ', 'ﬁ', 'ŉ', 'ǰ', 'é', 'e\u0301', '\u0301', '\u20e3'],
  ...['😀', '👩‍👩‍👧', '🇩🇪', '𝒳', '𐐀', '\u{10ffff}', '\ud800', '\udc00'],
  ...['\u202e', '\u2066', '\u200b', '\u2060', '\u00ad', '\u2800', '\u3164', '\ufeff', '\ufffe', '\u00a0'],
  ...['العربية', 'עברית', '上传', 'नि', '“', '”', '$&', '$`', '\\-', '[^', '(?<', '..', '*/'],
];

/** Each character alone, or doubled and inside a word, in turn; with PARLEY_FULL=1 both. Fast tests have every second one. */
export const CHARACTER_TEXTS = CHARACTERS.flatMap((one, place) => {
  const forms = [one, `${one}${one} x${one}7 ${one}`];
  if (size(1) > 1) return forms;
  if (hasLongTests) return forms.slice(place % 2).slice(0, 1);
  return place % 2 === 0 ? forms.slice((place / 2) % 2).slice(0, 1) : [];
});

/** Any character, also an unassigned one, but no half of a surrogate pair. Cheaper than `unit: 'binary'`, which lists all. */
export const anyCharacter = fc
  .integer({ min: 0, max: 0x10_f7ff })
  .map((number) => String.fromCodePoint(number < 0xd800 ? number : number + 0x800));
