/**
 * What a reader cannot see: blanks, control and format characters, characters that fonts leave out, and the two that are
 * drawn as nothing. A combining mark alone is visible, and so is an emoji, whatever joins its parts.
 */
export const INVISIBLE =
  '\\p{White_Space}\\p{Z}\\p{Cc}\\p{Cf}\\p{Default_Ignorable_Code_Point}\\p{Noncharacter_Code_Point}\\u2800\\u{1d159}';
const VISIBLE = new RegExp(`[^${INVISIBLE}]`, 'u');

/** Whether a text says anything: it has at least one visible character. */
export function hasVisible(text: string): boolean {
  return VISIBLE.test(text);
}

/** Whether a text holds half of a surrogate pair: UTF-8 has no bytes for it. */
export function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text);
}
